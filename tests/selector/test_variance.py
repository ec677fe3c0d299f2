"""The variance report: published numbers, hand-worked examples, and slow obvious loops on random inputs."""

from __future__ import annotations

from itertools import combinations
from math import comb, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from selector.answers import Grader
from selector.errors import InvalidConfig
from selector.success_rates import SuccessRates, fit_rates
from selector.variance import (
    MIN_VARIANCE,
    Category,
    chance_corrected,
    rewards_of,
    survival,
    variance_report,
)
from selector.variance_advice import advise, report_as_json, warnings_of

BINARY = st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=6), min_size=1, max_size=12)
GRADED = st.lists(
    st.lists(st.floats(0, 1, allow_subnormal=False).map(lambda r: round(r, 3)), min_size=1, max_size=6),
    min_size=1,
    max_size=12,
)


def set_with(useful: int, n: int, runs: int = 4) -> list[list[float]]:
    """n questions of which some are right half of the time; the others alternate between always right and wrong."""
    half = [1.0, 0.0] * (runs // 2)
    return [half if row < useful else [float(row % 2)] * runs for row in range(n)]


def codes(report) -> set[str]:
    return {warning.code for warning in warnings_of(report)}


@pytest.mark.parametrize(("runs", "smallest"), [(3, 0.222), (5, 0.16)])
def test_the_smallest_variance_of_binary_rewards_is_the_published_one(runs, smallest):
    report = variance_report([[1.0] + [0.0] * (runs - 1)])

    assert round(report.variances[0], 3) == smallest
    assert isclose(report.variances[0], (runs - 1) / runs**2)
    assert report.categories == (Category.USEFUL,)


def test_the_threshold_bears_on_graded_rewards_only():
    report = variance_report([[0.5, 0.6], [0.5, 0.7], [0.5, 0.701]])

    assert [round(float(each), 6) for each in report.variances[:2]] == [0.0025, 0.01]
    assert report.categories == (Category.CONSTANT, Category.CONSTANT, Category.USEFUL)  # above 0.01, not at it


def test_the_probability_of_surviving_is_the_published_formula():
    assert survival(0.5, 3) == 0.75
    assert isclose(survival(0.1, 5), 1 - 0.1**5 - 0.9**5)
    assert (survival(0.0, 8), survival(1.0, 8), survival(0.3, 1)) == (0, 0, pytest.approx(0))


def test_a_worked_example():
    report = variance_report([[1, 1, 1], [0, 0, 0], [1, 0, 0], [0.5, 0.5, 0.5]], ["r", "w", "u", "c"])

    assert [each.value for each in report.categories] == ["always_right", "always_wrong", "useful", "constant"]
    assert report.mean == pytest.approx((1 + 0 + 1 / 3 + 0.5) / 4)
    assert report.mean_best == pytest.approx(2.5 / 4)
    assert report.improvement_potential == pytest.approx(2.5 / 4 - (11 / 6) / 4)
    assert (report.useful_share, report.is_binary) == (0.25, False)
    assert (report.keep("useful"), report.keep("not_always_right")) == (("u",), ("w", "u", "c"))
    assert report.keep("all") == report.uids


@pytest.mark.parametrize(
    ("useful", "health", "multiplier"),
    [
        (19, "poor", None), (20, "thin", (2, 4)), (29, "thin", (2, 4)), (30, "good", (1, 2)), (60, "good", (1, 2)),
        (61, "rich", (1, 1)), (0, "poor", None), (200, "rich", (1, 1)),
    ],
)  # fmt: skip
def test_health_and_compute_multiplier_change_where_the_method_says(useful, health, multiplier):
    advice = advise(variance_report(set_with(useful, 200)))

    assert (advice.health, advice.compute_multiplier) == (health, multiplier)


def test_no_multiplier_is_advised_for_a_small_set():
    advice = advise(variance_report(set_with(10, 49)))

    assert advice.compute_multiplier is None
    assert any("too few" in sentence for sentence in advice.sentences)
    assert advise(variance_report(set_with(10, 50))).compute_multiplier == (1, 2)


@settings(deadline=None)
@given(rewards=st.one_of(BINARY, GRADED))
def test_every_figure_is_what_an_obvious_loop_gives(rewards):
    report = variance_report(rewards)

    for row, runs in enumerate(rewards):
        mean = sum(runs) / len(runs)
        variance = sum((r - mean) ** 2 for r in runs) / len(runs)
        assert report.n_runs[row] == len(runs)
        assert isclose(report.means[row], mean, abs_tol=1e-12)
        assert isclose(report.variances[row], variance, abs_tol=1e-12)
        assert (report.bests[row], report.worsts[row]) == (max(runs), min(runs))
        if min(runs) == max(runs):
            expected = {0.0: Category.ALWAYS_WRONG, 1.0: Category.ALWAYS_RIGHT}.get(runs[0], Category.CONSTANT)
        elif abs(variance - MIN_VARIANCE) < 1e-12:
            continue
        else:
            expected = Category.USEFUL if variance > MIN_VARIANCE and 0 < mean < 1 else Category.CONSTANT
        assert report.categories[row] is expected
    spread = [float(each) for each in report.variances]
    differences = sum(abs(a - b) for a in spread for b in spread)
    gini = differences / (2 * len(spread) * sum(spread)) if sum(spread) else 0.0
    assert isclose(report.gini, gini, abs_tol=1e-9)
    assert sum(report.counts.values()) == sum(cell[-1] for cell in report.cells()) == len(rewards)


@settings(deadline=None)
@given(rewards=st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=5, max_size=5), min_size=1, max_size=8))
def test_fewer_runs_are_the_mean_over_all_subsets(rewards):
    report = variance_report(rewards)

    for signal in report.signals:
        if signal.is_measured:
            alive = [np.mean([len(set(subset)) == 2 for subset in combinations(runs, signal.runs)]) for runs in rewards]
            assert isclose(signal.share, np.mean(alive), abs_tol=1e-9)
    assert {signal.runs for signal in report.signals if signal.is_measured} == {2, 4, 5}


