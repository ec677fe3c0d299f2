"""Partial rollouts: questions whose chains begin with middling uncertainty. Rebuilt from the title alone."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from selector.internals import required
from selector.strategies.contract import Evidence, Need, Strategy


class MiddleOfPrefixEntropy(Strategy):
    """Pick the middle of the pool by the mean token entropy of the first quarter of the greedy chain.

    Neither the paper ("Training-Free Prompt Selection for Efficient RL With Partial Rollouts") nor its abstract was
    found: this is a guess at its rule, of low confidence, and not the published method.
    """

    key = "partial_rollouts"
    title = "Partial rollouts: middling entropy at the start (reconstruction from a title, low confidence)"
    provenance = "reconstruction"
    is_nested = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.TOKEN_PROBABILITIES})

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return 1 at the middle rank of the pool, falling to 0 at the least and the most uncertain."""
        entropy = required(evidence.internals, self.key).prefix_token_entropy
        places = (rankdata(entropy) - 0.5) / max(len(entropy), 1)
        return np.asarray(1 - np.abs(2 * places - 1), np.float64)
