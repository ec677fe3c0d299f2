"""PivotTrace: questions whose chains look far back most often. A reconstruction; no formula is public."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from selector.errors import MissingEvidence
from selector.internals import Internals, required
from selector.strategies.contract import Evidence, Need, Strategy


class PivotCount(Strategy):
    """Pick the chains with the most pivots: peaks of the attention that global heads give to distant tokens.

    arXiv 2606.04503 is known by its abstract; see selector.internals.pivots for what is counted here and why.
    """

    key = "pivot_trace"
    title = "PivotTrace: pivots of long-range attention (reconstruction)"
    provenance = "reconstruction"
    is_nested = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ATTENTION})

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return the number of pivots. Raises MissingEvidence where the model's attention could not be read."""
        return self.uncertainty(required(evidence.internals, self.key))

    @classmethod
    def uncertainty(cls, internals: Internals) -> NDArray[np.float64]:
        """Return what questions are ranked by [N]. Raises MissingEvidence."""
        if (internals.n_pivots < 0).any():
            how = "the internals of a model whose architecture shows its attention, such as Llama or Qwen"
            raise MissingEvidence(strategy=cls.key, need=Need.ATTENTION, how_to_get=how)
        return cls._measure(internals)

    @classmethod
    def _measure(cls, internals: Internals) -> NDArray[np.float64]:
        return internals.n_pivots.astype(np.float64)
