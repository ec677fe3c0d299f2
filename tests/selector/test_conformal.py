from collections import Counter
from fractions import Fraction
from math import ceil, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from selector.conformal import (
    check_coverage,
    compare_questions,
    conformal_threshold,
    count_votes,
    group_thresholds,
    is_degenerate,
    n_wanted,
    nonconformity_scores,
    published_threshold,
    readable_entropy,
    smallest_useful_alpha,
)
from selector.errors import CalibrationSetTooSmall

CODES = arrays(np.int16, st.tuples(st.integers(1, 6), st.integers(0, 12)), elements=st.integers(-1, 7))
LEVELS = st.integers(1, 999).map(lambda thousandths: Fraction(thousandths, 1000))


def measure(votes, unread="dropped", lam=0.02):
    counts = count_votes(np.array([votes], np.int16), unread=unread)
    return counts, nonconformity_scores(counts, lam)[0]


def test_score_worked_by_hand():
    counts, scores = measure([0, 0, 0, 1])

    entropy = -(0.75 * log(0.75) + 0.25 * log(0.25)) / log(4)
    assert counts.entropy[0] == pytest.approx(entropy, abs=1e-14)
    assert scores.tolist() == pytest.approx([-0.75 + 0.02 * entropy, -0.25 + 0.02 * entropy], abs=1e-14)


def test_dropped_unread_votes_do_not_count():
    with_unread, _ = measure([0, 0, -1, 0, 1, -1])
    without, _ = measure([0, 0, 0, 1])

    assert with_unread.n_votes.tolist() == without.n_votes.tolist() == [4]
    assert with_unread.entropy.tolist() == without.entropy.tolist()


def test_an_unread_vote_is_one_more_symbol():
    counts, scores = measure([0, 0, -1, -1], unread="symbol")

    assert counts.entropy[0] == pytest.approx(log(2) / log(4), abs=1e-14)
    assert scores.tolist() == pytest.approx([-0.5 + 0.02 * log(2) / log(4)], abs=1e-14)
    assert (counts.n_votes[0], counts.n_readable[0], counts.n_distinct[0]) == (4, 2, 1)


@pytest.mark.parametrize("votes", [[0, 0, 0], [0], [-1, -1], []])
def test_entropy_is_exactly_zero_when_all_agree(votes):
    for unread in ("dropped", "symbol"):
        counts, _ = measure(votes, unread)
        assert counts.entropy.tolist() == [0.0]


@given(CODES, st.sampled_from(["dropped", "symbol"]))
def test_vectorised_scores_equal_a_plain_loop(codes, unread):
    counts = count_votes(codes, unread=unread)
    scores = nonconformity_scores(counts, 0.1)

    for row, votes in enumerate(codes.tolist()):
        kept = [vote for vote in votes if vote >= 0 or unread == "symbol"]
        shares = {vote: count / len(kept) for vote, count in Counter(kept).items()}
        entropy = -sum(p * log(p) for p in shares.values()) / log(len(kept)) if len(shares) > 1 else 0.0
        assert counts.entropy[row] == pytest.approx(entropy, abs=1e-12)
        for code in range(scores.shape[1]):
            expected = -shares[code] + 0.1 * entropy if code in shares else inf
            assert scores[row, code] == pytest.approx(expected, abs=1e-12)


@given(CODES, st.randoms())
def test_renaming_and_reordering_answers_changes_no_bit(codes, random):
    names = list(range(8))
    random.shuffle(names)
    columns = list(range(codes.shape[1]))
    random.shuffle(columns)
    renamed = np.array([*names, -1], np.int16)[codes[:, columns]]

    before, after = (count_votes(each, unread="symbol") for each in (codes, renamed))

    assert before.entropy.tolist() == after.entropy.tolist()
    scores = [np.sort(nonconformity_scores(each, 0.02)).tolist() for each in (before, after)]
    for old, new in zip(*scores, strict=True):
        assert [each for each in old if each < inf] == [each for each in new if each < inf]


@given(CODES)
def test_published_summation_differs_by_rounding_only(codes):
    ours = count_votes(codes, unread="dropped")
    published = count_votes(codes, unread="dropped", as_published=True)

    np.testing.assert_allclose(ours.entropy, published.entropy, rtol=0, atol=1e-12)


def test_readable_entropy_ignores_unread_answers():
    codes = np.array([[0, 1, -1, -1], [0, 0, 0, -1]], np.int16)

    assert readable_entropy(codes).tolist() == pytest.approx([1.0, 0.0])


@given(st.lists(st.one_of(st.floats(-1, 0), st.just(inf)), min_size=1, max_size=60), LEVELS)
def test_threshold_is_the_score_of_exact_rank(scores, alpha):
    k = ceil((len(scores) + 1) * (1 - alpha))

    if k > len(scores):
        with pytest.raises(CalibrationSetTooSmall) as caught:
            conformal_threshold(np.array(scores), alpha)
        assert caught.value.n_wanted > len(scores)
        return
    assert conformal_threshold(np.array(scores), alpha) == sorted(scores)[k - 1]


@given(LEVELS)
def test_the_wanted_size_is_the_smallest_that_works(alpha):
    m = n_wanted(alpha)

    conformal_threshold(np.zeros(m), alpha)
    with pytest.raises(CalibrationSetTooSmall):
        conformal_threshold(np.zeros(m - 1), alpha)


