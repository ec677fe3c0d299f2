"""Calibrated entropy-weighted clustering: the middle of each region in which the model is uncertain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from selector.conformal import readable_entropy
from selector.diversity import cluster
from selector.errors import MissingEvidence
from selector.strategies.contract import HOW_TO_GET, Evidence, Need, Rows, Strategy
from selector.votes import canonical_order

N_NEIGHBOURS = 10
FLOOR = 1e-6  # added to every weight, so that a pool without any disagreement is clustered evenly


class EntropyWeightedClustering(Strategy):
    """Cluster the questions, weighted by their own and their neighbours' uncertainty, into one cluster for each pick;
    pick the question nearest to each centre.

    Rebuilt for open answers from Safaei and Patel (arXiv 2410.22187), who classify images: answers share no classes
    whose prior could be calibrated, so uncertainty is the entropy of the readable answers; 10 neighbours, weights
    exp(-distance) (their numbers are not public). In a second round the clusters that hold labeled questions have had
    their pick.
    """

    key = "cec"
    title = "CEC: entropy-weighted clustering (reconstruction)"
    provenance = "reconstruction"
    needs = frozenset({Need.COMPLETE_VOTES, Need.EMBEDDINGS})
    votes = "outcomes"

    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return the entropy of a question's answers plus the mean entropy of its neighbours, nearer ones first."""
        entropy = readable_entropy(evidence.scores.table.codes)
        return entropy + neighbour_mean(_embeddings(evidence), entropy, evidence.uids)

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
        """Return the candidate nearest to each centre, from the cluster with the most uncertainty down."""
        order = canonical_order(evidence.uids)
        rows = order[np.isin(order, candidates) | np.isin(order, chosen)]
        if not len(rows) or not budget:
            return np.zeros(0, np.intp)
        weights = acquisition_scores[rows] + FLOOR
        n = min(budget + len(chosen), len(rows))
        uids = [evidence.uids[row] for row in rows]
        labels, distances = cluster(_embeddings(evidence)[rows], uids, n, seed, weights=weights)
        total = np.bincount(labels, weights, minlength=n)
        is_candidate = np.isin(rows, candidates)
        served = set(labels[~is_candidate].tolist())
        nearest: dict[int, int] = {}  # the first of the nearest in canonical order
        for place in np.lexsort([np.arange(len(rows)), distances]).tolist():
            if is_candidate[place] and labels[place] not in served:
                nearest.setdefault(int(labels[place]), place)
        places = sorted(nearest.values(), key=lambda place: (-total[labels[place]], place))
        return rows[places[:budget]]


def neighbour_mean(
    embeddings: NDArray[np.float32], values: NDArray[np.float64], uids: tuple[str, ...]
) -> NDArray[np.float64]:
    """Return the mean of ``values`` [N] over each row's 10 nearest neighbours [N], weighted by exp(-distance)."""
    from sklearn.neighbors import NearestNeighbors
    from threadpoolctl import threadpool_limits

    k = min(N_NEIGHBOURS, len(values) - 1)
    means = np.zeros(len(values))
    if k < 1:
        return means
    order = canonical_order(uids)
    rows = embeddings[order].astype(np.float64)
    with threadpool_limits(1):
        distances, neighbours = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(rows).kneighbors()
    weights = np.exp(distances.min(axis=1, keepdims=True) - distances)  # far from everything, the nearest still count
    means[order] = (weights * values[order][neighbours]).sum(axis=1) / weights.sum(axis=1)
    return means


def _embeddings(evidence: Evidence) -> NDArray[np.float32]:
    if evidence.embeddings is None:
        how = HOW_TO_GET[Need.EMBEDDINGS]
        raise MissingEvidence(strategy=EntropyWeightedClustering.key, need=Need.EMBEDDINGS, how_to_get=how)
    return evidence.embeddings
