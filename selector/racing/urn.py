"""What the answers to come may be: a Pitman-Yor urn that starts with the probes, fitted on the calibration questions.

The next readable answer repeats class i with weight e_i - d min(1, e_i), or is new with weight a + d sum_j min(1, e_j),
where e_i counts the outcomes of class i and, at a fraction w, its probes: probes of one chain hang together. A mixture
over a grid of (a, d, w) is weighted by how well each foretells calibration outcomes from calibration probes
(expectation maximisation); each question weighs the grid anew by its own outcomes. Unread answers come from a beta
prior fitted by moments. Empirical Bayes; Pitman and Yor (1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.racing.bounds import NO_SET, Rules, table_of_n_log_n
from selector.seeds import question_rng
from selector.votes import VoteTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
DISCOUNTS = (0.0, 0.4)
PROBE_WEIGHTS = (0.1, 0.3, 1.0)
GRID = np.array(list(product(STRENGTHS, DISCOUNTS, PROBE_WEIGHTS)))  # [G, 3]
N_ENDINGS = 1_024  # simulated for each state; one half orders questions, the other says what dropping them costs
EM_STEPS = 200

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Seen:
    """What a question's answers so far say: ``pairs`` of (probes, outcomes) of each readable class, largest first."""

    pairs: Pairs
    unread_probes: int
    unread_outcomes: int

    @classmethod
    def of(cls, codes: Sequence[int], n_probes: int) -> Seen:
        """Count the codes of one question's answers so far, probes first; -1 is unread."""
        counts: dict[int, list[int]] = {}
        for place, code in enumerate(codes):
            counts.setdefault(code, [0, 0])[place >= n_probes] += 1
        unread = counts.pop(-1, [0, 0])
        pairs = tuple(sorted(((probes, outcomes) for probes, outcomes in counts.values()), reverse=True))
        return cls(pairs, *unread)

    @property
    def n_outcomes(self) -> int:
        """How many outcomes were drawn."""
        return self.unread_outcomes + sum(outcomes for _, outcomes in self.pairs)


class Urn:
    """The predictive model of the pool's outcomes. ``fit`` makes one from complete calibration votes."""

    def __init__(self, weights: Floats, unread_prior: tuple[float, float]) -> None:
        self.weights, self.unread_prior = weights, unread_prior

    @classmethod
    def fit(cls, table: VoteTable) -> Urn:
        """Fit the mixture weights [G] and the prior of unread answers on complete questions."""
        states = [Seen.of(row, table.n_probes) for row in table.codes.tolist()]
        logs = np.array([log_likelihoods(state) for state in states]).reshape(-1, len(GRID))
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
        weights = np.full(len(GRID), 1 / len(GRID))
        for _ in range(EM_STEPS if len(states) else 0):
            shares = likelihoods * weights
            weights = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
        n_outcomes = table.codes.shape[1] - table.n_probes
        unread = np.array([state.unread_outcomes for state in states]) / max(n_outcomes, 1)
        return cls(weights, _beta_by_moments(unread, n_outcomes))

    def posterior(self, seen: Seen) -> Floats:
        """Return the weights of the grid [G] given a question's own outcomes."""
        logs = log_likelihoods(seen) + np.log(np.maximum(self.weights, 1e-300))
        shares = np.exp(logs - logs.max())
        return np.asarray(shares / shares.sum())

    def values(self, seen: Seen, q_hat: float, rules: Rules, seed: int) -> Ints:
        """Simulate ``N_ENDINGS`` ways in which a question can end and return its value in each; -1 where ineligible.

        The draws depend on the seed and on what was seen, not on what else is simulated.
        """
        n_left = rules.n_answers - sum(sum(pair) for pair in seen.pairs) - seen.unread_probes - seen.unread_outcomes
        rng = question_rng(seed, "urn", repr((seen.pairs, seen.unread_probes, seen.unread_outcomes)))
        strength, discount, probe_weight = GRID[rng.choice(len(GRID), size=N_ENDINGS, p=self.posterior(seen))].T
        uniform = rng.random((2, n_left, N_ENDINGS))
        n_seen, ending = len(seen.pairs), np.arange(N_ENDINGS)
        counts = np.zeros((n_seen + n_left, N_ENDINGS), np.int16)  # classes by endings: sums over classes are fast
        weights, first_steps = np.zeros((2, n_seen + n_left, N_ENDINGS))
        total = strength.copy()
        for place, (probes, outcomes) in enumerate(seen.pairs):
            evidence = probe_weight * probes + outcomes
            counts[place] = probes + outcomes
            weights[place] = evidence - discount * np.minimum(evidence, 1)
            first_steps[place] = 1 - discount * (1 - np.minimum(evidence, 1))
            total += evidence
        first_steps[n_seen:] = 1 - discount  # a class's weight grows by that when it is first drawn, then by 1
        n_known = np.full(N_ENDINGS, n_seen)
        alpha, beta = self.unread_prior
        n_unread, n_drawn = np.full(N_ENDINGS, seen.unread_outcomes), seen.n_outcomes
        for unread_draw, draw in zip(*uniform, strict=True):
            is_readable = unread_draw * (alpha + beta + n_drawn) >= alpha + n_unread
            target, edge, chosen = draw * total, np.zeros(N_ENDINGS), np.zeros(N_ENDINGS, np.int64)
            for weight in weights[: int(n_known.max())]:
                edge += weight
                chosen += edge <= target
            cells = np.minimum(chosen, n_known)[is_readable], ending[is_readable]
            counts[cells] += 1
            weights[cells] += first_steps[cells]
            first_steps[cells] = 1
            total += is_readable
            n_known += is_readable & (chosen >= n_known)
            n_unread += ~is_readable
            n_drawn += 1
        return values_of(counts.T, n_unread + seen.unread_probes, q_hat, rules)


