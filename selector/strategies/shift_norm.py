"""SHIFT without diversity (its ablation): the chains that travel furthest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.strategies.contract import Evidence, Rows
from selector.strategies.shift import HiddenStateShift


class HiddenStateShiftAlone(HiddenStateShift):
    """Pick the largest ln(1 + ||end - start||), however alike the chains are."""

    key = "shift_norm"
    title = "SHIFT's ablation: hidden states that travel far"

    def choose(
        self,
        evidence: Evidence,
        acquisition_scores: NDArray[np.float64],
        *,
        candidates: Rows,
        chosen: Rows,
        budget: int,
        seed: int,
    ) -> Rows | None:
        """Leave it to the scores."""
        return None
