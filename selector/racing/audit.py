"""What a probabilistic race missed: a random sample of the dropped questions is completed, and speaks for all of them.

Each dropped question is drawn with a probability in proportion to the chance it was given to win, and counts for one
over that probability (Horvitz and Thompson 1952). The interval treats the misses found as Poisson counts with weights
(Fay and Feuer 1997); it is cautious, and it is wide where the sample is small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selector.seeds import question_uniform

Floats = NDArray[np.float64]


def draw_audit(chances: Mapping[int, float], uids: Sequence[str], n: int, seed: int) -> dict[int, float]:
    """Draw about ``n`` of the dropped rows; return each with the probability that it had of being drawn."""
    rows = sorted(chances, key=lambda row: uids[row])
    probabilities = inclusion_probabilities(np.array([chances[row] for row in rows], np.float64), n)
    return {
        row: float(probability)
        for row, probability in zip(rows, probabilities, strict=True)
        if question_uniform(seed, "audit", uids[row]) < probability
    }


def inclusion_probabilities(chances: Floats, n: int) -> Floats:
    """Return min(1, c p) [D] for chances p [D], with c such that they sum to n; all 1 where n is the number or more."""
    if n >= len(chances):
        return np.ones(len(chances))
    is_sure = np.zeros(len(chances), bool)
    while True:
        rest = n - np.count_nonzero(is_sure)
        scaled = np.where(is_sure, 1.0, rest * chances / max(chances[~is_sure].sum(), 1e-300))
        if not (over := ~is_sure & (scaled >= 1)).any():
            return np.minimum(scaled, 1.0)
        is_sure |= over


@dataclass(frozen=True)
class Estimate:
    """How many of the dropped questions were missed winners: found in the sample, estimated of all, 95 % interval."""

    n_found: int
    estimate: float
    low: float
    high: float

    def to_json(self) -> dict[str, object]:
        """Return plain values, rounded for people."""
        return {
            "found": self.n_found,
            "estimate": round(self.estimate, 3),
            "interval": [round(self.low, 3), round(self.high, 3)],
            "level": 0.95,
        }


def estimate_missed(is_missed: NDArray[np.bool_], probabilities: Floats) -> Estimate:
    """Estimate the number of misses among all from those of a sample [A] and their inclusion probabilities [A].

    A sample in which every question was sure to be leaves nothing to estimate.
    """
    from scipy.stats import chi2

    weights = 1 / probabilities
    found, total = int(np.count_nonzero(is_missed)), float(weights[is_missed].sum())
    uncertain = probabilities < 1
    sure = float(np.count_nonzero(is_missed & ~uncertain))
    if not uncertain.any():
        return Estimate(found, total, total, total)
    part, variance = total - sure, float((weights[is_missed & uncertain] ** 2).sum())
    most = float(weights[uncertain].max())
    low = variance / (2 * part) * chi2.ppf(0.025, 2 * part**2 / variance) if part else 0.0
    high_part, high_variance = part + most, variance + most**2
    high = high_variance / (2 * high_part) * chi2.ppf(0.975, 2 * high_part**2 / high_variance)
    return Estimate(found, total, sure + float(low), sure + float(high))
