"""Which strategies can be raced: those whose score is the set size of answers still to come, and no others."""

import numpy as np
import pytest

from selector.config import SelectionConfig
from selector.errors import CannotRace
from selector.picking import score
from selector.racing.selection import check_can_race
from selector.strategies import STRATEGIES, Evidence, Need
from tests.selector.simulation import simulate_table

RACED = {"const", "v2", "v5"}


def test_those_named_in_the_documentation_can_be_raced():
    assert {key for key, strategy in STRATEGIES.items() if strategy.can_be_raced} == RACED


@pytest.mark.parametrize("key", sorted(RACED))
def test_a_raced_strategy_ranks_by_set_size_and_needs_no_complete_votes(key):
    strategy = STRATEGIES[key]()
    scores = score(simulate_table(50, seed=1), -0.1, SelectionConfig.preset("recommended", budget=4, strategy=key))

    assert Need.CALIBRATION in strategy.needs
    assert Need.COMPLETE_VOTES not in strategy.needs
    assert np.array_equal(strategy.acquisition_scores(Evidence(scores), 0), scores.set_size)


@pytest.mark.parametrize("key", sorted(set(STRATEGIES) - RACED))
def test_the_others_say_why_not_and_what_to_do(key):
    with pytest.raises(CannotRace) as refused:
        check_can_race(STRATEGIES[key])

    assert STRATEGIES[key].why_not_raced in str(refused.value)
    assert "--race off" in str(refused.value)
