"""Entropy sampling over tokens: the model's uncertainty while it writes one answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.internals import required
from selector.strategies.contract import Evidence, Need, Strategy


class TokenEntropy(Strategy):
    """Pick the highest mean entropy of the next-token distributions along one greedy chain, over the whole pool."""

    key = "token_entropy"
    title = "Entropy of the tokens"
    needs = frozenset({Need.TOKEN_PROBABILITIES})
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return the mean token entropy in nats; 0 for an empty chain."""
        return required(evidence.internals, self.key).mean_token_entropy.astype(np.float64)
