"""Entropy-weighted sampling: questions drawn with probability proportional to the entropy of their answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.conformal import readable_entropy
from selector.seeds import question_uniform
from selector.strategies.contract import Evidence, Need, Strategy

FLOOR = 1e-6  # added to every weight, so that a pool without any disagreement is drawn from uniformly


class EntropyWeightedSampling(Strategy):
    """Draw without replacement with probability proportional to the normalised entropy of the readable answers.

    Gumbel top-b: ln(weight) plus a Gumbel draw for each question, the largest b. The comparison that names the method
    gives no formula; this one is rebuilt from the name.
    """

    key = "ews"
    title = "EWS: entropy-weighted sampling (reconstruction)"
    provenance = "reconstruction"
    needs = frozenset({Need.COMPLETE_VOTES})
    votes = "outcomes"
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return ln(entropy + 1e-6) - ln(-ln u), u uniform in (0, 1) by seed and uid."""
        weights = readable_entropy(evidence.scores.table.codes) + FLOOR
        draws = np.array([question_uniform(seed, self.key, uid) for uid in evidence.uids], dtype=np.float64)
        scores: NDArray[np.float64] = np.log(weights) - np.log(-np.log(np.maximum(draws, 2.0**-54)))
        return scores
