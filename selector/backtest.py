"""What picks are worth once the right answers are known: measures of each question's rollouts against its truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.comparing.measures import interval
from selector.conformal import count_votes
from selector.seeds import question_rng
from selector.votes import VoteTable

Floats = NDArray[np.float64]
GROUP_SIZE = 8  # rollouts of a question in one GRPO step
N_RANDOM = 1_000  # random selections that every other one is held against
MEASURES = ("pass_rate", "with_variance", "advantage_mass", "majority_wrong")


def advantage_mass(success: Floats, group_size: int = GROUP_SIZE) -> Floats:
    """Return E|A| of one rollout for each success probability p [N]: how much a question can teach in a GRPO step.

    Of a group of G rollouts with k right ones (rewards 0 and 1), A = (r - k/G) / std with the population's standard
    deviation, sqrt(k/G (1 - k/G)), and A = 0 where all rewards are equal (GRPO: Shao et al. 2024, arXiv 2402.03300,
    section 4.1.2). The mean of |A| over the group is then 2 sqrt(k/G (1 - k/G)), so with k ~ Binomial(G, p)

        E|A| = sum_k  C(G, k) p^k (1 - p)^(G - k)  2 sqrt(k/G (1 - k/G)).

    It is 0 at p = 0 and p = 1, and greatest at p = 1/2, where it stays below 1.
    """
    from scipy.stats import binom

    k = np.arange(group_size + 1)
    return np.asarray(binom(group_size, np.asarray(success)[..., None]).pmf(k) @ _mass_of(k, group_size), np.float64)


def advantage_mass_from_counts(n_right: NDArray[np.int64], n_rollouts: int, group_size: int = GROUP_SIZE) -> Floats:
    """Return the estimate of E|A| from n recorded rollouts of which ``n_right`` [N] were right.

    The mean over all groups of G among the n rollouts (k is hypergeometric): unbiased for ``advantage_mass`` at the
    unknown p, which putting n_right / n for p is not. With fewer than G rollouts the group is those there are.
    """
    from scipy.stats import hypergeom

    size = min(group_size, n_rollouts)
    k = np.arange(size + 1)
    return np.asarray(hypergeom(n_rollouts, n_right[:, None], size).pmf(k) @ _mass_of(k, size), np.float64)


def _mass_of(k: NDArray[np.int64], group_size: int) -> Floats:
    share = k / max(group_size, 1)
    return 2 * np.sqrt(share * (1 - share))


@dataclass(frozen=True)
class Truths:
    """What the truths show of N questions, each array [N], from ``n_rollouts`` outcomes a question (probes if none).

    ``pass_rate``: share of rollouts with the right answer, unread ones being wrong; ``with_variance``: 1 where it is
    neither 0 nor 1; ``advantage_mass``: as ``advantage_mass_from_counts``; ``majority_wrong``: 1 where the most
    frequent readable answer is not the truth, the share of wrong ones where several tie, 1 where nothing was readable.
    """

    uids: tuple[str, ...]
    n_rollouts: int
    group_size: int
    pass_rate: Floats
    with_variance: Floats
    advantage_mass: Floats
    majority_wrong: Floats

    def means(self, rows: NDArray[np.intp]) -> dict[str, float | None]:
        """Return the mean of every measure over some rows; None over none."""
        return {name: float(np.mean(getattr(self, name)[rows])) if len(rows) else None for name in MEASURES}


def judge(table: VoteTable, group_size: int = GROUP_SIZE) -> Truths:
    """Hold every question's rollouts against its truth (``table.truth_codes``; -1: no answer given is right)."""
    source = table.of("outcomes") if table.codes.shape[1] > table.n_probes else table
    codes, truth = source.codes, source.truth_codes
    n_rollouts = codes.shape[1]
    n_right = np.count_nonzero((codes == truth[:, None]) & (truth[:, None] >= 0), axis=1)
    counts = count_votes(codes, unread="dropped").counts
    most = counts.max(axis=1, initial=0)
    n_tied = np.count_nonzero((counts == most[:, None]) & (counts > 0), axis=1)
    is_among = (n_right == most) & (n_right > 0)
    rate = n_right / max(n_rollouts, 1)
    return Truths(
        uids=table.uids,
        n_rollouts=n_rollouts,
        group_size=min(group_size, n_rollouts),
        pass_rate=rate,
        with_variance=((rate > 0) & (rate < 1)).astype(np.float64),
        advantage_mass=advantage_mass_from_counts(n_right, n_rollouts, group_size),
        majority_wrong=np.where(is_among, 1 - 1 / np.maximum(n_tied, 1), 1.0),
    )


def backtest(
    truths: Truths,
    picks: Mapping[str, Sequence[int] | NDArray[np.intp]],
    *,
    is_known: NDArray[np.bool_],
    is_eligible: NDArray[np.bool_],
    budget: int,
    seed: int,
    n_random: int = N_RANDOM,
) -> dict[str, Any]:
    """Return what each strategy's picks (rows) are worth, next to the pool and to uniform random selections.

    Only questions whose truth ``is_known`` [N] count; ``n`` says how many of the picks do. ``random``: mean and 95 %
    interval of every measure over ``n_random`` seeded selections from the eligible ones among them, of the budget's
    size. Each strategy's ``beats_random``: the share of selections, of as many questions as count of its picks, that
    have a lower value, ties counting half; None where no pick counts, or all eligible questions do. Rows must be in
    canonical order for the draws not to depend on it.
    """
    known = np.flatnonzero(is_known)
    eligible = np.flatnonzero(is_known & is_eligible)
    drawn: dict[int, dict[str, Floats]] = {}

    def random_means(size: int) -> dict[str, Floats]:
        if size not in drawn:
            rng = question_rng(seed, "backtest", str(size))
            means = [truths.means(rng.choice(eligible, size, replace=False)) for _ in range(n_random)]
            drawn[size] = {name: np.array([each[name] for each in means], np.float64) for name in MEASURES}
        return drawn[size]

    judged: dict[str, dict[str, Any]] = {}
    for key, rows in picks.items():
        counted = np.array([row for row in rows if is_known[row]], np.intp)
        judged[key] = {"n": len(counted), **truths.means(counted), "beats_random": None}
        if 0 < len(counted) < len(eligible):
            others = random_means(len(counted))
            judged[key]["beats_random"] = {name: _share_below(others[name], judged[key][name]) for name in MEASURES}
    size = min(budget, len(eligible))
    random = random_means(size) if size else None
    return {
        "n_rollouts": truths.n_rollouts,
        "group_size": truths.group_size,
        "n_random": n_random,
        "pool": {"n": len(known), **truths.means(known)},
        "eligible": {"n": len(eligible), **truths.means(eligible)},
        "random": random
        and {"n": size}
        | {name: {"mean": float(np.mean(random[name])), "interval": list(interval(random[name]))} for name in MEASURES},
        "strategies": judged,
    }


def _share_below(values: Floats, value: float) -> float:
    slack = 1e-12
    below, same = np.mean(values < value - slack), np.mean(np.abs(values - value) <= slack)
    return float(below + same / 2)
