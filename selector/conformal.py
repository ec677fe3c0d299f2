"""Split conformal prediction over sampled answers: scores, the exact-rank threshold, and checks of both.

The score of an answer y to a question with n votes is ``-freq(y) + lam * H``, with H the entropy of the votes divided
by ln n. Calibration and pool go through the same function here, so that equal votes give equal scores to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from selector.errors import CalibrationSetTooSmall

CHUNK = 8_192  # questions scored at a time, so that the working arrays stay in the processor's cache
FIXED_POINT = 2.0**44  # entropy terms are summed as whole numbers: their order, and so a class's number, cannot matter


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class VoteCounts:
    """How often each answer of each question was given, and what follows from that alone.

    ``counts`` [N, K]: votes of class c; ``n_votes`` [N]: the votes that frequencies are shares of; ``n_readable`` [N];
    ``n_distinct`` [N]: readable answers that differ; ``entropy`` [N]: of the votes, divided by ln n_votes.
    """

    counts: NDArray[np.int64]
    n_votes: NDArray[np.int64]
    n_readable: NDArray[np.int64]
    n_distinct: NDArray[np.int64]
    entropy: Floats

    @property
    def max_frequency(self) -> Floats:
        """Share of the votes that the most frequent readable answer has [N]; 0 where nothing was readable."""
        return np.max(self.counts, axis=1, initial=0) / np.maximum(self.n_votes, 1)


def count_votes(codes: NDArray[np.int16], *, unread: str, as_published: bool = False) -> VoteCounts:
    """Count the votes of N questions from their codes [N, n] (-1 is unread).

    ``unread="symbol"``: unread votes count in n and are one more symbol of the entropy; ``"dropped"``: they are not
    votes. The entropy is 0 when all votes agree or there are none. ``as_published`` sums its terms in class order with
    scipy, slowly, so that even the rounding is that of the published code.
    """
    n_rows, n = codes.shape
    width = int(codes.max(initial=-1)) + 2  # column 0 counts the unread
    cells = codes + (1 + width * np.arange(n_rows))[:, None]
    with_unread = np.bincount(cells.ravel(), minlength=n_rows * width).reshape(n_rows, width)
    counts, n_unread = with_unread[:, 1:], with_unread[:, 0]
    n_readable = n - n_unread
    n_distinct = np.count_nonzero(counts, axis=1)
    symbols, n_symbols, n_votes = counts, n_distinct, n_readable
    if unread == "symbol":
        symbols, n_symbols, n_votes = with_unread, n_distinct + (n_unread > 0), np.full(n_rows, n)
    if as_published:
        entropy = np.array([_published_entropy(row[row > 0]) for row in symbols])
    else:
        entropy = np.where(n_symbols > 1, _entropy(symbols, n_votes), 0.0)
    return VoteCounts(counts, n_votes, n_readable, n_distinct, entropy)


def _entropy(counts: NDArray[np.int64], n_votes: NDArray[np.int64]) -> Floats:
    """Return 1 - (sum c ln c) / (n ln n) for each row, which is the Shannon entropy of the shares c/n over ln n."""
    whole = np.arange(int(n_votes.max(initial=0)) + 1, dtype=np.float64)
    n_log_n = whole * np.log(np.maximum(whole, 1))
    total = np.rint(n_log_n * FIXED_POINT).astype(np.int64)[counts].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 - total / (FIXED_POINT * n_log_n[n_votes])


def _published_entropy(counts: NDArray[np.int64]) -> float:
    from scipy.stats import entropy

    return float(entropy(counts, base=counts.sum())) if len(counts) > 1 else 0.0


def nonconformity_scores(votes: VoteCounts, lam: float) -> Floats:
    """Return f(X, y) = -freq(y) + lam * H for every answer class [N, K]; +inf for a class nobody voted for."""
    frequency = votes.counts / np.maximum(votes.n_votes, 1)[:, None]
    return np.where(votes.counts > 0, -frequency + lam * votes.entropy[:, None], np.inf)


def scored_chunks(
    codes: NDArray[np.int16], *, lam: float, unread: str, as_published: bool = False
) -> Iterator[tuple[slice, VoteCounts, Floats]]:
    """Yield (rows, their votes, their answers' scores) for a few thousand questions at a time."""
    for start in range(0, len(codes), CHUNK):
        rows = slice(start, min(start + CHUNK, len(codes)))
        votes = count_votes(codes[rows], unread=unread, as_published=as_published)
        yield rows, votes, nonconformity_scores(votes, lam)


def readable_entropy(codes: NDArray[np.int16]) -> Floats:
    """Return the normalised entropy of the readable answers alone [N]: a truncated completion is not uncertainty."""
    chunks = scored_chunks(codes, lam=0.0, unread="dropped")
    return np.concatenate([np.zeros(0), *(votes.entropy for _, votes, _ in chunks)])


def conformal_threshold(scores: Floats, alpha: Fraction) -> float:
    """Return q_hat, the k-th smallest calibration score with k = ceil((m + 1)(1 - alpha)).

    Coverage is then at least 1 - alpha for exchangeable questions (split conformal prediction). A score of +inf marks
    a truth that was never generated; q_hat is +inf when k reaches one. The rank is computed in whole numbers.
    Raises CalibrationSetTooSmall when k exceeds m.
    """
    m = len(scores)
    k = m + 1 - floor((m + 1) * alpha)
    if k > m:
        raise CalibrationSetTooSmall(n=m, alpha=_decimal(alpha), n_wanted=n_wanted(alpha))
    return float(np.sort(scores)[k - 1])


def published_threshold(scores: Floats, alpha: Fraction) -> float:
    """Return the threshold of the published code: numpy's "higher" quantile at ceil((m + 1)(1 - alpha)) / m.

    That is the score of rank k + 1 for every k below m. Raises CalibrationSetTooSmall where the level exceeds 1.
    """
    m = len(scores)
    level = np.ceil((m + 1) * (1 - float(alpha))) / m if m else 2.0
    if level > 1:
        raise CalibrationSetTooSmall(n=m, alpha=_decimal(alpha), n_wanted=n_wanted(alpha))
    return float(np.quantile(scores, level, method="higher"))


THRESHOLDS = {"exact_rank": conformal_threshold, "numpy_higher": published_threshold}


def group_thresholds(scores: Floats, groups: Sequence[str], alpha: Fraction, *, quantile: str) -> dict[str, float]:
    """Return a q_hat for each group of questions (Mondrian conformal prediction), and one under "" for all others.

    ``groups`` [m] must be a function of the question alone. Groups of fewer questions than alpha needs are put
    together, by size alone, before any score is looked at; where that is still too few, "" takes the threshold of the
    whole set. Coverage then holds within each group. Raises CalibrationSetTooSmall when the whole set is too small.
    """
    threshold, names = THRESHOLDS[quantile], np.array(groups, dtype=object)
    sizes = Counter(groups)
    large = sorted(name for name, size in sizes.items() if size >= n_wanted(alpha))
    found = {name: threshold(scores[names == name], alpha) for name in large}
    rest = scores[[name not in found for name in groups]]
    return {**found, "": threshold(rest if len(rest) >= n_wanted(alpha) else scores, alpha)}


def n_wanted(alpha: Fraction) -> int:
    """Return the smallest number of calibration questions that alpha can be had with: ceil((1 - alpha) / alpha)."""
    return ceil((1 - alpha) / alpha)


def _decimal(alpha: Fraction) -> str:
    return f"{float(alpha):g}"


def share_of_full_sets(worst_scores: Floats, q_hat: float | Floats) -> float:
    """Return the share of questions whose prediction set is every answer seen.

    ``worst_scores``: the highest score among a question's own answers, for questions with two or more; 0 for none.
    """
    return float(np.mean(worst_scores <= q_hat)) if len(worst_scores) else 0.0


def is_degenerate(worst_scores: Floats, q_hat: float | Floats) -> bool:
    """Say whether at least half of the sets are every answer seen, so that set size only counts distinct answers."""
    return share_of_full_sets(worst_scores, q_hat) >= 0.5


def smallest_useful_alpha(scores: Floats, worst_scores: Floats, *, above: Fraction, quantile: str) -> str | None:
    """Return the smallest alpha above the given one, to four decimals, whose threshold is not degenerate; else None.

    Sets only shrink as alpha grows, so a binary search over ten-thousandths finds it.
    """
    low, high = floor(above * 10_000) + 1, 9_999
    threshold = THRESHOLDS[quantile]

    def degenerate(step: int) -> bool:
        return is_degenerate(worst_scores, threshold(scores, Fraction(step, 10_000)))

    if low > high or degenerate(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if degenerate(middle) else (low, middle)
    return f"{low / 10_000:g}"


def check_coverage(
    scores: Floats, is_absent: NDArray[np.bool_], alpha: Fraction, *, quantile: str, rng: np.random.Generator
) -> dict[str, object]:
    """Refit the threshold on a random half of the calibration set and count the truths it covers in the other half.

    A check of the machinery on exchangeable halves, not a claim about the q_hat in use. Without ties the hits follow
    BetaBinomial(n_counted, k, m + 1 - k) for a fit on m questions (Vovk 2012); ties can only raise them, and truths
    that were never generated are never hits. ``rng`` must be seeded, and the questions in canonical order.
    """
    from scipy.stats import betabinom

    order = rng.permutation(len(scores))
    fit, counted = order[: len(order) // 2], order[len(order) // 2 :]
    m = len(fit)
    k = m + 1 - floor((m + 1) * alpha)
    if k > m:
        reason = f"half of the calibration set is {m} questions; alpha {_decimal(alpha)} needs {n_wanted(alpha)}"
        return {"available": False, "reason": reason}
    q_hat = THRESHOLDS[quantile](scores[fit], alpha)
    hits = int(np.count_nonzero((scores[counted] <= q_hat) & ~is_absent[counted]))
    low, high = (int(bound) for bound in betabinom(len(counted), k, m + 1 - k).ppf([0.005, 0.995]))
    return {
        "available": True,
        "n_fitted": m,
        "n_counted": len(counted),
        "hits": hits,
        "coverage": hits / len(counted),
        "expected": k / (m + 1),
        "band": [low / len(counted), high / len(counted)],
        "band_level": 0.99,
        "below_band": hits < low,
    }


def compare_questions(pool: Mapping[str, Floats], calibration: Mapping[str, Floats]) -> dict[str, object]:
    """Compare pool and calibration without any truth: two-sample Kolmogorov-Smirnov tests of each named measure.

    A small p-value says that the two were not drawn alike, and then no guarantee carries over. Three tests share a
    level of 1 %; ties make the tests cautious.
    """
    from scipy.stats import ks_2samp

    tests = {}
    for name, values in pool.items():
        test = ks_2samp(values, calibration[name], method="asymp")
        tests[name] = {
            "pool_mean": float(np.mean(values)),
            "calibration_mean": float(np.mean(calibration[name])),
            "statistic": float(test.statistic),
            "p_value": float(test.pvalue),
        }
    unlike = [name for name, test in tests.items() if test["p_value"] < 0.01 / len(tests)]
    return {"tests": tests, "unlike": unlike, "alike": not unlike}
