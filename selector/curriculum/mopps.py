"""MoPPS: draw a success rate from each belief and roll out the questions drawn nearest to a half (arXiv 2507.04632)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selector.curriculum.contract import CandidateSettings, Curriculum, best_first
from selector.errors import InvalidConfig

STRATEGIES = ("topk", "threshold")


@dataclass(frozen=True, kw_only=True)
class MoppsSettings(CandidateSettings):
    """``strategy``: "topk" takes the draws nearest to ``target``; "threshold" takes a uniform draw of those in
    [``low``, ``high``], and the nearest outside where there are too few. A stored rollout counts for three here, as in
    the authors' code.
    """

    prior_weight: float = 3.0
    strategy: str = "topk"
    target: float = 0.5
    low: float = 0.3
    high: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strategy not in STRATEGIES:
            raise InvalidConfig("strategy", self.strategy, f"one of {', '.join(STRATEGIES)}")
        self.check_number("target", low=0, high=1)
        self.check_number("low", low=0, high=1)
        self.check_number("high", low=0, high=1)
        if self.low > self.high:
            raise InvalidConfig("low", self.low, f"at most high, which is {self.high}")


class Mopps(Curriculum):
    """Posterior sampling: one draw from the belief of each candidate, once a step; nearest to the target first."""

    key = "mopps"
    title = "MoPPS: posterior sampling of difficulty"
    source = "arXiv 2507.04632"
    settings_class = MoppsSettings
    settings: MoppsSettings

    def choose(self, k: int) -> NDArray[np.intp]:
        """Return k rows by the strategy of the settings."""
        candidates = self.draw_candidates(k)
        drawn = self.rng.beta(self.beliefs.a[candidates], self.beliefs.b[candidates])
        if self.settings.strategy == "topk":
            distance = np.abs(drawn - self.settings.target)
        else:  # candidates come in random order: the first k inside the interval are a uniform draw of them
            distance = np.maximum(np.maximum(self.settings.low - drawn, drawn - self.settings.high), 0.0)
        return candidates[best_first(-distance, k)]
