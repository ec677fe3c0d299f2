"""What other alphas would have given: thresholds, covered truths and sizes of sets over a grid, for a picture."""

from __future__ import annotations

from fractions import Fraction
from math import isinf
from typing import Any

import numpy as np

from selector.config import SelectionConfig
from selector.conformal import THRESHOLDS, Floats, check_coverage, n_wanted
from selector.picking import answer_scores_of
from selector.pipeline import Calibration
from selector.seeds import question_rng
from selector.votes import VoteTable

ALPHAS = tuple(Fraction(step, 100) for step in range(1, 51))
BIN = Fraction(1, 20)


def coverage_curve(calibration: Calibration, pool: VoteTable | None, config: SelectionConfig) -> list[dict[str, Any]]:
    """Return for each alpha of a grid, and the one in use: its threshold, the self-check, the mean size of the sets.

    ``q_hat`` is that of the whole calibration set (one for all questions), None where infinite. ``coverage`` and
    ``band`` are those of ``check_coverage``, on the same halves for every alpha; None where a half is too small.
    ``mean_set_size`` is over all questions of the pool; None where their answers are not all known (``pool`` None). An
    alpha too small for the calibration set has no row.
    Choosing alpha by this curve is choosing it after seeing the data.
    """
    scores, threshold = calibration.nonconformity_scores, THRESHOLDS[config.quantile]
    alphas = [alpha for alpha in sorted({*ALPHAS, config.alpha_fraction}) if n_wanted(alpha) <= len(scores)]
    q_hats = np.array([threshold(scores, alpha) for alpha in alphas])
    sizes = [None] * len(alphas) if pool is None else _mean_set_sizes(pool, q_hats, config)
    rows = []
    for alpha, q_hat, size in zip(alphas, q_hats.tolist(), sizes, strict=True):
        check = check_coverage(
            scores,
            calibration.is_absent,
            alpha,
            quantile=config.quantile,
            rng=question_rng(config.seed, "coverage_check", ""),
        )
        rows.append(
            {
                "alpha": float(alpha),
                "q_hat": None if isinf(q_hat) else q_hat,
                "coverage": check.get("coverage"),
                "band": check.get("band"),
                "mean_set_size": size,
            }
        )
    return rows


def _mean_set_sizes(table: VoteTable, q_hats: Floats, config: SelectionConfig) -> list[float]:
    counts = np.zeros(len(q_hats), np.int64)
    for _, votes, answer_scores in answer_scores_of(table, config):
        given = np.sort(answer_scores[votes.counts > 0])
        counts += np.searchsorted(given, q_hats, side="right")
    return (counts / max(1, len(table))).tolist()


def score_histogram(calibration: Calibration) -> list[dict[str, float | int]]:
    """Return how many calibration truths score within each twentieth, from the lowest to the highest; absent ones not.

    A score on a border belongs to the bin below it, as a score equal to the threshold is within it.
    """
    scores = calibration.nonconformity_scores[~calibration.is_absent]
    if not len(scores):
        return []
    steps = np.ceil(np.round(scores / float(BIN), 9)).astype(int) - 1
    low, high = int(steps.min()), int(steps.max())
    counts = np.bincount(steps - low, minlength=high - low + 1)
    bounds = [float(step * BIN) for step in range(low, high + 2)]
    return [{"from": bounds[i], "to": bounds[i + 1], "n": n} for i, n in enumerate(counts.tolist())]
