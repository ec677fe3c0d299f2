"""The bounds against every way in which a question can end, scored by the function that scores a selection."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.conformal import count_votes, nonconformity_scores
from selector.racing.bounds import NO_SET, BoundsMemo, Rules, distinct_rows, set_size_bounds, state_of, state_rows

N_STATES = 1_200


@cache
def ways_to_place(n, places):
    """Every way to give n answers to so many symbols, as counts."""
    if places == 1:
        return ((n,),)
    return tuple((k, *rest) for k in range(n + 1) for rest in ways_to_place(n - k, places - 1))


@cache
def partitions(n, largest):
    """Every way to split n answers that are new into answers that differ, whatever their names."""
    if n == 0:
        return ((),)
    return tuple((k, *rest) for k in range(min(n, largest), 0, -1) for rest in partitions(n - k, k))


def every_ending(counts, unread, n_left):
    """Return the votes of every complete question that a state can become, as codes [E, n]."""
    endings = []
    for n_new in range(n_left + 1):
        for to_unread, *to_seen in ways_to_place(n_left - n_new, len(counts) + 1):
            seen = [count + more for count, more in zip(counts, to_seen, strict=True)]
            for new in partitions(n_new, n_new):
                votes = [[-1] * (unread + to_unread)]
                votes += [[code] * count for code, count in enumerate([*seen, *new])]
                endings.append(list(itertools.chain.from_iterable(votes)))
    return np.array(endings, np.int16).reshape(len(endings), -1)


def values(codes, q_hat, rules):
    votes = count_votes(codes, unread=rules.unread)
    scores = nonconformity_scores(votes, rules.lam)
    sizes = np.count_nonzero((scores <= q_hat) & (votes.counts > 0), axis=1)
    return np.where(votes.n_readable < rules.fewest, NO_SET, sizes), scores


def random_case(rng):
    """Return counts, unread answers and rules of a small state with a threshold that matters for it."""
    counts = sorted(rng.integers(1, rng.choice([2, 4, 12]), size=rng.integers(0, 5)).tolist(), reverse=True)
    unread, n_left = int(rng.choice([0, 0, 1, 2, 5])), int(rng.integers(1, 7))
    n = sum(counts) + unread + n_left
    fewest = int(rng.choice([0, 0, n // 2, n - 1, rng.integers(0, n + 1)]))
    lam = float(rng.choice([0.0, 0.02, 0.02, 0.02, 0.3]))
    return counts, unread, n_left, Rules(lam, str(rng.choice(["symbol", "dropped"])), n, fewest)


def threshold(rng, scores):
    """Return a threshold: a round number, a score that an ending attains, just beside one, or infinite."""
    attained = np.unique(scores[np.isfinite(scores)])
    kind = rng.integers(5)
    if kind == 0 and len(attained):
        return float(rng.choice(attained))
    if kind == 1 and len(attained):
        return float(rng.choice(attained) + rng.choice([-1e-6, 1e-6]))
    if kind == 2:
        return float("inf")
    return float(rng.choice([-0.5, -0.4, -0.3, -0.25, -0.2, -0.15, -0.1, -0.05, -0.025, -0.005, 0.0, 0.004, 0.01]))


def test_no_ending_lies_outside_the_bounds_and_one_attains_the_upper():
    rng = np.random.default_rng(11)
    n_tight_lower, n_singletons_out = 0, 0
    for _ in range(N_STATES):
        counts, unread, n_left, rules = random_case(rng)
        endings = every_ending(tuple(counts), unread, n_left)
        q_hat = threshold(rng, values(endings, 0.0, rules)[1])
        found, _ = values(endings, q_hat, rules)

        lower, upper = set_size_bounds(np.array([counts], int).reshape(1, -1), np.array([unread]), q_hat, rules)

        case = (counts, unread, n_left, q_hat, rules)
        assert lower[0] <= found.min(), case
        assert upper[0] == found.max(), case
        if q_hat < rules.lam - 1 / max(1, sum(counts)):  # a single vote is never enough
            n_singletons_out += 1
            n_tight_lower += int(lower[0] == found.min())
    assert n_tight_lower >= 0.98 * n_singletons_out > 0


@pytest.mark.parametrize(
    ("q_hat", "unanimous", "split", "singletons"),
    [(-0.4, 2, 2, 1), (-0.2, 3, 3, 2), (-0.1, 5, 6, 5), (-0.05, 8, 9, 10), (0.0, 21, 24, 40)],
)
def test_published_table_of_upper_bounds_after_20_probes(q_hat, unanimous, split, singletons):
    memo = BoundsMemo(q_hat, Rules(0.02, "dropped", 40))

    found = memo.of([(0, 20), (0, 16, 2, 1, 1), (0, *[1] * 20)])

    assert [upper for _, upper in found] == [unanimous, split, singletons]


def test_too_few_readable_answers_have_no_set_until_there_are_enough():
    memo = BoundsMemo(float("inf"), Rules(0.02, "symbol", 10, fewest=5))

    undecided, impossible, enough = memo.of([(3, 2), (6, 2), (3, 5)])

    assert undecided == (NO_SET, 6)
    assert impossible == (NO_SET, NO_SET)
    assert enough == (1, 3)


@given(st.lists(st.lists(st.integers(-1, 5), min_size=6, max_size=6), min_size=1, max_size=30))
def test_bounds_of_many_questions_are_those_of_each(rows):
    codes = np.array(rows, np.int16)
    memo = BoundsMemo(-0.15, Rules(0.02, "dropped", 12, fewest=6))

    lower, upper = memo.of_codes(codes)

    assert [*zip(lower, upper, strict=True)] == [memo.of([state_of(row)])[0] for row in rows]


def test_rows_that_differ_are_found_whatever_their_hashes():
    rows = state_rows(np.random.default_rng(1).integers(-1, 4, size=(500, 8)).astype(np.int16))

    found, which = distinct_rows(rows)

    assert np.array_equal(found[which], rows)
    assert len(found) == len(np.unique(rows, axis=0))
