"""PivotTrace by density: pivots per token, so that length alone does not decide. A reconstruction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.internals import Internals
from selector.strategies.pivot_trace import PivotCount


class PivotDensity(PivotCount):
    """Pick the chains with the most pivots per token: the abstract says density, a report of its authors number."""

    key = "pivot_density"
    title = "PivotTrace by density: pivots per token (reconstruction)"

    @classmethod
    def _measure(cls, internals: Internals) -> NDArray[np.float64]:
        return internals.pivot_density.astype(np.float64)
