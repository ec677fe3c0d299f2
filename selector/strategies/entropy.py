"""Entropy sampling: the questions whose readable answers disagree most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.conformal import readable_entropy
from selector.strategies.contract import PoolScores, Strategy


class VoteEntropy(Strategy):
    """Pick the highest normalised entropy of the readable answers, over the whole pool."""

    key = "entropy"
    title = "Entropy of the answers"
    uses_clusters = False

    def acquisition_scores(self, scores: PoolScores, seed: int) -> NDArray[np.float64]:
        """Return the entropy over readable answers only."""
        return readable_entropy(scores.table.codes)
