"""How far GRPO's advantages would move if the majority answer turned out wrong, judged from the votes alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selector.conformal import count_votes
from selector.strategies.contract import Evidence, Need, Strategy


def advantage_gap(n: ArrayLike, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Return ||A(pseudo) - A(true)||_2 over a group of n rollouts, where x rewards are 1 under a wrong pseudo-label and
    y others under the truth; x + y <= n, elementwise.

    A is GRPO's advantage (reward less mean, over the population standard deviation; 0 where all rewards agree):
    D^2 = n ([0 < x < n] + [0 < y < n]) + 2 n x y / sqrt(x (n - x) y (n - y)), the last term where both vary.
    Source: CARE (arXiv 2605.25864).
    """
    n, x, y = (np.asarray(each, np.float64) for each in (n, x, y))
    x_varies, y_varies = (x > 0) & (x < n), (y > 0) & (y < n)
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = 2 * n * x * y / np.sqrt(x * (n - x) * y * (n - y))
    squared = n * x_varies + n * y_varies + np.where(x_varies & y_varies, cross, 0.0)
    return np.asarray(np.sqrt(squared), np.float64)


class AdvantageGapFromVotes(Strategy):
    """Pick the largest expected advantage gap, each minority answer being right with its share of the votes.

    The published method trains probes on hidden states and labels; this simplification needs neither.
    """

    key = "care_proxy"
    title = "CARE from votes alone: expected advantage gap (reconstruction)"
    provenance = "reconstruction"
    needs = frozenset({Need.COMPLETE_VOTES})
    votes = "outcomes"
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return the sum over minority answers c of (size_c / n) D(majority, size_c).

        n counts unread rollouts, which are right under no label.
        """
        codes = evidence.scores.table.codes
        n = codes.shape[1]
        sizes = np.sort(count_votes(codes, unread="dropped").counts, axis=1)[:, ::-1]
        majority, minorities = sizes[:, :1], sizes[:, 1:]
        gaps = minorities / max(n, 1) * advantage_gap(n, majority, minorities)
        return np.asarray(gaps.sum(axis=1), np.float64)