def test_a_group_as_large_as_the_runs_shows_the_useful_share():
    report = variance_report(set_with(30, 100, runs=8))

    assert {signal.runs: signal.share for signal in report.signals}[8] == pytest.approx(report.useful_share)


@pytest.mark.parametrize("runs", [8, 16])
@pytest.mark.parametrize("pool", ["spread out", "never, always or in between", "both"])
def test_the_share_that_would_wake_is_about_what_more_runs_show(runs, pool):
    rng = np.random.default_rng(0)
    expected, found = [], []
    for _ in range(10):
        rates = {
            "spread out": rng.beta(0.3, 0.5, 300),
            "never, always or in between": rng.choice([0, 1, 0.3, 0.6], p=[0.4, 0.4, 0.1, 0.1], size=300),
            "both": np.where(rng.random(300) < 0.6, rng.integers(0, 2, 300), rng.beta(0.5, 1, 300)),
        }[pool]
        first, more = (rng.random((300, runs)) < rates[:, None] for _ in range(2))
        report = variance_report(first.astype(float))
        expected.append(report.waking_share(2))
        found.append(np.mean([(more[row] != first[row, 0]).any() for row in np.flatnonzero(report.variances == 0)]))

    assert abs(np.mean(expected) - np.mean(found)) < 0.04


def test_waking_is_the_ratio_of_probabilities_under_the_fit():
    successes, n_runs = np.array([0] * 30 + [1, 2, 3, 4] * 10 + [4] * 20), np.full(90, 4)
    rates = fit_rates(successes, n_runs)

    def fails(runs: int) -> float:
        return quad(lambda p: (1 - p) ** runs, 0, 1, weight="alg", wvar=(rates.a - 1, rates.b - 1))[0]

    waking = rates.waking(np.array([False]), np.array([4]), np.array([8]))
    assert rates.never == rates.always == 0  # cannot be told from a beta distribution in four runs
    assert waking[0] == pytest.approx(1 - fails(12) / fails(4), abs=1e-6)


def test_waking_has_a_value_where_probabilities_vanish():
    rates = SuccessRates(a=1000.0, b=1000.0, never=0.0, always=0.0)

    waking = rates.waking(np.array([True, False]), np.array([5000, 5000]), np.array([5000, 5000]))

    assert waking == pytest.approx([1.0, 1.0])


def test_nothing_is_expected_where_too_little_is_known():
    dead = variance_report([[0, 0, 0, 0]] * 30 + [[1, 0, 0, 0]] * 4)
    graded = variance_report([[0.2, 0.4]] * 60)

    assert (dead.waking_share(), [signal.runs for signal in dead.signals]) == (None, [2, 4])
    assert (graded.waking_share(), graded.signals) == (None, ())
    assert "dead_for_now" in codes(dead)


