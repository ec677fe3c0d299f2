"""Which questions a model is sometimes right on: rewards of several runs a question, their variance, and what follows.

Under group-relative training a question teaches only where its rollouts earn different rewards. The categories, the
health of a set and the compute multiplier follow "variance-based RL sample selection" (agentic-patterns); the
expectations for other numbers of runs and the chance correction are computed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from selector.errors import InvalidConfig
from selector.success_rates import SuccessRates, fit_rates, share_alive

if TYPE_CHECKING:
    from selector.answers import AnswerPolicy, Grader

MIN_VARIANCE = 0.01  # matters for graded rewards only: the smallest of k binary ones is (k - 1) / k^2
MIN_RUNS = 3
MIN_QUESTIONS = 50
POOR, THIN, GOOD = 0.10, 0.15, 0.30  # shares of useful questions between which health and multiplier change
TAIL, MOST = 0.10, 0.50  # a tenth of the questions that holds more than half of the variance is a tail
RUNS = (2, 4, 8, 16, 32, 64)
MAX_CELLS = 200  # dots in the picture


class Category(StrEnum):
    """What the runs of a question say about training on it."""

    USEFUL = "useful"
    ALWAYS_RIGHT = "always_right"
    ALWAYS_WRONG = "always_wrong"
    CONSTANT = "constant"

    @property
    def words(self) -> str:
        return "constant in between" if self is Category.CONSTANT else self.value.replace("_", " ")


KEEPS: dict[str, frozenset[Category]] = {
    "all": frozenset(Category),
    "useful": frozenset({Category.USEFUL}),
    "not_always_right": frozenset(Category) - {Category.ALWAYS_RIGHT},
}


@dataclass(frozen=True)
class Warned:
    """Something to know before trusting the report."""

    code: str
    message: str


@dataclass(frozen=True)
class Signal:
    """The share of questions that show both outcomes within ``runs`` runs, and whether that many were made."""

    runs: int
    share: float
    is_measured: bool


@dataclass(frozen=True)
class Chance:
    """Of the questions with choices: how many, their mean reward, the mean beyond guessing (Cohen's correction), and
    how many count as useful though their mean is no better than a guess."""

    n: int
    mean: float
    corrected_mean: float
    n_useful_at_chance: int


@dataclass(frozen=True)
class VarianceReport:
    """What [N] questions' runs say, one entry a question, in the order they were given."""

    uids: tuple[str, ...]
    n_runs: NDArray[np.int64]
    means: NDArray[np.float64]
    bests: NDArray[np.float64]
    worsts: NDArray[np.float64]
    variances: NDArray[np.float64]
    n_choices: NDArray[np.int64]
    is_binary: bool
    is_within_unit: bool

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        """The category of each question."""
        each = zip(self.means, self.bests, self.worsts, self.variances, strict=True)
        return tuple(category_of(float(m), float(b), float(w), float(v)) for m, b, w, v in each)

    @cached_property
    def counts(self) -> dict[Category, int]:
        """The number of questions of each category, all named."""
        found = Counter(self.categories)
        return {category: found[category] for category in Category}

    @property
    def useful_share(self) -> float:
        return self.counts[Category.USEFUL] / len(self.uids)

    @cached_property
    def useful_interval(self) -> tuple[float, float]:
        """95 % interval (Wilson) of the useful share, for questions drawn from the same source."""
        found = binomtest(self.counts[Category.USEFUL], len(self.uids)).proportion_ci(method="wilson")
        return float(found.low), float(found.high)

    @property
    def mean(self) -> float:
        return float(self.means.mean())

    @property
    def mean_best(self) -> float:
        """The mean of the best run: for binary rewards the share solved at least once in k runs."""
        return float(self.bests.mean())

    @property
    def improvement_potential(self) -> float:
        """mean(best) - mean(mean): what the model would gain by always doing what it does at its best."""
        return self.mean_best - self.mean

    @property
    def tail_share(self) -> float:
        """The share of all variance held by the tenth of the questions with the most; 0 where there is none."""
        total = float(self.variances.sum())
        n_tail = max(1, round(len(self.uids) * TAIL))
        return float(np.sort(self.variances)[::-1][:n_tail].sum()) / total if total else 0.0

    @property
    def gini(self) -> float:
        """Gini coefficient of the variances: 0 where all are equal, near 1 where few questions hold everything."""
        total, n = float(self.variances.sum()), len(self.uids)
        ranks = np.arange(1, n + 1)
        return float((2 * ranks - n - 1) @ np.sort(self.variances)) / (n * total) if total else 0.0

    @cached_property
    def chance(self) -> Chance | None:
        """Means corrected for guessing; None where no question has choices."""
        has_choices = self.n_choices >= 2
        if not has_choices.any():
            return None
        guess = 1 / self.n_choices[has_choices]
        means = self.means[has_choices]
        useful = np.array([each is Category.USEFUL for each in self.categories])[has_choices]
        return Chance(
            n=int(has_choices.sum()),
            mean=float(means.mean()),
            corrected_mean=float(chance_corrected(means, self.n_choices[has_choices]).mean()),
            n_useful_at_chance=int((useful & (means <= guess)).sum()),
        )

    @cached_property
    def signals(self) -> tuple[Signal, ...]:
        """Share of questions with both outcomes by number of runs: 2, 4, 8 ... and the number made; () if graded.

        Up to the number of runs made it is the exact mean over all subsets of them; beyond, the questions that have
        shown one outcome only are expected to show the other as often as a fit of all questions says: success rates
        follow a beta distribution, but for a share that is never and a share that is always right.
        """
        if not self.is_binary:
            return ()
        fewest = int(self.n_runs.min())
        wanted = sorted({*RUNS, fewest} - {1})
        shares = {runs: share_alive(self._successes, self.n_runs, runs, self._rates) for runs in wanted}
        return tuple(Signal(runs, share, runs <= fewest) for runs, share in shares.items() if share is not None)

    def waking_share(self, factor: int = 2) -> float | None:
        """The expected share of questions without variance that would show some in ``factor`` times the runs.

        By the fit that ``signals`` describes. None where rewards are graded, no question is without variance, or too
        few have both outcomes to tell.
        """
        dead = self.variances == 0
        if not self.is_binary or not dead.any() or self._rates is None:
            return None
        n_runs = self.n_runs[dead]
        return float(self._rates.waking(self._successes[dead] > 0, n_runs, n_runs * (factor - 1)).mean())

    @property
    def _successes(self) -> NDArray[np.int64]:
        return np.rint(self.means * self.n_runs).astype(np.int64)

    @cached_property
    def _rates(self) -> SuccessRates | None:
        return fit_rates(self._successes, self.n_runs)

    def keep(self, which: str) -> tuple[str, ...]:
        """The uids of the questions to keep: ``useful``, ``not_always_right`` or ``all``. Raises InvalidConfig."""
        if which not in KEEPS:
            raise InvalidConfig("keep", which, "one of " + ", ".join(KEEPS))
        return tuple(uid for uid, found in zip(self.uids, self.categories, strict=True) if found in KEEPS[which])

    def cells(self) -> list[tuple[float, float, Category, int]]:
        """(mean, variance, category, number of questions there), for the picture; graded rewards are put on a grid."""
        for digits in ((4, 4), (2, 3), (1, 2)):
            means, variances = np.round(self.means, digits[0]), np.round(self.variances, digits[1])
            found = Counter(zip(means.tolist(), variances.tolist(), self.categories, strict=True))
            if len(found) <= MAX_CELLS:
                break
        return sorted((*cell, n) for cell, n in found.items())


def category_of(mean: float, best: float, worst: float, variance: float) -> Category:
    """Return a question's category from its rewards' mean, best, worst and population variance.

    Useful is a variance above 0.01 with 0 < mean < 1; always right is worst = 1, always wrong best = 0 (rewards beyond
    [0, 1] count as 1 and 0 there); what is left hardly varies in between, and is no use either.
    """
    if worst >= 1:
        return Category.ALWAYS_RIGHT
    if best <= 0:
        return Category.ALWAYS_WRONG
    return Category.USEFUL if variance > MIN_VARIANCE and 0 < mean < 1 else Category.CONSTANT


def variance_report(
    rewards: Sequence[Sequence[float]] | NDArray[np.float64],
    uids: Sequence[str] | None = None,
    *,
    n_choices: Sequence[int] | None = None,
) -> VarianceReport:
    """Describe N questions from their rewards [N][k], each k >= 1 and its own; ``n_choices`` [N] is 0 without choices.

    Rewards belong in [0, 1]; others are taken as they are and warned of. Raises InvalidConfig for no questions, a
    question without runs, a reward that is no finite number, and lists that differ in length.
    """
    rows = [np.asarray(row, np.float64) for row in rewards]
    names = tuple(uids) if uids is not None else tuple(str(number) for number in range(len(rows)))
    choices = np.asarray(n_choices if n_choices is not None else [0] * len(rows), np.int64)
    if not rows:
        raise InvalidConfig("rewards", "empty", "the rewards of at least one question")
    if not len(rows) == len(names) == len(choices):
        raise InvalidConfig("rewards", f"{len(rows)} rows with {len(names)} uids", "as many rows as uids and choices")
    for uid, row in zip(names, rows, strict=True):
        if row.ndim != 1 or not row.size or not np.isfinite(row).all():
            raise InvalidConfig(f"the rewards of {uid!r}", row.tolist(), "a list of one or more finite numbers")
    everything = np.concatenate(rows)
    return VarianceReport(
        uids=names,
        n_runs=np.array([row.size for row in rows], np.int64),
        means=np.array([row.mean() for row in rows]),
        bests=np.array([row.max() for row in rows]),
        worsts=np.array([row.min() for row in rows]),
        # of equal rewards exactly 0, which a mean that was rounded would not give
        variances=np.array([0.0 if row.min() == row.max() else row.var() for row in rows]),
        n_choices=choices,
        is_binary=bool(np.isin(everything, (0.0, 1.0)).all()),
        is_within_unit=bool((everything >= 0).all() and (everything <= 1).all()),
    )


def rewards_of(
    truth: str | None,
    answers: Sequence[str],
    *,
    kind: str | None,
    grader: Grader,
    policy: AnswerPolicy | None = None,
) -> list[float]:
    """Grade answers as a trainer would: 1.0 where equivalent to the truth, else 0.0; unread ("") and undecided are 0.0.

    ``truth`` None means that no answer is right. After 20 comparisons without a verdict the rest is compared exactly.
    """
    from selector.answers import AnswerPolicy, Verdict, exact_verdict
    from selector.answers.grading import MAX_UNPROVED

    policy = policy or AnswerPolicy()
    n_unproved = 0
    known: dict[str, float] = {"": 0.0}
    for answer in answers if truth else ():
        if answer in known:
            continue
        if n_unproved < MAX_UNPROVED:
            verdict = grader.compare(str(truth), answer, kind, policy)
            n_unproved += verdict is Verdict.UNDECIDED
        else:
            verdict = exact_verdict(str(truth), answer, kind, policy)
        known[answer] = float(verdict is Verdict.EQUIVALENT)
    return [known.get(answer, 0.0) for answer in answers]


def chance_corrected(means: NDArray[np.float64], n_choices: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (p - 1/c) / (1 - 1/c) of means p [N] over c >= 2 choices [N]: 0 is guessing, 1 is always right."""
    guess = 1 / n_choices
    return (means - guess) / (1 - guess)


def survival(p: float, runs: int) -> float:
    """Return 1 - p^k - (1 - p)^k: the probability that a question of success p shows both outcomes in k runs."""
    return float(1 - p**runs - (1 - p) ** runs)
