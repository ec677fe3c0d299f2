"""SHIFT without the distance travelled (its ablation): chains that go different ways."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.strategies.shift import HiddenStateShift


class HiddenStateSpread(HiddenStateShift):
    """Pick farthest first over phi = [start ; end - start] at unit length, beginning as SHIFT does."""

    key = "shift_spread"
    title = "SHIFT's ablation: hidden states that travel apart"

    def weights(self, acquisition_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 1 for each question: distance alone counts."""
        return np.ones(len(acquisition_scores))
