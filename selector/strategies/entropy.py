"""Entropy sampling: the questions whose readable answers disagree most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.conformal import readable_entropy
from selector.strategies.contract import Evidence, Need, Strategy


class VoteEntropy(Strategy):
    """Pick the highest normalised entropy of the readable answers, over the whole pool."""

    key = "entropy"
    title = "Entropy of the answers"
    needs = frozenset({Need.COMPLETE_VOTES})
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return the entropy over readable answers only."""
        return readable_entropy(evidence.scores.table.codes)
