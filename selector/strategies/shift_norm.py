"""SHIFT without diversity (its ablation): the chains that travel furthest."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from selector.internals import required
from selector.strategies.contract import Evidence, Need, Strategy
from selector.strategies.shift import log_shift


class HiddenStateShiftAlone(Strategy):
    """Pick the largest ln(1 + ||end - start||), however alike the chains are."""

    key = "shift_norm"
    title = "SHIFT's ablation: hidden states that travel far"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.HIDDEN_STATES})
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return ln(1 + ||end - start||)."""
        return log_shift(required(evidence.internals, self.key))
