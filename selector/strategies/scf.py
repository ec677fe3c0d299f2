"""Self-consistency filtering: leave out what the model always or never agrees on, draw from the rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.conformal import count_votes
from selector.seeds import question_uniform
from selector.strategies.contract import Evidence, Need, Strategy


class SelfConsistencyFiltering(Strategy):
    """Drop questions whose majority answer has 90 % or more of the readable votes (too easy), or two votes or fewer
    (noise); draw uniformly from the rest.

    The comparison that names the method gives no formula; this one is rebuilt from the name.
    """

    key = "scf"
    title = "SCF: self-consistency filtering (reconstruction)"
    provenance = "reconstruction"
    needs = frozenset({Need.COMPLETE_VOTES})
    votes = "outcomes"
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return a uniform draw in [0, 1) for what is kept, less 1 for what is dropped: that comes last."""
        votes = count_votes(evidence.scores.table.codes, unread="dropped")
        majority = votes.counts.max(axis=1, initial=0)
        is_kept = (10 * majority < 9 * votes.n_readable) & (majority > 2)
        draws = np.array([question_uniform(seed, self.key, uid) for uid in evidence.uids], dtype=np.float64)
        return draws - ~is_kept
