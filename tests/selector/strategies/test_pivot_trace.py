"""Strategies that rank by one number of the internals: pivots, their density, the entropy of a chain's beginning."""

from dataclasses import replace

import numpy as np
import pytest

from selector.errors import MissingEvidence
from selector.strategies import STRATEGIES
from tests.selector.internals.simulated import evidence_of, simulate_internals

INTERNALS = simulate_internals([f"q{i}" for i in range(30)], seed=4)


def scores(key, internals):
    return STRATEGIES[key]().acquisition_scores(evidence_of(internals), 0)


def test_questions_are_ranked_by_the_number_of_pivots_or_by_their_density():
    assert scores("pivot_trace", INTERNALS).tolist() == INTERNALS.n_pivots.tolist()
    np.testing.assert_allclose(
        scores("pivot_density", INTERNALS), INTERNALS.n_pivots / INTERNALS.n_response_tokens, rtol=1e-6
    )


@pytest.mark.parametrize("key", ["pivot_trace", "pivot_density"])
def test_a_model_that_hides_its_attention_is_named(key):
    n_pivots = INTERNALS.n_pivots.copy()
    n_pivots[3] = -1

    with pytest.raises(MissingEvidence) as caught:
        scores(key, replace(INTERNALS, n_pivots=n_pivots))

    assert (caught.value.strategy, caught.value.need) == (key, "attention")


def test_partial_rollouts_prefer_the_middle_of_the_pool():
    entropy = np.array([0.0, 0.1, 0.2, 0.9, 5.0], np.float32)
    internals = replace(simulate_internals([f"q{i}" for i in range(5)]), prefix_token_entropy=entropy)

    found = scores("partial_rollouts", internals)

    np.testing.assert_allclose(found, [0.2, 0.6, 1.0, 0.6, 0.2])


def test_partial_rollouts_give_equal_entropies_equal_scores():
    flat = replace(INTERNALS, prefix_token_entropy=np.full(30, 0.3, np.float32))

    assert set(scores("partial_rollouts", flat).tolist()) == {1.0}


@pytest.mark.parametrize("key", ["badge", "pivot_trace", "pivot_density", "partial_rollouts"])
def test_reconstructions_say_so_in_their_titles(key):
    assert STRATEGIES[key].provenance == "reconstruction"
    assert "reconstruction" in STRATEGIES[key].title
