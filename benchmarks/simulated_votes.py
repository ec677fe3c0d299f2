"""Simulated recorded votes: easy questions with one dominating answer, medium ones with a few, hard ones with many.

Shares of easy, medium and hard questions by mix: vstrong .85/.13/.02, strong .65/.25/.10, mid .40/.35/.25, weak
.15/.35/.50. With clusters, each has shares of its own. Synthetic distributions, not answers of a model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from selector.votes import QuestionVotes

MIXES = {
    "vstrong": (0.85, 0.13, 0.02),
    "strong": (0.65, 0.25, 0.10),
    "mid": (0.40, 0.35, 0.25),
    "weak": (0.15, 0.35, 0.50),
}
KNOWN_TRUTHS = {"easy": 0.99, "medium": 0.93, "hard": 0.55}
N_PROBES = N_OUTCOMES = 20
Rng = np.random.Generator


def simulate(n: int, *, mix: str, seed: int, n_clusters: int | None = None) -> Iterator[QuestionVotes]:
    """Yield n questions with 20 probes, 20 outcomes, their lengths and their truth (None: never given)."""
    rng = np.random.default_rng(seed)
    shares = np.array(MIXES[mix])
    of_cluster = rng.dirichlet(8 * shares + 1e-3, size=n_clusters) if n_clusters else None
    for number in range(n):
        share, cluster = shares, None
        if n_clusters and of_cluster is not None:
            cluster = int(rng.integers(n_clusters))
            share = of_cluster[cluster]
        kind = str(rng.choice(["easy", "medium", "hard"], p=share / share.sum()))
        yield _question(f"q{number:06d}", kind, cluster, rng)


def _weights(kind: str, rng: Rng) -> tuple[NDArray[np.float64], float, float, float, float]:
    """Return weights over answers, rate of unreadable completions, mean length, stickiness, where the chain settles."""
    if kind == "easy":
        top = rng.beta(18.0, 1.2)
        tail = np.arange(2.0, 31.0) ** -1.2
        weights = np.concatenate([[top], (1 - top) * tail / tail.sum()])
        return weights, rng.beta(0.5, 40.0), 450 * np.exp(0.3 * rng.standard_normal()), 0.85, rng.beta(1.2, 2.5)
    if kind == "medium":
        main = rng.gamma(np.exp(rng.uniform(np.log(0.4), np.log(4.0))), 1.0, size=rng.integers(2, 7)) + 1e-12
        share = rng.beta(1.5, 10.0)
        tail = 1.0 / np.arange(1.0, 41.0)
        weights = np.concatenate([(1 - share) * main / main.sum(), share * tail / tail.sum()])
        return weights, rng.beta(0.8, 15.0), 800 * np.exp(0.3 * rng.standard_normal()), 0.75, rng.beta(2.0, 2.0)
    weights = np.arange(1.0, 401.0) ** -rng.uniform(0.5, 1.7) * rng.gamma(1.0, 1.0, size=400)
    unreadable = rng.beta(1.5, 4.0)
    return weights / weights.sum(), unreadable, 1400 * np.exp(0.25 * rng.standard_normal()), 0.6, rng.beta(2.5, 1.2)


def _question(uid: str, kind: str, cluster: int | None, rng: Rng) -> QuestionVotes:
    weights, unreadable, length, sticky, settles = _weights(kind, rng)
    n = len(weights)
    sharp = weights**2.5 / (weights**2.5).sum()
    flat = weights**0.6 / (weights**0.6).sum()
    final = int(rng.choice(n, p=sharp))
    final_unreadable = rng.random() < unreadable

    probes: list[int] = []
    for step in range(1, N_PROBES + 1):
        if step / N_PROBES >= settles and not final_unreadable:
            answer = final if rng.random() < 0.97 else int(rng.choice(n, p=flat))
        elif probes and rng.random() < sticky:
            answer = probes[-1]
        else:
            u = rng.random()
            if u < 0.06 + 0.6 * unreadable:
                answer = -1
            elif u < 0.30:
                answer = n + int(rng.integers(0, 20))
            else:
                answer = int(rng.choice(n, p=flat))
        probes.append(answer)

    outcomes = rng.choice(n, size=N_OUTCOMES, p=weights)
    outcomes[rng.random(N_OUTCOMES) < unreadable] = -1
    lengths = np.clip(length * np.exp(0.25 * rng.standard_normal(N_OUTCOMES)), 20, 2048).astype(int)
    u, truth = rng.random(), None
    if u < KNOWN_TRUTHS[kind]:
        truth = (0 if u < 0.97 else 1) if kind == "easy" else int(rng.choice(n, p=weights))
    return QuestionVotes(
        uid,
        tuple(f"a{code}" if code >= 0 else "" for code in probes),
        tuple(f"a{code}" if code >= 0 else "" for code in outcomes.tolist()),
        truth=None if truth is None else f"a{truth}",
        cluster=cluster,
        prompt_tokens=int(rng.integers(60, 240)),
        trajectory_tokens=int(np.clip(length, 20, 2048)),
        outcome_tokens=tuple(lengths.tolist()),
    )
