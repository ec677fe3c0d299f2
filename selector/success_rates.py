"""How often questions of a set would show both outcomes in other numbers of runs than were made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.special import betaln, gammaln

MIN_USEFUL = 5  # with fewer questions of both outcomes nothing is said about runs that were not made
MIN_RUNS_FOR_FIXED = 5


@dataclass(frozen=True)
class SuccessRates:
    """How success rates are distributed: beta(a, b), besides a share of never and a share of always right."""

    a: float
    b: float
    never: float
    always: float

    def log_none(self, runs: NDArray[np.int64], *, right: bool) -> NDArray[np.float64]:
        """The logarithm of the probability that all runs are right (or all wrong), of the beta part alone."""
        a, b = (self.a, self.b) if right else (self.b, self.a)
        return np.asarray(betaln(a + runs, b) - betaln(a, b))

    def waking(
        self, is_right: NDArray[np.bool_], n_runs: NDArray[np.int64], n_more: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The probability that a question of one outcome in its runs shows the other in ``n_more`` further ones."""
        found = np.empty(len(n_runs))
        for right, fixed in ((True, self.always), (False, self.never)):
            mine = is_right == right
            now = self.log_none(n_runs[mine], right=right)
            later = self.log_none(n_runs[mine] + n_more[mine], right=right)
            wakes = -np.expm1(later - now)  # a question of the beta part
            moving = (1 - self.never - self.always) * np.exp(now)
            found[mine] = wakes * moving / (moving + fixed) if fixed else wakes
        return found


def fit_rates(successes: NDArray[np.int64], n_runs: NDArray[np.int64]) -> SuccessRates | None:
    """Fit the distribution of success rates by maximum likelihood; None with too few questions of both outcomes.

    The shares of never and always are left out with fewer than five runs, where they cannot be told from a beta
    distribution, and where Akaike's criterion finds that they do not pay.
    """
    if int(((successes > 0) & (successes < n_runs)).sum()) < MIN_USEFUL:
        return None
    pairs, weights = np.unique(np.stack([successes, n_runs]), axis=1, return_counts=True)
    won, runs = pairs

    def unpack(x: NDArray[np.float64]) -> SuccessRates:
        shares = np.exp(np.array([0.0, *x[2:]])) if len(x) > 2 else np.array([1.0, 0.0, 0.0])
        _, never, always = shares / shares.sum()
        return SuccessRates(float(np.exp(x[0])), float(np.exp(x[1])), float(never), float(always))

    def loss(x: NDArray[np.float64]) -> float:
        rates = unpack(x)
        beta = np.exp(betaln(won + rates.a, runs - won + rates.b) - betaln(rates.a, rates.b))
        likelihood = (1 - rates.never - rates.always) * beta + rates.never * (won == 0) + rates.always * (won == runs)
        log_choose = gammaln(runs + 1) - gammaln(won + 1) - gammaln(runs - won + 1)
        return -float(weights @ (np.log(np.maximum(likelihood, 1e-300)) + log_choose))

    def best(*starts: list[float]) -> OptimizeResult:
        fits = [minimize(loss, start, method="L-BFGS-B", bounds=[(-7, 7)] * len(start)) for start in starts]
        return min(fits, key=lambda fit: float(fit.fun))

    plain = best([0.0, 0.0])
    if runs.max() < MIN_RUNS_FOR_FIXED:
        return unpack(plain.x)
    fixed = best([0.0, 0.0, 0.0, 0.0], [*plain.x, -5.0, -5.0])
    return unpack(fixed.x if fixed.fun < plain.fun - 2 else plain.x)  # two numbers more


def share_alive(
    successes: NDArray[np.int64], n_runs: NDArray[np.int64], runs: int, rates: SuccessRates | None
) -> float | None:
    """Return the mean probability that ``runs`` runs show both outcomes; None where it would have to be estimated."""
    enough = n_runs >= runs
    if not enough.all() and rates is None:
        return None
    alive = np.empty(len(successes))
    won, made = successes[enough], n_runs[enough]
    alive[enough] = 1 - _share_of_subsets(won, made, runs) - _share_of_subsets(made - won, made, runs)
    if rates is not None and not enough.all():
        won, made = successes[~enough], n_runs[~enough]
        is_dead = (won == 0) | (won == made)
        alive[~enough] = np.where(is_dead, rates.waking(won > 0, made, runs - made), 1.0)
    return float(alive.mean())


def _share_of_subsets(part: NDArray[np.int64], whole: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Return (part choose k) / (whole choose k), for whole >= k: how many subsets lie inside the part."""
    inside = np.maximum(part, k)

    def log_choose(n: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(gammaln(n + 1) - gammaln(n - k + 1))

    return np.where(part >= k, np.exp(log_choose(inside) - log_choose(whole)), 0.0)
