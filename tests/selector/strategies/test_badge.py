"""BADGE against outer products that are really formed, and its draws against the weights they should follow."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.strategies import STRATEGIES
from selector.strategies.badge import GradientEmbeddings
from tests.selector.internals.simulated import evidence_of, simulate_internals


def outer_products(internals, width=40):
    """Return every gradient written out [N, width * D]."""
    gradients = []
    for row in range(len(internals)):
        p = np.zeros(width)
        p[internals.top_tokens[row]] = internals.top_probabilities[row]
        p[np.argmax(p)] -= 1
        gradients.append(np.outer(p, internals.prompt_hidden[row].astype(float)).ravel())
    return np.array(gradients)


def factored(internals):
    return GradientEmbeddings(internals.top_tokens, internals.top_probabilities, internals.prompt_hidden)


def choose(internals, budget, seed=0, chosen=()):
    strategy, evidence = STRATEGIES["badge"](), evidence_of(internals)
    scores = strategy.acquisition_scores(evidence, seed)
    rows = np.array([row for row in range(len(internals)) if row not in chosen], np.intp)
    return strategy.choose(
        evidence, scores, candidates=rows, chosen=np.array(chosen, np.intp), budget=budget, seed=seed
    ).tolist()


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12))
def test_factored_distances_are_those_of_the_outer_products(seed, n):
    internals = simulate_internals([f"q{i}" for i in range(n)], seed=seed)
    gradients, found = outer_products(internals), factored(internals)

    np.testing.assert_allclose(found.squared_norms, (gradients**2).sum(1), rtol=1e-9)
    for row in range(n):
        expected = ((gradients - gradients[row]) ** 2).sum(1)
        np.testing.assert_allclose(found.squared_distances(row), expected, rtol=1e-9, atol=1e-12)


def test_a_worked_example():
    # p = (.7, .2, .1) and (.5, .5, 0): r = (-.3, .2, .1) and (-.5, .5, 0); h = (1, 2) and (0, 1)
    found = GradientEmbeddings(
        np.array([[0, 1, 2], [0, 1, 2]], np.int32),
        np.array([[0.7, 0.2, 0.1], [0.5, 0.5, 0.0]], np.float32),
        np.array([[1, 2], [0, 1]], np.float32),
    )

    np.testing.assert_allclose(found.squared_norms, [0.14 * 5, 0.5 * 1], rtol=1e-6)
    np.testing.assert_allclose(found.squared_distances(0), [0, 0.7 + 0.5 - 2 * 0.25 * 2], rtol=1e-5)


@given(seed=st.integers(0, 1000))
def test_twins_are_no_distance_apart_and_never_less(seed):
    internals = simulate_internals(["a", "b", "c"], seed=seed)
    hidden, tokens, probabilities = (
        array[[0, 0, 0]] * factor
        for array, factor in (
            (internals.prompt_hidden, np.float32(1e3)),
            (internals.top_tokens, 1),
            (internals.top_probabilities, 1),
        )
    )

    found = GradientEmbeddings(tokens, probabilities, hidden)

    assert (found.squared_distances(1) >= 0).all()
    assert found.squared_distances(1).max() <= 1e-6 * found.squared_norms.max()


def test_the_first_pick_is_the_largest_gradient_whatever_the_seed():
    internals = simulate_internals([f"q{i}" for i in range(30)], seed=2)
    largest = int(np.argmax((outer_products(internals) ** 2).sum(1)))

    assert {choose(internals, 1, seed)[0] for seed in range(5)} == {largest}


def test_draws_follow_the_squared_distance():
    internals = simulate_internals([f"q{i}" for i in range(6)], seed=8)
    gradients = outer_products(internals)
    first = choose(internals, 1)[0]
    weights = ((gradients - gradients[first]) ** 2).sum(1)

    drawn = np.bincount([choose(internals, 2, seed)[1] for seed in range(3000)], minlength=6) / 3000

    np.testing.assert_allclose(drawn, weights / weights.sum(), atol=0.035)


def test_where_all_is_alike_draws_are_uniform_and_nothing_comes_twice():
    one = simulate_internals(["a"], seed=1)
    uids = [f"q{i}" for i in range(5)]
    internals = replace(one.take(["a"] * 5).renamed(uids), prompt_hidden=np.zeros((5, 6), np.float32))

    sets = [choose(internals, 5, seed) for seed in range(400)]

    assert all(sorted(each) == [0, 1, 2, 3, 4] for each in sets)
    counts = np.bincount([each[1] for each in sets], minlength=5)
    assert sorted(counts)[1] > 60  # one of the five is always first


def test_a_second_round_goes_on_where_the_first_stopped():
    internals = simulate_internals([f"q{i}" for i in range(20)], seed=5)

    together, first = choose(internals, 9), choose(internals, 4)

    assert [*first, *choose(internals, 5, chosen=first)] == together


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_questions_are_enough(n):
    internals = simulate_internals([f"q{i}" for i in range(n)])

    assert choose(internals, n) == list(range(n))
