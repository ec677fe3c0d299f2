"""The probabilistic race: questions that will hardly win are dropped, within a stated budget of error a cluster.

Of each open question it is estimated with what probability p it beats the bar of its cluster. A cluster that drops some
may miss a winner with at most the sum of their p (union bound), so questions are dropped in the order of p while that
sum stays within the budget. One half of the simulated endings orders them; the sum is read off the other half, since
those that look hopeless in the first are partly there by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.racing.contest import Contest
from selector.racing.race import Plan, Race
from selector.racing.urn import N_ENDINGS, Seen, Urn

HALF = N_ENDINGS // 2


@dataclass(frozen=True)
class Outlook:
    """Simulated values of a question in the end: how many of each half are at least v, by v + 1; mean + sd of all."""

    at_least: NDArray[np.int64]  # [2, V]
    promise: float

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Outlook:
        """Summarise values [N_ENDINGS], -1 for endings in which the question cannot be picked."""
        most = int(values.max()) + 2
        halves = [np.bincount(half + 1, minlength=most)[::-1].cumsum()[::-1] for half in (values[:HALF], values[HALF:])]
        return cls(np.array(halves), float(values.mean() + values.std()))

    def reaching(self, value: int) -> tuple[int, int]:
        """Return how many endings of each half reach a value."""
        if value + 1 >= self.at_least.shape[1]:
            return 0, 0
        first, second = self.at_least[:, max(value + 1, 0)].tolist()
        return first, second


class ProbableRace(Race):
    """A race that drops questions by what the urn says of them; ``error`` is each cluster's budget.

    ``dropped`` maps rows to the probability that they would still have won, as estimated when they were dropped.
    """

    def __init__(self, *args: Any, urn: Urn, error: float, seed: int, **options: Any) -> None:
        self.urn, self.error, self.seed = urn, error, seed
        self.dropped: dict[int, float] = {}
        self.spent: dict[int, float] = {}
        self._outlooks: dict[tuple[Seen, float], Outlook] = {}
        self._outlook_of: dict[int, tuple[int, Outlook]] = {}
        super().__init__(*args, **options)

    def replan(self, plan: Plan) -> None:
        """Go on for other picks; what was dropped for the old ones is open again."""
        super().replan(plan)
        self.dropped.clear()
        self.spent = dict.fromkeys(self._clusters, 0.0)
        self._drop_hopeless()

    def state(self) -> dict[str, object]:
        """Return what has been heard, and what was dropped at which cost."""
        return {**super().state(), "dropped": list(self.dropped.items()), "spent": list(self.spent.items())}

    def load(self, state: Mapping[str, Any]) -> None:
        """Hear and drop again what ``state()`` said."""
        for row, chance in state["dropped"]:
            self.dropped[row] = chance
            self._clusters[int(self.plan.labels[row])].drop(row)
        self.spent |= dict(state["spent"])
        super().load(state)

    def outlook(self, row: int) -> Outlook:
        """Return what the model foretells of a question, given the answers that are there."""
        n_drawn = int(self.n_drawn[row])
        known = self._outlook_of.get(row)
        if known is not None and known[0] == n_drawn:
            return known[1]
        codes = self.codes[row, : self.n_probes + n_drawn].tolist()
        key = (Seen.of(codes, self.n_probes), float(self.q_hats[row]))
        if key not in self._outlooks:
            self._outlooks[key] = Outlook.of(self.urn.values(*key, self.rules, self.seed))
        self._outlook_of[row] = (n_drawn, self._outlooks[key])
        return self._outlooks[key]

    def _settle(self) -> None:
        has_news = bool(self._changed)
        super()._settle()
        if has_news:
            self._drop_hopeless()

    def _window(self, contest: Contest, n: int) -> Iterable[tuple[int, int]]:
        """Yield the next outcome of those that promise most."""
        rows = contest.candidates(len(self))
        rows.sort(key=lambda row: (-self.outlook(row).promise, self.places[row]))
        yield from ((row, 1) for row in rows[:n])

    def _drop_hopeless(self) -> None:
        for name, contest in self._clusters.items():
            if contest.undecided_aim:
                self._drop(name, contest)

    def _drop(self, name: int, contest: Contest) -> None:
        aim = contest.aims[0]
        if len(contest.best) < aim:
            return
        best, bar = set(contest.best), contest.bar(aim)
        rivals = [row for row in contest.candidates(len(self)) if row not in best]
        if not rivals:
            return
        share = self.error / max(len(contest.rows) - aim, 1)  # what dropping one question may cost on average
        chances = []
        for row in rivals:
            first, second = self.outlook(row).reaching(self.worth.value_needed(row, bar))
            chances.append((first, self.places[row], second, row))
        chances.sort()
        n_reaching, best_n, cost_of_best = 0, 0, 0.0
        for n, (_, _, second, _) in enumerate(chances, 1):
            n_reaching += second
            cost = (n_reaching + 1) / HALF
            if self.spent[name] + cost > self.error:
                break
            if cost <= share * n:
                best_n, cost_of_best = n, cost
        if best_n:
            self.spent[name] += cost_of_best
            for first, _, second, row in chances[:best_n]:
                self.dropped[row] = (first + second + 0.5) / (N_ENDINGS + 1)
                contest.drop(row)
