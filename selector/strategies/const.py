"""CONST: the largest prediction set of each cluster (complementary conformal selection)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.strategies.contract import Evidence, Need, Strategy


class ConformalSetSizeByCluster(Strategy):
    """Pick the question with the largest prediction set from each of b clusters."""

    key = "const"
    title = "CONST: largest prediction set per cluster"
    needs = frozenset({Need.CALIBRATION, Need.VOTES, Need.EMBEDDINGS})
    uses_clusters = True
    can_be_raced = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return the set size."""
        return evidence.scores.set_size.astype(np.float64)
