"""Inverse evidence: roll out the questions about which least is known (a baseline of arXiv 2603.01907)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.curriculum.contract import ScoredCurriculum


class InverseEvidence(ScoredCurriculum):
    """Roll out the questions of least evidence, 1 / (a + b), whatever their difficulty."""

    key = "inverse_evidence"
    title = "Inverse evidence: least known first"
    source = "arXiv 2603.01907"

    def score(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 1 / (a + b)."""
        return np.asarray(1 / (a + b))