def test_rank_is_not_spoiled_by_floating_point():
    scores = np.arange(1.0, 100.0)  # 99 scores, alpha .1: (99 + 1) * .9 is exactly 90

    assert conformal_threshold(scores, Fraction("0.1")) == 90.0
    assert published_threshold(scores, Fraction("0.1")) == 91.0


def test_published_threshold_is_one_rank_higher():
    scores = np.sort(np.random.default_rng(0).random(1024))

    assert conformal_threshold(scores, Fraction("0.1")) == scores[922]
    assert published_threshold(scores, Fraction("0.1")) == scores[923]


def test_published_threshold_refuses_a_level_above_one():
    with pytest.raises(CalibrationSetTooSmall):
        published_threshold(np.zeros(8), Fraction("0.1"))
    with pytest.raises(CalibrationSetTooSmall):
        published_threshold(np.zeros(0), Fraction("0.1"))


def test_infinite_scores_are_kept():
    scores = np.array([-0.5] * 89 + [inf] * 10)

    assert conformal_threshold(scores, Fraction("0.1")) == inf
    assert conformal_threshold(scores, Fraction("0.11")) == -0.5


@given(st.lists(st.floats(-1, 0), min_size=20, max_size=60), st.lists(st.floats(-1, 0), max_size=40))
def test_smallest_useful_alpha_is_the_first_that_is_not_degenerate(scores, worst):
    scores, worst, above = np.array(scores), np.array(worst), Fraction("0.1")

    found = smallest_useful_alpha(scores, worst, above=above, quantile="exact_rank")

    def degenerate(step):
        return is_degenerate(worst, conformal_threshold(scores, Fraction(step, 10_000)))

    step = 10_000 if found is None else round(float(found) * 10_000)
    assert found is None or not degenerate(step)
    assert step == 1001 or degenerate(step - 1)
    assert all(degenerate(lower) for lower in range(1001, step, 457))


def test_nothing_is_degenerate_without_questions():
    assert not is_degenerate(np.zeros(0), inf)


def test_half_of_the_sets_full_is_degenerate():
    assert is_degenerate(np.array([-0.3, -0.1]), -0.2)
    assert not is_degenerate(np.array([-0.3, -0.1, -0.1]), -0.2)


def test_coverage_check_is_seeded_and_counts_absent_truths_as_missed():
    rng = np.random.default_rng(5)
    scores, is_absent = rng.random(200) - 1, np.zeros(200, bool)
    is_absent[:100] = True
    scores = np.where(is_absent, inf, scores)

    first, again = (
        check_coverage(scores, is_absent, Fraction("0.1"), quantile="exact_rank", rng=np.random.default_rng(1))
        for _ in range(2)
    )

    assert first == again
    assert first["hits"] <= 100
    assert first["below_band"]


def test_coverage_check_of_exchangeable_scores_is_within_its_band():
    below = 0
    for seed in range(300):
        scores = np.random.default_rng(seed).random(200)
        check = check_coverage(
            scores, np.zeros(200, bool), Fraction("0.2"), quantile="exact_rank", rng=np.random.default_rng(seed)
        )
        below += check["below_band"]

    assert below <= 6  # one in two hundred on average


def test_coverage_check_says_when_half_is_too_few():
    check = check_coverage(
        np.zeros(12), np.zeros(12, bool), Fraction("0.1"), quantile="exact_rank", rng=np.random.default_rng(0)
    )

    assert check["available"] is False
    assert "needs 9" in check["reason"]


def test_comparison_warns_of_another_distribution_only():
    rng = np.random.default_rng(0)
    calibration = {"entropy": rng.random(300)}

    alike = compare_questions({"entropy": rng.random(500)}, calibration)
    unlike = compare_questions({"entropy": rng.random(500) ** 2}, calibration)

    assert alike["alike"]
    assert unlike["unlike"] == ["entropy"]


def test_every_large_group_has_the_threshold_of_its_own_scores():
    rng = np.random.default_rng(0)
    scores, groups = rng.random(100) - 1, ["easy", "hard"] * 45 + ["rare"] * 10
    scores[np.array(groups) == "hard"] += 0.5

    found = group_thresholds(scores, groups, Fraction("0.1"), quantile="exact_rank")

    assert set(found) == {"easy", "hard", "rare", ""}
    for name in ("easy", "hard", "rare"):
        assert found[name] == conformal_threshold(scores[np.array(groups) == name], Fraction("0.1"))
    assert found[""] == conformal_threshold(scores, Fraction("0.1"))


def test_small_groups_are_put_together():
    scores, groups = np.arange(40.0), ["big"] * 20 + [f"g{i}" for i in range(20)]

    found = group_thresholds(scores, groups, Fraction("0.1"), quantile="exact_rank")

    assert found == {"big": 18.0, "": 38.0}  # rank 19 of 20 in each


@given(st.lists(st.tuples(st.floats(-1, 0), st.sampled_from("abc")), min_size=9, max_size=60))
def test_each_group_is_covered_by_its_own_threshold(rows):
    scores, groups = np.array([score for score, _ in rows]), [group for _, group in rows]

    found = group_thresholds(scores, groups, Fraction("0.1"), quantile="exact_rank")

    for name in set(found) - {""}:
        own = scores[np.array(groups) == name]
        assert np.count_nonzero(own <= found[name]) >= ceil((len(own) + 1) * 0.9)
