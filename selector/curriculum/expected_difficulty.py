"""Expected difficulty: roll out the questions believed nearest to a half (a baseline of arXiv 2603.01907)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.curriculum.contract import ScoredCurriculum


class ExpectedDifficulty(ScoredCurriculum):
    """Roll out the questions whose expected success rate is nearest to 1/2, however sure that is.

    Questions nobody has tried are expected at exactly 1/2, so all of them come before the rest.
    """

    key = "expected_difficulty"
    title = "Expected difficulty: nearest to a half"
    source = "arXiv 2603.01907"

    def score(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return -|a / (a + b) - 1/2|."""
        return -np.abs(a / (a + b) - 0.5)
