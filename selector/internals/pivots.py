"""Pivots of a chain: moments at which the model looks far back. A reconstruction of PivotTrace's signal.

The paper (arXiv 2606.04503) is known by its abstract alone; spans and global heads follow the published attention
metrics of arXiv 2510.13554, and every number here that neither gives is a choice of this project.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.signal import find_peaks

GLOBAL_SHARE = 0.3  # of all heads, by backward span
WINDOW = 64  # tokens; what lies further back is long range
SMALLEST_Z = 2.0
SPACING = 16  # tokens between pivots, at least
SCALE_OF_MAD = 1.4826  # makes the median absolute deviation a standard deviation of normal data


def window_for(n_tokens: int) -> int:
    """Return what counts as near: 64 tokens, or a quarter of prompt and chain together where that is shorter."""
    return max(1, min(WINDOW, n_tokens // 4))


def global_heads(spans: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the 30 % of heads (rounded up) with the longest backward spans [heads], longest first."""
    n = ceil(round(GLOBAL_SHARE * len(spans), 6))
    return np.argsort(-spans, kind="stable")[:n]


def long_range_signal(far: NDArray[np.float32], spans: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return for each token of the chain [n] what its global heads give, on average, to tokens beyond the window.

    ``far`` [heads, n] is that share for every head, ``spans`` [heads] its mean backward span.
    """
    signal: NDArray[np.float64] = far[global_heads(spans)].mean(axis=0, dtype=np.float64)
    return signal


def robust_z(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (signal - median) / (1.4826 MAD) [n]; zeros where more than half of the signal is one value."""
    if not len(signal):
        return np.zeros(0)
    from_median = signal - np.median(signal)
    spread = SCALE_OF_MAD * float(np.median(np.abs(from_median)))
    return from_median / spread if spread > 0 else np.zeros(len(signal))


def find_pivots(signal: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the tokens at which the signal has a local maximum with z >= 2, at least 16 apart; of closer ones the
    highest stays. The first and the last token are no maxima."""
    peaks, _ = find_peaks(robust_z(signal), height=SMALLEST_Z, distance=SPACING)
    return np.asarray(peaks, np.intp)
