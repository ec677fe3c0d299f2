"""How choices differ and what they look like: measures over plain arrays of S strategies and N questions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PROFILE_BINS = ("0", "to 25 %", "to 50 %", "to 75 %", "below 100 %", "100 %")
MOST_COMPARED = 2_000  # of a larger pool an even share stands for all in the mean distance of the whole pool


def overlap_matrix(is_picked: NDArray[np.bool_]) -> Floats:
    """Return the Jaccard index |A and B| / |A or B| of every two selections [S, S], from who picked what [S, N].

    Two empty selections are equal: 1.
    """
    picked = is_picked.astype(np.int64)
    common = picked @ picked.T
    sizes = picked.sum(axis=1)
    union = sizes[:, None] + sizes[None, :] - common
    return np.where(union > 0, common / np.maximum(union, 1), 1.0)


def expected_jaccard(n: int, size: int, other_size: int) -> float:
    """Return the mean Jaccard index of two independent uniform selections of these sizes from n questions.

    Their overlap is hypergeometric, so this is the exact sum over its values.
    """
    from scipy.stats import hypergeom

    if size + other_size == 0:
        return 1.0
    common = np.arange(max(0, size + other_size - n), min(size, other_size) + 1)
    return float(np.sum(hypergeom(n, size, other_size).pmf(common) * common / (size + other_size - common)))


def spearman_matrix(scores: Floats) -> Floats:
    """Return Spearman's correlation of every two rows of scores [S, N], ties sharing their mean rank.

    NaN where one of the two is constant, or there are fewer than two questions.
    """
    from scipy.stats import rankdata

    n_strategies, n = scores.shape
    if n < 2:
        return np.full((n_strategies, n_strategies), np.nan)
    ranks = rankdata(scores, axis=1)
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.sum(centred**2, axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (centred @ centred.T) / (spread[:, None] * spread[None, :])
    varies = spread > 0
    return np.where(varies[:, None] & varies[None, :], np.clip(found, -1.0, 1.0), np.nan)


def kendall_matrix(scores: Floats) -> Floats:
    """Return Kendall's tau-b, which corrects for ties, of every two rows of scores [S, N]; NaN as for Spearman."""
    from scipy.stats import kendalltau

    n_strategies = len(scores)
    found = np.full((n_strategies, n_strategies), np.nan)
    varies = [len(row) > 1 and bool(np.ptp(row) > 0) for row in scores]
    for i in range(n_strategies):
        if varies[i]:
            found[i, i] = 1.0
    for i, j in combinations(range(n_strategies), 2):
        if varies[i] and varies[j]:
            found[i, j] = found[j, i] = float(kendalltau(scores[i], scores[j]).statistic)
    return found


def share_profile(shares: Floats) -> list[int]:
    """Count shares in [0, 1] by ``PROFILE_BINS``: exactly 0, then quarters (upper end included), exactly 1 apart."""
    inner = shares[(shares > 0) & (shares < 1)]
    quarters = np.bincount(np.clip(np.ceil(inner * 4).astype(int) - 1, 0, 3), minlength=4)
    return [int(np.count_nonzero(shares <= 0)), *quarters.tolist(), int(np.count_nonzero(shares >= 1))]


def mean_pairwise_distance(vectors: NDArray[np.float32]) -> float:
    """Return the mean Euclidean distance of every two of the vectors [k, D]; NaN for fewer than two."""
    from scipy.spatial.distance import pdist

    return float(np.mean(pdist(vectors.astype(np.float64)))) if len(vectors) > 1 else float("nan")


def evenly(n: int, most: int = MOST_COMPARED) -> NDArray[np.intp]:
    """Return at most ``most`` of n row numbers, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)) if n else np.zeros(0, np.intp)


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the central interval that holds ``level`` of the values."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def expected_clusters(sizes: NDArray[np.int64], n_picks: int) -> float:
    """Return how many clusters of these sizes a uniform selection of ``n_picks`` questions covers on average.

    The sum over clusters of 1 - C(N - size, b) / C(N, b), the chance that one of its questions is drawn.
    """
    from scipy.stats import hypergeom

    sizes = sizes[sizes > 0]
    n = int(sizes.sum())
    return float(np.sum(1 - hypergeom(n, sizes, min(n_picks, n)).pmf(0)))
