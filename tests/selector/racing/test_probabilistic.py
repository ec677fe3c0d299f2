"""The probabilistic race: its model, its budget of error, and the audit of what it missed."""

import json

import numpy as np
import pytest

from selector.config import SelectionConfig
from selector.racing.audit import draw_audit, estimate_missed, inclusion_probabilities
from selector.racing.bounds import NO_SET, Rules
from selector.racing.race import Plan
from selector.racing.selection import start_race
from selector.racing.settings import RaceSettings
from selector.racing.urn import GRID, Seen, Urn, log_likelihoods, values_of
from tests.selector.racing.pools import picks_of_race
from tests.selector.simulation import simulate_table

RULES = Rules(0.02, "symbol", 40, 20)
POOL = simulate_table(60, seed=1)
CALIBRATION = simulate_table(300, seed=2)
LABELS = np.arange(60, dtype=np.intp) % 3


def race(error, seed=0, q_hat=-0.12):
    """Return a probabilistic race of the pool."""
    config = SelectionConfig.preset("recommended", budget=3, seed=seed)
    return start_race(
        POOL,
        config,
        n_outcomes=20,
        q_hats=np.full(60, q_hat),
        distances=None,
        plan=Plan(LABELS, dict.fromkeys(range(3), 1), 3),
        urn=Urn.fit(CALIBRATION),
        error=error,
    )


def finish(race):
    while not race.done:
        for row, index in race.wanted():
            race.observe(row, index, int(POOL.codes[row, 20 + index]))
    return race


def test_likelihoods_of_every_next_answer_add_up_to_one():
    seen = Seen(((5, 2), (3, 0), (0, 1)), 0, 0)
    next_ones = [
        Seen(((5, 3), (3, 0), (0, 1)), 0, 0),
        Seen(((5, 2), (3, 1), (0, 1)), 0, 0),
        Seen(((5, 2), (3, 0), (0, 2)), 0, 0),
        Seen(((5, 2), (3, 0), (0, 1), (0, 1)), 0, 0),
    ]

    total = sum(np.exp(log_likelihoods(each) - log_likelihoods(seen)) for each in next_ones)

    assert np.all(np.abs(total - 1) < 0.05)  # class by class: the order in which they came is not kept
    assert total[GRID[:, 1] == 0] == pytest.approx(1.0)  # nor does it matter without a discount


def test_a_state_does_not_depend_on_names_or_order_of_answers():
    assert Seen.of([3, 3, -1, 7, 3, -1], 3) == Seen.of([1, -1, 1, 0, -1, 1], 3)
    assert Seen.of([3, 3, -1, 7, 3, -1], 3) == Seen(((2, 1), (0, 1)), 1, 1)


def test_simulated_endings_are_the_same_again_and_know_the_certain():
    urn = Urn.fit(CALIBRATION)
    seen = Seen.of(POOL.codes[0].tolist(), 20)
    partial = Seen.of(POOL.codes[0, :25].tolist(), 20)

    assert len(set(urn.values(seen, -0.1, RULES, 0).tolist())) == 1  # complete: one ending
    assert urn.values(partial, -0.1, RULES, 0).tolist() == urn.values(partial, -0.1, RULES, 0).tolist()
    assert urn.values(partial, -0.1, RULES, 0).tolist() != urn.values(partial, -0.1, RULES, 1).tolist()


def test_the_fitted_urn_foretells_the_values_of_questions_it_has_not_seen():
    urn = Urn.fit(CALIBRATION)
    foretold, found = [], []
    for row in range(60):
        codes = POOL.codes[row].tolist()
        foretold.append(urn.values(Seen.of(codes[:24], 20), -0.1, RULES, 0).mean())
        found.append(urn.values(Seen.of(codes, 20), -0.1, RULES, 0)[0])

    assert np.corrcoef(foretold, found)[0, 1] > 0.85
    assert abs(np.mean(foretold) - np.mean(found)) < 0.25


def test_values_of_counts_are_those_of_the_rules():
    counts, unread = np.array([[20, 12, 4, 0], [10, 5, 4, 0]]), np.array([4, 21])

    assert values_of(counts, unread, -0.25, RULES).tolist() == [2, NO_SET]


@pytest.mark.parametrize("seed", range(1))
def test_no_cluster_spends_more_than_its_budget_and_answers_are_saved(seed):
    careful, bold = finish(race(0.001, seed)), finish(race(0.2, seed))

    assert max(careful.spent.values()) <= 0.001
    assert 0 < max(bold.spent.values()) <= 0.2
    assert bold.dropped
    assert all(0 < chance < 0.5 for chance in bold.dropped.values())
    assert bold.n_drawn.sum() < careful.n_drawn.sum()


def test_with_no_budget_to_speak_of_the_picks_are_the_exact_ones():
    config = SelectionConfig.preset("recommended", budget=3)
    nobody = np.zeros(60, bool)
    exact, _ = picks_of_race(
        POOL, -0.12, config, labels=LABELS, distances=None, is_barred=nobody, is_labeled=nobody, per_cluster=1
    )

    assert {POOL.uids[row] for row in finish(race(1e-9)).picks()} == {pick.uid for pick in exact}


def test_a_stopped_race_keeps_what_it_dropped_and_spent():
    through, stopped = finish(race(0.1)), race(0.1)
    for _ in range(2):
        for row, index in stopped.wanted():
            stopped.observe(row, index, int(POOL.codes[row, 20 + index]))

    resumed = race(0.1)
    resumed.load(json.loads(json.dumps(stopped.state())))
    finish(resumed)

    assert resumed.picks() == through.picks()
    assert resumed.dropped.keys() == through.dropped.keys()
    assert resumed.spent == pytest.approx(through.spent)


def test_inclusion_probabilities_are_in_proportion_and_add_up():
    found = inclusion_probabilities(np.array([0.5, 0.01, 0.02, 0.03]), 2)

    assert found.sum() == pytest.approx(2)
    assert found[0] == 1
    assert found[2] == pytest.approx(2 * found[1])
    assert inclusion_probabilities(np.array([0.1, 0.2]), 5).tolist() == [1, 1]


def test_the_estimate_is_right_on_average_and_its_interval_holds_it():
    rng = np.random.default_rng(0)
    chances = rng.beta(0.5, 20, size=400) + 1e-3
    is_missed = rng.random(400) < chances
    uids = [f"q{row}" for row in range(400)]
    estimates, held = [], 0
    for seed in range(300):
        sample = draw_audit(dict(enumerate(chances.tolist())), uids, 40, seed)
        rows = list(sample)
        estimate = estimate_missed(is_missed[rows], np.array([sample[row] for row in rows]))
        estimates.append(estimate.estimate)
        held += estimate.low <= is_missed.sum() <= estimate.high

    standard_error = np.std(estimates) / np.sqrt(300)
    assert abs(np.mean(estimates) - is_missed.sum()) < 3.5 * standard_error
    assert held >= 0.93 * 300


def test_a_sample_of_everything_leaves_nothing_to_estimate():
    found = estimate_missed(np.array([True, False, False]), np.ones(3))

    assert (found.estimate, found.low, found.high) == (1, 1, 1)


def test_settings_that_mean_nothing_are_refused():
    from selector.errors import InvalidConfig

    for settings in ({"mode": "fast"}, {"error": 0.0}, {"concurrency": 0}, {"n_audit": -1}):
        with pytest.raises(InvalidConfig):
            RaceSettings(**settings)
    with pytest.raises(InvalidConfig, match="fitted on complete calibration"):
        RaceSettings("probabilistic", calibration=True)
