"""Entropy sampling: the questions whose readable answers disagree most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.conformal import readable_entropy
from selector.strategies.contract import Cost, Evidence, Need, Strategy


class VoteEntropy(Strategy):
    """Pick the highest normalised entropy of the readable answers, over the whole pool."""

    key = "entropy"
    title = "Entropy of the answers"
    needs = frozenset({Need.COMPLETE_VOTES})
    is_nested = True

    @classmethod
    def cost(cls, n_outcomes: int, n_probes: int) -> Cost:
        """Return sampled answers alone: probes count where there are some, and are not asked for."""
        return super().cost(n_outcomes, 0 if n_outcomes else n_probes)

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return the entropy over readable answers only."""
        return readable_entropy(evidence.scores.table.codes)
