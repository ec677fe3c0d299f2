"""A race on answers as text, in any order, and the selection that its stored votes give."""

from dataclasses import replace

import numpy as np
import pytest

from selector.calibration import calibrate
from selector.config import SelectionConfig
from selector.errors import InvalidConfig, MissingCompletions
from selector.pipeline import run_selection
from selector.racing.live import open_race
from selector.racing.race import Plan
from selector.racing.settings import RaceSettings
from selector.votes import build_table, canonical_order
from tests.selector.simulation import simulate_votes

WRITINGS = {"a1": ("1/2", "0.5", "\\frac{1}{2}"), "a2": ("2", "2.0", "4/2"), "a3": ("x+1", "1+x", "x + 1")}
N_CLUSTERS = 3


def written(votes, rng):
    """Return the votes with answers that mean the same written differently."""

    def write(answers):
        return tuple(str(rng.choice(WRITINGS[answer])) if answer in WRITINGS else answer for answer in answers)

    return [
        replace(
            each,
            probe_answers=write(each.probe_answers),
            outcome_answers=write(each.outcome_answers),
            truth=each.truth and write([each.truth])[0],
        )
        for each in votes
    ]


def evidence(preset):
    """Return (pool in the order of the selection, calibration, settings)."""
    rng = np.random.default_rng(5)
    pool = [replace(each, truth=None) for each in written(simulate_votes(90, seed=3), rng)]
    pool = [replace(each, cluster=row % N_CLUSTERS) for row, each in enumerate(pool)]
    calibration = written(simulate_votes(60, seed=4, prefix="c"), rng)
    config = SelectionConfig.preset(preset, budget=N_CLUSTERS, alpha="0.3")
    if config.ties != "file_order":
        pool = [pool[row] for row in canonical_order([each.uid for each in pool])]
    return pool, calibration, config


def race_live(pool, calibration, config, *, stored, n_heard=10**9):
    """Race for the pool as a worker does, answers shuffled; ``stored`` grows by what came, and stops early if told."""
    labels = np.array([each.cluster for each in pool], np.intp)
    fitted = calibrate(build_table(calibration, grouping=config.grouping), config)
    plan = Plan(labels, dict.fromkeys(range(N_CLUSTERS), 1), N_CLUSTERS)
    votes = [replace(each, outcome_answers=tuple(stored[each.uid])) for each in pool]
    race = open_race(votes, config, q_hat=fitted.q_hat, labels=labels, distances=None, plan=plan, concurrency=24)
    rng, in_flight, arrived = np.random.default_rng(6), [], {}
    while not race.done and n_heard > 0:
        in_flight += race.wanted(24 - len(in_flight))
        row, index = in_flight.pop(int(rng.integers(len(in_flight))))
        n_heard -= 1
        arrived[row, index] = pool[row].outcome_answers[index]
        race.observe(row, index, arrived[row, index])
    for (row, index), answer in sorted(arrived.items()):
        if index == len(stored[pool[row].uid]):
            stored[pool[row].uid].append(answer)
    return race


@pytest.mark.parametrize("preset", ["recommended", "paper", "reference"])
def test_a_live_race_that_was_stopped_once_gives_the_picks_of_all_answers(preset):
    pool, calibration, config = evidence(preset)
    stored = {each.uid: [] for each in pool}
    race_live(pool, calibration, config, stored=stored, n_heard=150)

    race = race_live(pool, calibration, config, stored=stored)

    whole = run_selection(pool, calibration, config=config)
    votes = [replace(each, outcome_answers=tuple(stored[each.uid])) for each in pool]
    raced = run_selection(votes, calibration, config=config, race=RaceSettings("exact"))
    assert [pick.uid for pick in raced.picks] == [pick.uid for pick in whole.picks]
    assert [pick.prediction_set for pick in raced.picks] == [pick.prediction_set for pick in whole.picks]
    assert {pool[row].uid for row in race.picks()} == {pick.uid for pick in whole.picks}
    assert raced.raced.n_undrawn == 90 * 20 - sum(map(len, stored.values())) > 0


def test_picks_that_are_not_settled_yet_are_refused():
    pool, calibration, config = evidence("recommended")
    votes = [replace(each, outcome_answers=each.outcome_answers[:2]) for each in pool]

    with pytest.raises(MissingCompletions):
        run_selection(votes, calibration, config=config, race=RaceSettings("exact"))
    with pytest.raises(InvalidConfig, match="the number of answers"):
        run_selection(votes, calibration, config=config)
