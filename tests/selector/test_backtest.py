"""What labels show of picks, against slow counting and simulation."""

import math
from itertools import combinations

import numpy as np
import pytest

from selector.backtest import MEASURES, advantage_mass, advantage_mass_from_counts, backtest, judge
from selector.votes import VoteTable
from tests.selector.simulation import simulate_table

P = np.array([0.0, 0.03, 0.2, 0.5, 0.77, 1.0])


def advantages(rewards):
    mean = sum(rewards) / len(rewards)
    std = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
    return [(reward - mean) / std if std else 0.0 for reward in rewards]


def mean_size(rewards):
    return sum(map(abs, advantages(rewards))) / len(rewards)


@pytest.mark.parametrize("group_size", [2, 5, 8])
def test_advantage_mass_is_what_simulated_groups_show(group_size):
    rng = np.random.default_rng(group_size)
    n = 4_000
    rewards = (rng.random((len(P), n, group_size)) < P[:, None, None]).astype(float)

    simulated = [np.mean([mean_size(group) for group in groups]) for groups in rewards.tolist()]

    np.testing.assert_allclose(advantage_mass(P, group_size), simulated, atol=4 * 0.5 / math.sqrt(n))


def test_advantage_mass_is_greatest_halfway_and_none_at_the_ends():
    mass = advantage_mass(np.linspace(0, 1, 101))

    assert mass[0] == mass[-1] == 0
    assert mass.argmax() == 50
    np.testing.assert_allclose(mass, mass[::-1], atol=1e-12)


def test_advantage_mass_from_counts_is_the_mean_over_all_groups():
    for n_right in range(7):
        rewards = [1.0] * n_right + [0.0] * (6 - n_right)
        every = [mean_size(group) for group in combinations(rewards, 4)]

        found = advantage_mass_from_counts(np.array([n_right]), 6, group_size=4)

        assert found[0] == pytest.approx(sum(every) / len(every), abs=1e-12)


def test_advantage_mass_from_counts_has_no_bias():
    n, n_right = 20, np.arange(21)
    from scipy.stats import binom

    for p in P:
        mean = np.sum(binom(n, p).pmf(n_right) * advantage_mass_from_counts(n_right, n))
        assert mean == pytest.approx(float(advantage_mass(np.array([p]))[0]), abs=1e-12)


def test_fewer_rollouts_than_a_group_are_the_group():
    assert advantage_mass_from_counts(np.array([1]), 3, group_size=8)[0] == pytest.approx(mean_size([1.0, 0.0, 0.0]))


def slow_majority_wrong(answers, truth):
    readable = [answer for answer in answers if answer >= 0]
    if not readable:
        return 1.0
    most = max(readable.count(answer) for answer in readable)
    tied = {answer for answer in readable if readable.count(answer) == most}
    return sum(answer != truth for answer in tied) / len(tied)


@pytest.mark.parametrize("seed", range(4))
def test_judging_counts_right_answers(seed):
    table = simulate_table(60, seed=seed, n_probes=3, n_outcomes=6)

    found = judge(table)

    for row in range(60):
        answers, truth = table.codes[row, 3:].tolist(), int(table.truth_codes[row])
        right = sum(answer == truth for answer in answers) if truth >= 0 else 0
        assert found.pass_rate[row] == right / 6
        assert found.with_variance[row] == (0 < right < 6)
        assert found.majority_wrong[row] == pytest.approx(slow_majority_wrong(answers, truth))


def test_a_question_without_a_readable_answer_is_wrong():
    table = VoteTable(("q",), np.full((1, 4), -1, np.int16), np.array([-1], np.int16), ((),), 0)

    found = judge(table)

    assert (found.pass_rate[0], found.with_variance[0], found.majority_wrong[0]) == (0.0, 0.0, 1.0)


def test_without_outcomes_the_probes_are_judged():
    table = VoteTable(("q",), np.array([[0, 0, 1]], np.int16), np.array([0], np.int16), (("a", "b"),), 3)

    assert judge(table).pass_rate[0] == pytest.approx(2 / 3)


def rows_of(n, rows):
    found = np.zeros(n, bool)
    found[list(rows)] = True
    return found


def test_means_are_those_of_the_picks_and_random_is_unbiased():
    truths = judge(simulate_table(80, seed=3))
    eligible = range(10, 80)

    found = backtest(
        truths,
        {"mine": [3, 5, 8]},
        is_known=np.ones(80, bool),
        is_eligible=rows_of(80, eligible),
        budget=3,
        seed=1,
        n_random=3_000,
    )

    for name in MEASURES:
        values = getattr(truths, name)
        assert found["strategies"]["mine"][name] == pytest.approx(values[[3, 5, 8]].mean())
        assert found["pool"][name] == pytest.approx(values.mean())
        assert found["eligible"][name] == pytest.approx(values[eligible].mean())
        assert found["random"][name]["mean"] == pytest.approx(values[eligible].mean(), abs=0.03)
        low, high = found["random"][name]["interval"]
        assert low <= found["random"][name]["mean"] <= high


def test_beating_random_is_the_share_of_selections_below_ties_half():
    truths = judge(simulate_table(12, seed=4))
    mine = [0, 3]

    found = backtest(
        truths,
        {"mine": mine},
        is_known=np.ones(12, bool),
        is_eligible=np.ones(12, bool),
        budget=2,
        seed=1,
        n_random=4_000,
    )

    for name in MEASURES:
        values = getattr(truths, name)
        pairs = [values[list(pair)].mean() for pair in combinations(range(12), 2)]
        own = values[mine].mean()
        exact = np.mean([0.5 if abs(each - own) < 1e-12 else float(each < own) for each in pairs])
        assert found["strategies"]["mine"]["beats_random"][name] == pytest.approx(exact, abs=0.03)


def test_all_rollouts_right_beats_every_random_selection():
    truths = judge(simulate_table(80, seed=3))
    best = np.argsort(-truths.pass_rate, kind="stable")[:10].tolist()

    everything = np.ones(80, bool)
    found = backtest(
        truths, {"best": best}, is_known=everything, is_eligible=everything, budget=10, seed=1, n_random=200
    )

    assert found["strategies"]["best"]["beats_random"]["pass_rate"] == 1.0


def test_only_questions_with_a_known_truth_count():
    truths = judge(simulate_table(40, seed=6))
    known = rows_of(40, range(20))

    found = backtest(
        truths,
        {"some": [2, 30], "none": [31, 35]},
        is_known=known,
        is_eligible=np.ones(40, bool),
        budget=30,
        seed=1,
        n_random=50,
    )

    assert found["strategies"]["some"]["n"] == 1
    assert found["strategies"]["some"]["pass_rate"] == truths.pass_rate[2]
    assert found["strategies"]["none"]["n"] == 0
    assert found["strategies"]["none"]["pass_rate"] is None
    assert found["strategies"]["none"]["beats_random"] is None
    assert found["random"]["n"] == found["pool"]["n"] == 20
