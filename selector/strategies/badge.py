"""BADGE: gradients that are large and unlike each other, drawn by k-means++ without ever forming a gradient."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from selector.internals import Internals, required
from selector.seeds import question_uniform
from selector.strategies.contract import Evidence, Need, Rows, Strategy
from selector.votes import canonical_order


class GradientEmbeddings:
    """The gradients (p - onehot(argmax p)) h^T of N questions, as their factors r [N, V] (sparse) and h [N, D].

    ``tokens`` [N, K] are the tokens whose probabilities [N, K] are known, likeliest first; what the others have is
    taken as 0. Distances follow from ||g - g'||^2 = |r|^2 |h|^2 + |r'|^2 |h'|^2 - 2 <r, r'> <h, h'>.
    """

    def __init__(
        self, tokens: NDArray[np.int32], probabilities: NDArray[np.float32], hidden: NDArray[np.float32]
    ) -> None:
        n, k = tokens.shape
        residuals = probabilities.astype(np.float64)
        if k:
            residuals[:, 0] -= 1
        width = int(tokens.max(initial=0)) + 1
        starts = np.arange(n + 1) * k
        self._residuals = csr_array((residuals.ravel(), tokens.ravel(), starts), shape=(n, width))
        self._hidden = hidden.astype(np.float64)
        self.squared_norms: NDArray[np.float64] = (residuals**2).sum(axis=1) * (self._hidden**2).sum(axis=1)

    def squared_distances(self, row: int) -> NDArray[np.float64]:
        """Return ||g_i - g_row||^2 of every question [N], never below 0; the same on any number of threads."""
        hidden = np.einsum("nd,d->n", self._hidden, self._hidden[row])
        products = (self._residuals @ self._residuals[[row]].toarray().ravel()) * hidden
        found: NDArray[np.float64] = np.maximum(self.squared_norms + self.squared_norms[row] - 2 * products, 0)
        found[row] = 0
        return found


class GradientDiversity(Strategy):
    """Pick the largest gradient, then draw with probability proportional to the squared distance to those picked.

    The published rule (Ash et al., BADGE) is for classifiers. What a language model's h and p are is a reconstruction:
    here h is the last hidden state at the last prompt token, after the final norm, and p the distribution of the first
    token of the answer, as far as its 256 likeliest tokens go.
    """

    key = "badge"
    title = "BADGE: large and diverse gradients (reconstruction for language models)"
    provenance = "reconstruction"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.HIDDEN_STATES, Need.TOKEN_PROBABILITIES})
    is_nested = True

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return the length of the gradient."""
        return np.sqrt(_gradients(required(evidence.internals, self.key)).squared_norms)

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
        """Return the draws of k-means++, uniform where all that is left lies on what was picked.

        The k-th draw depends on the seed and k alone, so that a second round goes on as one round would have.
        """
        gradients = _gradients(required(evidence.internals, self.key))
        order = canonical_order(evidence.uids)
        left = order[np.isin(order, candidates)]
        nearest = np.full(len(evidence), np.inf)
        for row in chosen.tolist():
            nearest = np.minimum(nearest, gradients.squared_distances(row))
        picked: list[int] = []
        while len(left) and len(picked) < budget:
            n_picked = len(picked) + len(chosen)
            if n_picked:
                place = _draw(nearest[left], question_uniform(seed, self.key, str(n_picked)))
            else:
                place = int(np.argmax(gradients.squared_norms[left]))
            row = int(left[place])
            picked.append(row)
            left = np.delete(left, place)
            nearest = np.minimum(nearest, gradients.squared_distances(row))
        return np.array(picked, np.intp)


def _gradients(internals: Internals) -> GradientEmbeddings:
    return GradientEmbeddings(internals.top_tokens, internals.top_probabilities, internals.prompt_hidden)


def _draw(weights: NDArray[np.float64], uniform: float) -> int:
    """Return a place [0, n) with probability proportional to its weight, or uniformly where all weights are 0."""
    if not weights.any():
        return int(uniform * len(weights))
    cumulative = np.cumsum(weights)
    place = int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))
    return min(place, int(np.flatnonzero(weights)[-1]))
