"""The guarantee itself: sets of `paper` cover the truth as often as split conformal prediction promises."""

from math import floor, sqrt

import numpy as np

from selector.config import SelectionConfig
from selector.picking import answer_scores_of
from selector.pipeline import calibrate
from tests.selector.simulation import simulate_table

N_SPLITS, M, N_TEST = 200, 200, 300


def covered(table, q_hat, config):
    """Say for each question whether its truth was observed and is in its set."""
    found = np.zeros(len(table), bool)
    for rows, _, scores in answer_scores_of(table, config):
        truth = table.truth_codes[rows]
        known = np.flatnonzero((truth >= 0) & (truth < scores.shape[1]))
        found[rows][known] = np.isfinite(scores[known, truth[known]]) & (scores[known, truth[known]] <= q_hat)
    return found


def test_mean_coverage_is_not_below_its_band():
    config = SelectionConfig.preset("paper", budget=1, alpha="0.3")
    population = simulate_table(20_000, seed=1, absent=0.08)
    coverage = []
    for split in range(N_SPLITS):
        rows = np.random.default_rng(split).choice(len(population), M + N_TEST, replace=False)
        calibration = calibrate(population.rows(rows[:M]), config)
        assert calibration.n_absent < 0.3 * M
        coverage.append(covered(population.rows(rows[M:]), calibration.q_hat, config).mean())

    k = M + 1 - floor((M + 1) * config.alpha_fraction)
    expected = k / (M + 1)
    variance = expected * (1 - expected) * (1 / (M + 2) + 1 / N_TEST)  # beta-binomial, to first order
    assert np.mean(coverage) >= expected - 2.6 * sqrt(variance / N_SPLITS)
    assert np.mean(coverage) < expected + 0.05  # ties over-cover, but not by much
