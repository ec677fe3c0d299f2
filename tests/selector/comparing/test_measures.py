"""Every measure against a slow, obvious implementation on random inputs."""

import math
from itertools import combinations

import numpy as np
import pytest

from selector.comparing import measures

SEEDS = range(6)


def random_picks(rng):
    return rng.random((5, 40)) < rng.uniform(0.05, 0.6, size=(5, 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_overlap_is_the_jaccard_index_of_the_sets(seed):
    is_picked = random_picks(np.random.default_rng(seed))
    sets = [set(np.flatnonzero(row).tolist()) for row in is_picked]

    found = measures.overlap_matrix(is_picked)

    slow = [[len(a & b) / len(a | b) if a | b else 1.0 for b in sets] for a in sets]
    np.testing.assert_allclose(found, slow, atol=0)


def test_two_empty_selections_are_equal():
    assert measures.overlap_matrix(np.zeros((2, 3), bool)).tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(("n", "size", "other"), [(6, 2, 3), (7, 3, 3), (5, 5, 2), (5, 0, 2), (6, 4, 4)])
def test_expected_jaccard_is_the_mean_over_all_pairs_of_selections(n, size, other):
    every = [
        len({*a} & {*b}) / len({*a} | {*b}) for a in combinations(range(n), size) for b in combinations(range(n), other)
    ]

    assert measures.expected_jaccard(n, size, other) == pytest.approx(sum(every) / len(every), abs=1e-12)


def test_expected_jaccard_of_nothing_is_one():
    assert measures.expected_jaccard(5, 0, 0) == 1.0


def mean_ranks(values):
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


def slow_spearman(x, y):
    a, b = mean_ranks(x), mean_ranks(y)
    ma, mb = sum(a) / len(a), sum(b) / len(b)
    top = sum((p - ma) * (q - mb) for p, q in zip(a, b, strict=True))
    low = math.sqrt(sum((p - ma) ** 2 for p in a) * sum((q - mb) ** 2 for q in b))
    return top / low if low else math.nan


def slow_kendall(x, y):
    concordant = discordant = only_x = only_y = 0
    for i, j in combinations(range(len(x)), 2):
        dx, dy = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        if dx == 0 and dy == 0:
            continue
        only_x += dx == 0
        only_y += dy == 0
        concordant += dx * dy > 0
        discordant += dx * dy < 0
    pairs_x, pairs_y = concordant + discordant + only_y, concordant + discordant + only_x
    return (concordant - discordant) / math.sqrt(pairs_x * pairs_y) if pairs_x * pairs_y else math.nan


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("fast", "slow"), [(measures.spearman_matrix, slow_spearman), (measures.kendall_matrix, slow_kendall)]
)
def test_rank_correlations_with_ties(seed, fast, slow):
    rng = np.random.default_rng(seed)
    scores = np.stack([rng.integers(0, 4, 25), rng.normal(size=25), np.full(25, 2.0), rng.integers(0, 2, 25)]).astype(
        float
    )

    found = fast(scores)

    wanted = [[slow(a, b) for b in scores.tolist()] for a in scores.tolist()]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("fast", [measures.spearman_matrix, measures.kendall_matrix])
def test_one_question_has_no_order(fast):
    assert np.isnan(fast(np.ones((2, 1)))).all()


def slow_bin(share):
    if share <= 0:
        return 0
    if share >= 1:
        return 5
    return 1 + [share <= 0.25, share <= 0.5, share <= 0.75, True].index(True)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_profile_counts_every_share_once(seed):
    shares = np.random.default_rng(seed).integers(0, 21, 60) / 20

    found = measures.share_profile(shares)

    assert found == [sum(slow_bin(share) == i for share in shares) for i in range(6)]
    assert len(found) == len(measures.PROFILE_BINS)


@pytest.mark.parametrize("seed", SEEDS)
def test_mean_pairwise_distance(seed):
    vectors = np.random.default_rng(seed).normal(size=(7, 3)).astype(np.float32)

    slow = [math.dist(a, b) for a, b in combinations(vectors.tolist(), 2)]
    assert measures.mean_pairwise_distance(vectors) == pytest.approx(sum(slow) / len(slow), rel=1e-9)


def test_one_vector_has_no_distance():
    assert math.isnan(measures.mean_pairwise_distance(np.ones((1, 3), np.float32)))


def test_a_large_pool_is_thinned_evenly():
    rows = measures.evenly(10_001, most=101)

    assert len(rows) == 101
    assert (rows[0], rows[-1]) == (0, 10_000)
    assert np.ptp(np.diff(rows)) <= 1
    assert measures.evenly(3).tolist() == [0, 1, 2]
    assert measures.evenly(0).tolist() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_an_interval_leaves_equal_shares_outside(seed):
    values = np.random.default_rng(seed).normal(size=4_001)

    low, high = measures.interval(values)

    assert np.mean(values < low) == pytest.approx(0.025, abs=1e-3)
    assert np.mean(values > high) == pytest.approx(0.025, abs=1e-3)
