from fractions import Fraction

import numpy as np
import pytest

from selector.config import SelectionConfig
from selector.conformal import conformal_threshold
from selector.coverage_curve import coverage_curve, score_histogram
from selector.pipeline import Calibration, calibrate, score
from selector.votes import build_table
from tests.selector.simulation import simulate_votes

CONFIG = SelectionConfig.preset(budget=4, alpha="0.15", n_probes=5, n_outcomes=5)


@pytest.fixture(scope="module")
def tables():
    pool = simulate_votes(60, seed=3, n_probes=5, n_outcomes=5)
    calibration = simulate_votes(80, seed=4, prefix="c", n_probes=5, n_outcomes=5)
    return build_table(pool), build_table(calibration)


def test_every_alpha_has_the_threshold_and_the_sizes_that_a_run_with_it_would_have(tables):
    pool, known = tables
    calibration = calibrate(known, CONFIG)

    rows = coverage_curve(calibration, pool, CONFIG)

    assert [row["alpha"] for row in rows] == [
        alpha / 100 for alpha in range(2, 51)
    ]  # 80 questions cannot give an alpha of 0.01
    for row in rows:
        q_hat = conformal_threshold(calibration.nonconformity_scores, Fraction(str(row["alpha"])))
        assert row["q_hat"] == (None if np.isinf(q_hat) else q_hat)
        assert row["mean_set_size"] == pytest.approx(score(pool, q_hat, CONFIG).set_size.mean())


def test_the_check_is_that_of_the_report_and_sets_only_shrink(tables):
    from selector.conformal import check_coverage
    from selector.seeds import question_rng

    pool, known = tables
    calibration = calibrate(known, CONFIG)
    rows = {row["alpha"]: row for row in coverage_curve(calibration, pool, CONFIG)}

    reported = check_coverage(
        calibration.nonconformity_scores,
        calibration.is_absent,
        CONFIG.alpha_fraction,
        quantile=CONFIG.quantile,
        rng=question_rng(CONFIG.seed, "coverage_check", ""),
    )
    sizes = [row["mean_set_size"] for row in rows.values()]

    assert (rows[0.15]["coverage"], rows[0.15]["band"]) == (reported["coverage"], reported["band"])
    assert rows[0.02]["coverage"] is None  # half of 80 questions cannot give it
    assert sizes == sorted(sizes, reverse=True)


def test_an_alpha_between_the_hundredths_is_in_the_curve(tables):
    pool, known = tables
    config = CONFIG.replace(alpha="0.125")

    alphas = [row["alpha"] for row in coverage_curve(calibrate(known, config), pool, config)]

    assert 0.125 in alphas
    assert alphas == sorted(alphas)


def test_scores_are_counted_in_twentieths_and_borders_belong_below():
    scores = np.array([-1.0, -0.95, -0.94, -0.5, -0.9, np.inf])
    calibration = Calibration(0.0, scores, np.isinf(scores))

    bins = score_histogram(calibration)

    assert [(round(each["from"], 2), round(each["to"], 2), each["n"]) for each in bins if each["n"]] == [
        (-1.05, -1.0, 1),
        (-1.0, -0.95, 1),
        (-0.95, -0.9, 2),
        (-0.55, -0.5, 1),
    ]
    assert sum(each["n"] for each in bins) == 5
    assert len(bins) == 11
    assert score_histogram(Calibration(0.0, np.array([np.inf]), np.array([True]))) == []
