"""The baseline: questions drawn uniformly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.seeds import question_uniform
from selector.strategies.contract import Evidence, Strategy


class RandomBaseline(Strategy):
    """Pick questions uniformly at random; the draw depends on the run's seed and the question's uid alone."""

    key = "random"
    title = "Random"
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return one uniform draw in [0, 1) a question."""
        return np.array([question_uniform(seed, self.key, uid) for uid in evidence.uids], dtype=np.float64)
