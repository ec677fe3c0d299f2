"""One comparison of a race: which few of some questions are the best, from bounds on what each is worth."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush


class Worth:
    """What each question is worth at least and at most: whole numbers, larger is better, no two questions alike.

    A number holds a question's value and, for equal values, its place in the order that breaks ties; below 0 a question
    cannot be picked. ``low`` only rises and ``high`` only falls; they meet once all answers are there.
    """

    def __init__(self, places: Sequence[int]) -> None:
        self._bonus = [len(places) - 1 - place for place in places]
        self._n = max(len(places), 1)
        self.low = [-1] * len(places)
        self.high = [-1] * len(places)

    def set_bounds(self, row: int, lower: int, upper: int) -> None:
        """Take over the bounds on a question's value; -1 is the value of one that cannot be picked."""
        self.low[row] = lower * self._n + self._bonus[row] if lower >= 0 else -1
        self.high[row] = upper * self._n + self._bonus[row] if upper >= 0 else -1

    def value_needed(self, row: int, worth: int) -> int:
        """Return the smallest value with which a question is worth more than that."""
        value, bonus = divmod(worth, self._n)
        return value if self._bonus[row] > bonus else value + 1

    def values(self, row: int) -> tuple[int, int]:
        """Return the bounds on a question's value."""
        return self.low[row] // self._n, self.high[row] // self._n


class Contest:
    """The race for the best ``aims[-1]`` of ``rows``; each smaller aim must be told apart as well.

    ``floor()`` may name a worth below which no question matters, whatever happens here.
    """

    def __init__(
        self, rows: Iterable[int], aims: Sequence[int], worth: Worth, floor: Callable[[], int] = lambda: 0
    ) -> None:
        self.rows = frozenset(rows)
        self.aims = sorted({aim for aim in aims if aim > 0}, reverse=True)
        self.worth, self.floor = worth, floor
        self.dropped: set[int] = set()
        by_low = sorted((row for row in self.rows if worth.low[row] >= 0), key=worth.low.__getitem__, reverse=True)
        self.best = by_low[: self.aims[0]] if self.aims else []
        self._open = [(-worth.high[row], row) for row in self.rows if self._is_open(row)] if self.aims else []
        heapify(self._open)

    def _is_open(self, row: int) -> bool:
        return self.worth.low[row] < self.worth.high[row] and row not in self.dropped

    def drop(self, row: int) -> None:
        """Leave a question out from here on."""
        self.dropped.add(row)

    def update(self, row: int, was_high: int) -> None:
        """Hear that a question's bounds have changed."""
        worth = self.worth
        if not self.aims or row not in self.rows:
            return
        if self._is_open(row) and worth.high[row] != was_high:
            heappush(self._open, (-worth.high[row], row))
        if worth.low[row] < 0:
            return
        if row in self.best:
            self.best.remove(row)
        elif len(self.best) == self.aims[0]:
            if worth.low[row] < worth.low[self.best[-1]]:
                return
            self.best.pop()
        insort(self.best, row, key=lambda each: -worth.low[each])

    def bar(self, aim: int) -> int:
        """Return the worth below which a question is not among the best ``aim``."""
        return max(self.worth.low[self.best[aim - 1]] if len(self.best) >= aim else 0, self.floor())

    @property
    def undecided_aim(self) -> int:
        """The largest aim whose questions are not known yet; 0 when all are."""
        for aim in self.aims:
            best = set(self.best[:aim])
            if any(row not in best for row in self._best_first(self.bar(aim), aim + 1)):
                return aim
        return 0

    def candidates(self, n: int) -> list[int]:
        """Return the ``n`` questions that can still become most, best first; none once the contest is decided."""
        aim = self.undecided_aim
        return list(self._best_first(self.bar(aim), n)) if aim else []

    def _best_first(self, bar: int, n: int) -> Iterator[int]:
        """Yield up to ``n`` questions with answers to come that can still reach ``bar``."""
        seen: list[tuple[int, int]] = []
        taken: set[int] = set()
        while self._open and len(seen) < n:
            worth, row = self._open[0]
            if -worth != self.worth.high[row] or row in taken or not self._is_open(row):
                heappop(self._open)  # out of date
                continue
            if -worth < bar:
                break
            taken.add(row)
            seen.append(heappop(self._open))
        for entry in seen:
            heappush(self._open, entry)
        return iter([row for _, row in seen])
