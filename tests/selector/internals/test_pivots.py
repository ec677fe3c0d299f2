"""Pivots against the rule written out, on signals whose peaks are known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from selector.internals.pivots import (
    find_pivots,
    global_heads,
    long_range_signal,
    robust_z,
    window_for,
)


def by_hand(signal):
    """Find peaks with loops: local maxima with z >= 2, the highest first, none within 16 tokens of a kept one."""
    median = np.median(signal)
    spread = 1.4826 * np.median(np.abs(signal - median))
    if spread == 0:
        return []
    z = [(value - median) / spread for value in signal]
    peaks = [i for i in range(1, len(z) - 1) if z[i - 1] < z[i] > z[i + 1] and z[i] >= 2]
    kept = []
    for peak in sorted(peaks, key=lambda i: -z[i]):
        if all(abs(peak - other) >= 16 for other in kept):
            kept.append(peak)
    return sorted(kept)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 300))
def test_pivots_are_those_of_the_rule_written_out(seed, n):
    rng = np.random.default_rng(seed)
    signal = rng.gamma(1, 1, n)  # no two values alike

    assert find_pivots(signal).tolist() == by_hand(signal)


def test_a_flat_signal_has_no_pivots_and_an_empty_one_neither():
    assert find_pivots(np.ones(50)).tolist() == []
    assert find_pivots(np.zeros(0)).tolist() == []
    assert find_pivots(np.array([1.0])).tolist() == []


def test_peaks_close_together_count_once():
    signal = np.sin(np.arange(100)) * 0.1
    signal[[20, 30, 60]] = 5, 6, 4

    assert find_pivots(signal).tolist() == [30, 60]


def test_the_score_is_robust_to_the_peaks_themselves():
    signal = np.array([0.0, 1.0, 2.0, 3.0, 1000.0])

    np.testing.assert_allclose(robust_z(signal), (signal - 2) / 1.4826)


def test_global_heads_are_the_three_tenths_with_the_longest_spans():
    assert global_heads(np.array([1, 9, 3, 7, 2, 8, 4, 6, 5, 0], np.float32)).tolist() == [1, 5, 3]
    assert len(global_heads(np.zeros(16, np.float32))) == 5
    assert global_heads(np.zeros(2, np.float32)).tolist() == [0]


def test_the_signal_is_the_mean_of_the_global_heads():
    far = np.array([[0, 1], [1, 1], [0.5, 0], [9, 9]], np.float32)
    spans = np.array([1, 5, 6, 0], np.float32)

    np.testing.assert_allclose(long_range_signal(far, spans), [0.75, 0.5])


def test_the_window_is_64_tokens_or_a_quarter_of_a_short_text():
    assert [window_for(n) for n in (1, 60, 256, 5000)] == [1, 15, 64, 64]
