"""The baseline: questions drawn uniformly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.curriculum.contract import Curriculum


class RandomCurriculum(Curriculum):
    """Roll out k questions drawn uniformly without replacement, anew at each step; rewards change nothing."""

    key = "random"
    title = "Random"
    source = "baseline"

    def choose(self, k: int) -> NDArray[np.intp]:
        """Return the first k rows of a random order."""
        return self.draw_candidates(k)[:k]
