"""No selection at all: the whole pool is labeled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.strategies.contract import Evidence, Strategy


class FullPool(Strategy):
    """Pick every question that may be picked, whatever the budget says: what a selection is compared with."""

    key = "full"
    title = "The full pool"
    needs_budget = False

    def n_picks(self, budget: int, n_eligible: int) -> int:
        """Return all of them."""
        return n_eligible

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return 0 for each question: none is better than another."""
        return np.zeros(len(evidence))
