"""The exact race: which answer to ask for next, until the picks are those that all answers would give.

A pure state machine: it says what it wants, hears what came, and asks nobody itself. Recorded answers or a running
model drive it alike::

    while not race.done:
        for row, index in race.wanted(limit):
            ...                              # ask for outcome ``index`` of question ``row``
        race.observe(row, index, answer)     # in whatever order answers come; -1 for an unread one

Answers of one question count in the order of their index, whatever order they arrive in: short ones come first, and
would not be a fair sample. The result holds for any answers whatever, so nothing depends on the order of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.racing.bounds import NO_SET, BoundsMemo, Rules, state_of
from selector.racing.contest import Contest, Worth
from selector.votes import UNDRAWN

CONCURRENCY = 256  # answers asked for at a time
LEADERS_DEPTH = 4  # outcomes asked for at once of a question that leads
FinalSizes = Callable[[NDArray[np.intp], NDArray[np.int16]], NDArray[np.int64]]


@dataclass(frozen=True)
class Plan:
    """What a race is for.

    ``labels`` [N]: each question's cluster; ``shares``: how many each cluster gives (none where it is not named);
    ``n_picks``: how many in all. Of more winners the best are picked, and what is missing comes from all the rest.
    ``spare``: how many more than that are told apart, so that a replacement is known. ``excluded`` [N] are never
    picked; ``complete`` are rows whose answers are all wanted whatever happens. ``settle_eligibility`` asks of every
    question until it is known whether it may be picked.
    """

    labels: NDArray[np.intp]
    shares: Mapping[int, int]
    n_picks: int
    spare: int = 1
    excluded: NDArray[np.bool_] | None = None
    complete: tuple[int, ...] = ()
    settle_eligibility: bool = False


class Race:
    """A race over N questions whose probes are answered and whose outcome answers are to come.

    ``probe_codes`` [N, P]: classes of the probe answers, -1 unread. ``q_hats`` [N]. ``places`` [N]: each question's
    place among all in the order that breaks ties, 0 first; it must be known before any outcome is drawn.
    ``final_sizes(rows, codes)`` is the function that scores complete questions: it alone decides what they are worth.
    ``code_of(row, answer)`` gives an answer's class when its turn comes; left out, answers are codes already.
    """

    def __init__(
        self,
        probe_codes: NDArray[np.int16],
        *,
        n_outcomes: int,
        q_hats: NDArray[np.float64],
        places: Sequence[int],
        rules: Rules,
        plan: Plan,
        final_sizes: FinalSizes,
        code_of: Callable[[int, Any], int] = lambda row, code: int(code),
        concurrency: int = CONCURRENCY,
    ) -> None:
        self.n_outcomes, self.q_hats, self.rules, self.concurrency = n_outcomes, q_hats, rules, concurrency
        self.n_probes, self.places = probe_codes.shape[1], places
        self.codes = np.full((len(probe_codes), self.n_probes + n_outcomes), UNDRAWN, np.int16)
        self.codes[:, : self.n_probes] = probe_codes
        self.n_drawn = np.zeros(len(probe_codes), np.int64)
        self._final_sizes, self._code_of = final_sizes, code_of
        self._waiting: dict[int, dict[int, Hashable]] = {}
        self._in_flight: dict[int, set[int]] = {}
        self._changed: set[int] = set()
        self._memos = {q_hat: BoundsMemo(q_hat, rules) for q_hat in np.unique(q_hats).tolist()}
        self.worth = Worth(places)
        self._measure_all()
        self.replan(plan)

    def __len__(self) -> int:
        return len(self.codes)

    # What is asked and what is heard

    def wanted(self, limit: int | None = None) -> list[tuple[int, int]]:
        """Return up to ``limit`` (row, outcome index) to ask for now; each is then in flight until it is observed."""
        self._settle()
        limit = self.concurrency if limit is None else limit
        found: list[tuple[int, int]] = []
        for row, n in self._rows_wanted():
            if len(found) >= limit:
                break
            asked = self._in_flight.setdefault(row, set())
            come = self._waiting.get(row, {})
            first = int(self.n_drawn[row])
            for index in range(first, min(first + n, self.n_outcomes)):
                if index not in asked and index not in come and len(found) < limit:
                    asked.add(index)
                    found.append((row, index))
        return found

    def observe(self, row: int, index: int, answer: Hashable) -> None:
        """Hear the answer to one outcome; hearing it again changes nothing."""
        self._in_flight.get(row, set()).discard(index)
        if index < self.n_drawn[row]:
            return
        waiting = self._waiting.setdefault(row, {})
        waiting.setdefault(index, answer)
        while (next_index := int(self.n_drawn[row])) in waiting:
            self.codes[row, self.n_probes + next_index] = self._code_of(row, waiting.pop(next_index))
            self.n_drawn[row] += 1
            self._changed.add(row)
        if not waiting:
            del self._waiting[row]

    def needless(self) -> list[tuple[int, int]]:
        """Return what is in flight for questions that can no longer be picked: it may be given up."""
        self._settle()
        wanted = {row for row, _ in self._rows_wanted()}
        bars = {name: each.bar(each.aims[0]) for name, each in self._clusters.items()}
        return [
            (row, index)
            for row, asked in self._in_flight.items()
            if row not in wanted and self.worth.high[row] < bars.get(int(self.plan.labels[row]), 0)
            for index in sorted(asked)
        ]

    def forget_in_flight(self) -> None:
        """Want again whatever was asked for and never came."""
        self._in_flight.clear()

    @property
    def done(self) -> bool:
        """Whether the picks are known and all their answers are there."""
        self._settle()
        return next(iter(self._rows_wanted()), None) is None

    @property
    def n_clusters_decided(self) -> int:
        """How many clusters' best questions are known."""
        self._settle()
        return sum(contest.undecided_aim == 0 for contest in self._clusters.values())

    def open_rows(self) -> list[int]:
        """Return the questions that can still be among the best of their cluster, or are."""
        self._settle()
        bars = {name: each.bar(each.aims[0]) for name, each in self._clusters.items()}
        labels = self.plan.labels
        return [row for row in self._rows if (name := int(labels[row])) in bars and self.worth.high[row] >= bars[name]]

    # What is known

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """Whether all answers of each question are there [N]."""
        return self.n_drawn == self.n_outcomes

    def bounds(self, row: int) -> tuple[int, int]:
        """Return the smallest and the largest set size that a question can end with; -1 where it cannot be picked."""
        self._settle()
        return self.worth.values(row)

    def picks(self) -> list[int]:
        """Return the rows picked, best first, once the race is done; before, those that lead."""
        self._settle()
        return sorted([*self._winners(), *self._others()], key=lambda row: -self.worth.low[row])

    def picks_by_cluster(self) -> dict[int, list[int]]:
        """Return the rows that each cluster gives of its own, as far as they are known."""
        self._settle()
        winners = set(self._winners())
        return {
            name: [row for row in each.best[: self.plan.shares[name]] if row in winners]
            for name, each in self._clusters.items()
        }

    def replacements(self) -> list[int]:
        """Return the best of the rows that are not picked, as far as they are known: a spare one of each contest."""
        self._settle()
        contests = [*self._clusters.values(), *filter(None, [self._final])]
        picked = set(self.picks())
        return [row for contest in contests for row in contest.best if row not in picked]

    # Stopping, going on, wanting more

    def state(self) -> dict[str, object]:
        """Return what has been heard, as plain JSON values, for ``load`` of a race built anew from the same evidence.

        Where ``code_of`` has a memory of its own, let the new race ``observe`` the stored answers again instead.
        """
        drawn = np.flatnonzero(self.n_drawn).tolist()
        codes = self.codes[:, self.n_probes :]
        return {
            "codes": {str(row): codes[row, : self.n_drawn[row]].tolist() for row in drawn},
            "waiting": [[row, index, answer] for row, come in self._waiting.items() for index, answer in come.items()],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Hear again what ``state()`` said, in a race that was built anew from the same evidence."""
        for name, codes in state["codes"].items():
            row = int(name)
            self.codes[row, self.n_probes : self.n_probes + len(codes)] = codes
            self.n_drawn[row] = len(codes)
            self._changed.add(row)
        for row, index, answer in state["waiting"]:
            self.observe(row, index, answer)

    def replan(self, plan: Plan) -> None:
        """Go on for other picks from what is known: more of them, other shares, some excluded."""
        self._settle()
        self.plan = plan
        barred = np.zeros(len(self), bool) if plan.excluded is None else plan.excluded
        rows = np.flatnonzero(~barred)
        self._rows = rows.tolist()
        order = rows[np.argsort(plan.labels[rows], kind="stable")]
        names, starts = np.unique(plan.labels[order], return_index=True)
        members = dict(zip(names.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else {}
        n_offered = sum(min(plan.shares.get(name, 0), len(each)) for name, each in members.items())
        self._is_surplus = n_offered > plan.n_picks
        spare = 0 if self._is_surplus else plan.spare
        self._clusters: dict[int, Contest] = {}
        for name, each in members.items():
            if share := plan.shares.get(name, 0):
                floor = self._floor if self._is_surplus else int
                self._clusters[name] = Contest(each.tolist(), (share, share + spare), self.worth, floor)
        self._final: Contest | None = None
        self._floor_worth: int | None = None

    # How it works

    def _rows_wanted(self) -> Iterable[tuple[int, int]]:
        """Yield (row, how many of its next outcomes) in the order in which they are wanted."""
        if self.plan.settle_eligibility:
            yield from ((row, 1) for row in self._rows if self.worth.low[row] < 0 <= self.worth.high[row])
        yield from ((row, self.n_outcomes) for row in self.plan.complete if self.n_drawn[row] < self.n_outcomes)
        racing = [each for each in self._clusters.values() if each.undecided_aim]
        if not racing:
            final = self._final_contest()
            racing = [final] if final is not None and final.undecided_aim else []
        if racing:
            window = max(1, self.concurrency // len(racing))
            for contest in racing:
                yield from self._window(contest, window)
            return
        picked = [*self._winners(), *self._others()]
        yield from ((row, self.n_outcomes) for row in picked if self.n_drawn[row] < self.n_outcomes)

    def _window(self, contest: Contest, n: int) -> Iterable[tuple[int, int]]:
        """Yield what to ask for in a contest, about ``n`` outcomes: the next one of those that can still become most.

        Where there is room, those that are surely worth most so far come first, with a few at once: they are likely to
        be picked and then completed, and the sooner they rise the sooner others are out.
        """
        rows = contest.candidates(n)
        depth = min(LEADERS_DEPTH, n // 4)
        leading = [row for row in contest.best if self.worth.low[row] < self.worth.high[row]] if rows else []
        if depth > 1:
            yield from ((row, depth) for row in leading)
            n -= depth * len(leading)
            rows = [row for row in rows if row not in leading]
        yield from ((row, 1) for row in rows[: max(n, 0)])

    def _leaders(self) -> list[int]:
        """Return the best of each cluster, as many as its share."""
        return [row for name, each in self._clusters.items() for row in each.best[: self.plan.shares[name]]]

    def _floor(self) -> int:
        """Return the worth below which no winner of a cluster can be among the picks."""
        if self._floor_worth is None:
            n = self.plan.n_picks + self.plan.spare
            lows = sorted((self.worth.low[row] for row in self._leaders()), reverse=True)
            self._floor_worth = lows[n - 1] if 0 < n <= len(lows) else 0
        return self._floor_worth

    def _final_contest(self) -> Contest | None:
        """Return the contest that comes after those of the clusters, where one is needed: for picks too many or few."""
        if self._final is None:
            leaders, n_picks, spare = self._leaders(), self.plan.n_picks, self.plan.spare
            if len(leaders) > n_picks:
                self._final = Contest(leaders, (n_picks, n_picks + spare), self.worth)
            elif len(leaders) < n_picks:
                rest = [*set(self._rows).difference(leaders)]
                n_short = n_picks - len(leaders)
                self._final = Contest(rest, (n_short, n_short + spare), self.worth)
        return self._final

    def _winners(self) -> list[int]:
        """Return the picks that clusters give, best first."""
        return sorted(self._leaders(), key=lambda row: -self.worth.low[row])[: self.plan.n_picks]

    def _others(self) -> list[int]:
        """Return the picks that come from all the rest."""
        n_short = self.plan.n_picks - len(self._leaders())
        return self._final.best[:n_short] if self._final is not None and n_short > 0 else []

    def _measure_all(self) -> None:
        lower, upper = np.zeros((2, len(self)), np.int64)
        if self.n_outcomes == 0:
            lower = upper = self._final_values(np.arange(len(self)))
        else:
            for q_hat, memo in self._memos.items():
                rows = np.flatnonzero(self.q_hats == q_hat)
                lower[rows], upper[rows] = memo.of_codes(self.codes[rows, : self.n_probes])
        for row, (least, most) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
            self.worth.set_bounds(row, least, most)

    def _settle(self) -> None:
        """Work what was heard into the bounds and the contests."""
        if not self._changed:
            return
        changed = sorted(self._changed)
        self._changed.clear()
        self._floor_worth = None
        drawn = self.n_drawn[changed].tolist()
        complete = [row for row, n in zip(changed, drawn, strict=True) if n == self.n_outcomes]
        found: dict[int, tuple[int, int]] = {}
        if complete:
            values = self._final_values(np.array(complete, np.intp)).tolist()
            found.update((row, (value, value)) for row, value in zip(complete, values, strict=True))
        by_q_hat: dict[float, list[int]] = {}
        for row, n in zip(changed, drawn, strict=True):
            if n < self.n_outcomes:
                by_q_hat.setdefault(float(self.q_hats[row]), []).append(row)
        for q_hat, rows in by_q_hat.items():
            states = [state_of(self.codes[row, : self.n_probes + self.n_drawn[row]].tolist()) for row in rows]
            found.update(zip(rows, self._memos[q_hat].of(states), strict=True))
        for row in changed:
            was_high = self.worth.high[row]
            self.worth.set_bounds(row, *found[row])
            cluster = self._clusters.get(int(self.plan.labels[row]))
            if cluster is not None:
                cluster.update(row, was_high)
            if self._final is not None:
                self._final.update(row, was_high)

    def _final_values(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        codes = self.codes[rows]
        n_readable = np.count_nonzero(codes >= 0, axis=1)
        return np.where(n_readable < self.rules.fewest, NO_SET, self._final_sizes(rows, codes))