def values_of(counts: NDArray[np.integer[Any]], n_unread: Ints, q_hat: float, rules: Rules) -> Ints:
    """Return the value [E] of complete questions by their counts [E, K] and unread answers [E], to rounding."""
    n_log_n = table_of_n_log_n(rules.n_answers)
    n_readable = counts.sum(axis=1, dtype=np.int64)
    spread, n_votes = n_log_n[counts].sum(axis=1), n_readable
    if rules.unread == "symbol":
        spread, n_votes = spread + n_log_n[n_unread], n_readable + n_unread
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(n_votes > 1, 1 - spread / n_log_n[n_votes], 0.0)
    fewest = n_votes * (rules.lam * entropy - q_hat) - 1e-9
    sizes = np.count_nonzero((counts >= fewest[:, None]) & (counts > 0), axis=1)
    return np.where(n_readable < rules.fewest, NO_SET, sizes)


def log_likelihoods(seen: Seen) -> Floats:
    """Return the log probability of a question's readable outcomes given its probes, under each of the grid [G].

    Taken class by class, known ones first: the order in which they came matters little, and is not kept.
    """
    strength, discount, probe_weight = GRID.T
    n_probes = sum(probes for probes, _ in seen.pairs)
    total = strength + probe_weight * n_probes
    n_tables = np.sum([np.minimum(1, probe_weight * probes) for probes, _ in seen.pairs], axis=0, initial=0.0)
    found = np.zeros(len(GRID))
    for probes, outcomes in seen.pairs:
        start = probe_weight * probes
        for drawn in range(outcomes):
            if probes == 0 and drawn == 0:
                weight = strength + discount * n_tables
            else:
                weight = start + drawn - discount * np.minimum(1, start + drawn)
            found += np.log(weight / total)
            if drawn == 0:
                n_tables = n_tables + 1 - np.minimum(1, start)
            total = total + 1
    return found


def _beta_by_moments(shares: Floats, n: int) -> tuple[float, float]:
    """Return (alpha, beta) of shares observed with n trials each; the binomial part of their variance is taken off."""
    mean = float(np.clip(np.mean(shares), 1e-3, 1 - 1e-3)) if len(shares) else 0.5
    spread = mean * (1 - mean)
    variance = (float(np.var(shares)) - spread / max(n, 1)) / (1 - 1 / max(n, 2)) if len(shares) else spread / 3
    size = float(np.clip(spread / max(variance, 1e-6) - 1, 0.2, 200.0))
    return mean * size, (1 - mean) * size
