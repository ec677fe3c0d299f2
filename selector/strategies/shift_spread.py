"""SHIFT without the distance travelled (its ablation): chains that go different ways."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.internals import required
from selector.strategies.contract import Evidence, Rows
from selector.strategies.shift import HiddenStateShift, directions, farthest_first


class HiddenStateSpread(HiddenStateShift):
    """Pick farthest first over phi = [start ; end - start] at unit length, beginning as SHIFT does."""

    key = "shift_spread"
    title = "SHIFT's ablation: hidden states that travel apart"

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
        """Return the greedy set, in the order in which it was chosen."""
        return farthest_first(
            directions(required(evidence.internals, self.key)),
            np.ones(len(evidence)),
            acquisition_scores,
            uids=evidence.uids,
            candidates=candidates,
            chosen=chosen,
            budget=budget,
        )
