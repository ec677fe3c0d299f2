"""SHIFT: how far the hidden state travels from the beginning of a chain to its end, and chains that go elsewhere."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from selector.internals import Internals, required
from selector.strategies.contract import Evidence, Need, Rows, Strategy
from selector.votes import canonical_order

ROWS_AT_ONCE = 4096


def log_shift(internals: Internals) -> NDArray[np.float64]:
    """Return ln(1 + ||end - start||) [N]; 0 for an empty chain."""
    travelled = internals.end.astype(np.float64) - internals.start
    return np.log1p(np.linalg.norm(travelled, axis=1))


def directions(internals: Internals) -> NDArray[np.float32]:
    """Return [start ; end - start] at unit length [N, 2D]; an empty chain's is 0."""
    joined = np.concatenate([internals.start, internals.end - internals.start], axis=1).astype(np.float32)
    lengths = np.linalg.norm(joined, axis=1, keepdims=True)
    return np.divide(joined, lengths, out=np.zeros_like(joined), where=lengths > 0)


def farthest_first(
    points: NDArray[np.float32],
    weights: NDArray[np.float64],
    first: NDArray[np.float64],
    *,
    uids: tuple[str, ...],
    candidates: Rows,
    chosen: Rows,
    budget: int,
) -> Rows:
    """Pick the candidate with the largest weight times distance to the nearest point picked or ``chosen``, again and
    again; with nothing chosen begin at the largest ``first``. Ties go by sha256 of the uid.

    points [N, D]; weights and first [N], not negative. O(N budget D).
    """
    order = canonical_order(uids)
    left = order[np.isin(order, candidates)]
    nearest = np.full(len(points), np.inf)
    for row in chosen.tolist():
        nearest = np.minimum(nearest, _distances(points, row))
    picked: list[int] = []
    while len(left) and len(picked) < budget:
        gains = weights[left] * nearest[left] if picked or len(chosen) else first[left]
        best = int(left[np.argmax(gains)])
        picked.append(best)
        left = left[left != best]
        nearest = np.minimum(nearest, _distances(points, best))
    return np.array(picked, np.intp)


def _distances(points: NDArray[np.float32], row: int) -> NDArray[np.float64]:
    found = np.empty(len(points))
    for start in range(0, len(points), ROWS_AT_ONCE):
        found[start : start + ROWS_AT_ONCE] = np.linalg.norm(points[start : start + ROWS_AT_ONCE] - points[row], axis=1)
    return found


class HiddenStateShift(Strategy):
    """Pick the chain that travels furthest, then again and again the one that travels far and unlike those picked.

    arXiv 2605.28631: q = ln(1 + ||end - start||), phi = [start ; end - start] at unit length; first the largest q,
    then the largest q times the distance of phi to the nearest one picked. No settings.
    """

    key = "shift"
    title = "SHIFT: hidden states that travel far, and apart"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.HIDDEN_STATES})
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return ln(1 + ||end - start||)."""
        return log_shift(required(evidence.internals, self.key))

    def weights(self, acquisition_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a question's distance to those picked is multiplied by [N]: how far its chain travels."""
        return acquisition_scores

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
            self.weights(acquisition_scores),
            acquisition_scores,
            uids=evidence.uids,
            candidates=candidates,
            chosen=chosen,
            budget=budget,
        )
