"""MaPP-PS: roll out questions with the probability that their rewards will differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selector.curriculum.contract import CandidateSettings, ScoredCurriculum, best_first


def probability_of_variance(a: NDArray[np.float64], b: NDArray[np.float64], rollouts: int) -> NDArray[np.float64]:
    """Return V = 1 - B(a+K, b) / B(a, b) - B(a, b+K) / B(a, b): [U] to [U], in [0, 1).

    That K rollouts are neither all right nor all wrong, for p ~ Beta(a, b).
    """
    steps = np.arange(rollouts)
    total = np.log((a + b)[:, None] + steps).sum(axis=1)
    all_right = np.exp(np.log(a[:, None] + steps).sum(axis=1) - total)
    all_wrong = np.exp(np.log(b[:, None] + steps).sum(axis=1) - total)
    return np.asarray(np.maximum(1 - all_right - all_wrong, 0.0))


@dataclass(frozen=True, kw_only=True)
class MappSettings(CandidateSettings):
    """``rollouts``: of each question a step, at least 2: one reward alone never differs. Half of the earlier evidence
    is kept at each visit, and all questions are candidates.
    """

    lam: float = 0.5
    candidate_ratio: int | None = None
    rollouts: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole("rollouts", low=2)


class Mapp(ScoredCurriculum):
    """Draw questions one after another, without replacement, with probability proportional to V."""

    key = "mapp"
    title = "MaPP-PS: sampling by the chance that rewards differ"
    source = "MaPP-PS"
    settings_class = MappSettings
    settings: MappSettings

    def score(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ln V; a V too small for its digits counts as the smallest that is not."""
        v = probability_of_variance(a, b, self.settings.rollouts)
        return np.asarray(np.log(np.maximum(v, np.finfo(np.float64).eps)))

    def choose(self, k: int) -> NDArray[np.intp]:
        """Return k rows: the highest of ln V + Gumbel noise, which is the same as drawing them one after another."""
        candidates = self.draw_candidates(k)
        noisy = self.scores()[candidates] + self.rng.gumbel(size=len(candidates))
        return candidates[best_first(noisy, k)]