def test_ragged_runs_are_told_apart():
    report = variance_report([[1, 0], [1, 1, 1, 0, 0], [0]] + [[0, 1, 1]] * 5)

    assert report.n_runs.tolist() == [2, 5, 1] + [3] * 5
    assert all(0 <= signal.share <= 1 for signal in report.signals)
    assert not any(signal.is_measured for signal in report.signals)  # the third has a single run
    assert "few_runs" in codes(report)


def test_guessing_is_taken_off_questions_with_choices():
    assert chance_corrected(np.array([0.25, 1.0, 0.5]), np.array([4, 4, 2])).tolist() == [0.0, 1.0, 0.0]

    report = variance_report([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0]], n_choices=[4, 4, 0])

    assert report.chance.n == 2
    assert report.chance.mean == pytest.approx(0.375)
    assert report.chance.corrected_mean == pytest.approx((0 + 1 / 3) / 2)
    assert report.chance.n_useful_at_chance == 1
    assert "choices" in codes(report)
    assert variance_report([[1, 0]]).chance is None


def test_variance_in_the_tail_is_warned_of():
    tail = variance_report(set_with(8, 100))
    even = variance_report(set_with(80, 100))

    assert (tail.tail_share, even.tail_share) == (pytest.approx(1.0), pytest.approx(1 / 8))
    assert "tail" in codes(tail)
    assert "tail" not in codes(even)
    assert tail.gini == pytest.approx(0.92)
    assert variance_report([[1, 1]] * 20).gini == variance_report([[1, 1]] * 20).tail_share == 0


@pytest.mark.parametrize("n", [1, 2, 9])
def test_of_fewer_than_ten_questions_none_is_a_tail(n):
    assert "tail" not in codes(variance_report([[1, 0, 1]] + [[1, 1, 1]] * (n - 1)))


def test_each_warning_comes_where_it_should():
    assert codes(variance_report(set_with(40, 100, runs=2))) >= {"few_runs"}
    assert codes(variance_report(set_with(9, 30))) >= {"few_questions"}
    assert "outside_unit" in codes(variance_report([[-1.0, 1.0]] * 60))
    assert "graded" in codes(variance_report([[0.1, 0.9]] * 60))
    assert not codes(variance_report([[1, 0, 1, 0]] * 60))
    (few,) = (w for w in warnings_of(variance_report(set_with(40, 100, runs=2))) if w.code == "few_runs")
    assert f"{survival(0.5, 2):.2f}" in few.message


def test_a_report_is_json_and_the_order_of_the_questions_changes_no_aggregate():
    rewards = [[float((row * 7 + run) % 5 < row % 5) for run in range(6)] for row in range(60)]
    forwards, backwards = (
        report_as_json(variance_report(rows, [str(n) for n in names]), questions=False)
        for rows, names in ((rewards, range(60)), (rewards[::-1], range(59, -1, -1)))
    )

    assert forwards.keys() == backwards.keys()
    assert forwards["categories"] == backwards["categories"]
    assert forwards["variance_gini"] == pytest.approx(backwards["variance_gini"])
    assert [each["share"] for each in forwards["share_with_signal"]] == pytest.approx(
        [each["share"] for each in backwards["share_with_signal"]]
    )
    whole = report_as_json(variance_report(rewards))
    assert len(whole["questions"]) == 60
    assert "questions" not in forwards


def test_many_runs_overflow_nothing():
    rng = np.random.default_rng(1)
    report = variance_report((rng.random((20, 2000)) < 0.5).astype(float))

    assert [signal.share for signal in report.signals if signal.runs in (2, 2000)] == pytest.approx([0.5, 1], abs=0.01)
    assert isclose(comb(2000, 2), 1999000)


@pytest.mark.parametrize(
    ("rewards", "uids"), [([], None), ([[]], None), ([[1.0, float("nan")]], None), ([[1.0]], ["a", "b"])]
)
def test_what_is_no_reward_is_refused(rewards, uids):
    with pytest.raises(InvalidConfig):
        variance_report(rewards, uids)


def test_an_unknown_part_to_keep_is_refused():
    with pytest.raises(InvalidConfig, match="useful"):
        variance_report([[1.0]]).keep("best")


def test_answers_are_graded_as_a_trainer_would():
    with Grader() as grader:
        rewards = rewards_of("1/2", ["0.5", "\\frac{1}{2}", "2", "", "0.5"], kind="number", grader=grader)
        none_right = rewards_of(None, ["0.5", ""], kind="number", grader=grader)

    assert rewards == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert none_right == [0.0, 0.0]
