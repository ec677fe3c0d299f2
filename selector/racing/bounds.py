"""How large and how small a question's prediction set can still become while some of its answers are not drawn.

A question has counts c_1 >= c_2 >= ... of its readable answers, u unread ones and r answers still to come. With all of
them drawn, an answer given C times in m votes is in the set when -C/m + lam * H <= q_hat, with H the normalised entropy
of the votes. Both bounds hold whatever the answers to come are; the upper one is attained.

Upper: v answers can be in the set when they can all be given t times, t >= m (lam * H - q_hat), with what is left.
Raising the v largest counts is cheapest, and giving all that is left to the largest symbol makes the entropy smallest;
both are best together, because x ln x is convex. Lower: the entropy is largest when every answer to come is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig

SLACK = 1e-9  # rounding may widen the bounds, never narrow them
Ints = NDArray[np.int64]
State = tuple[int, ...]  # unread answers, then the counts of the readable ones, largest first
NO_SET = -1  # the value of a question that cannot be picked: too few of its answers are readable


@dataclass(frozen=True)
class Rules:
    """What decides the value of a complete question of ``n_answers`` answers.

    ``unread``: "symbol" keeps unread answers among the votes, "dropped" leaves them out. With fewer than ``fewest``
    readable answers a question cannot be picked: its value is -1.
    """

    lam: float
    unread: str
    n_answers: int
    fewest: int = 0

    @classmethod
    def of(cls, config: SelectionConfig, n_answers: int) -> Rules:
        """Read the rules off the settings of a selection."""
        return cls(config.lam, config.unread, n_answers, ceil(config.min_readable * n_answers))


def set_size_bounds(
    counts: NDArray[np.integer[Any]], n_unread: NDArray[np.integer[Any]], q_hat: float, rules: Rules
) -> tuple[Ints, Ints]:
    """Return the smallest and the largest value [S] that S questions can end with.

    ``counts`` [S, K]: votes of each readable answer, largest first, padded with zeros; ``n_unread`` [S]. What is
    missing to ``rules.n_answers`` is still to be drawn. Where nothing is missing use the final score itself instead.
    """
    seen_unread = n_unread.astype(np.int64)
    n_readable = counts.sum(axis=1, dtype=np.int64)
    n_left = rules.n_answers - n_readable - seen_unread
    n_needed = np.maximum(rules.fewest - n_readable, 0)
    upper = np.full(len(counts), NO_SET)
    threshold = float(np.clip(-q_hat, -2.0 - rules.lam, 2.0))  # a share of the votes: beyond this all or none reach it
    if rules.unread == "symbol":
        state = np.flatnonzero(n_needed <= n_left)
        n_placed = n_left[state]
        total = np.full(len(state), rules.n_answers)
        unread, n_free = seen_unread[state], n_placed - n_needed[state]
    else:  # of the answers to come any number may be readable, and only those are votes
        n_endings = np.maximum(n_left - n_needed + 1, 0)
        state = np.repeat(np.arange(len(counts)), n_endings)
        place = np.arange(len(state)) - np.repeat(np.cumsum(n_endings) - n_endings, n_endings)
        n_placed = n_needed[state] + place
        total = n_readable[state] + n_placed
        unread = n_free = np.zeros(len(state), np.int64)
    endings = _Endings(counts, state, n_placed, total, unread, n_free, threshold, rules)
    last = np.flatnonzero(np.diff(state, append=-1))  # most often the best ending has every answer readable
    np.maximum.at(upper, state[last], endings.largest(last, np.zeros(len(counts), np.int64)))
    if len(last) < len(state):
        np.maximum.at(upper, state, endings.largest(np.arange(len(state)), upper))
    return np.where(n_needed == 0, endings.smallest(), NO_SET), upper


@dataclass(frozen=True)
class _Endings:
    """How questions can end: ``n_placed`` more answers make ``total`` votes, ``n_free`` of them may be unread.

    Arrays are [E]; ``state`` is the row of ``counts`` [S, K] that an ending starts from.
    """

    counts: NDArray[np.integer[Any]]
    state: Ints
    n_placed: Ints
    total: Ints
    unread: Ints
    n_free: Ints
    threshold: float
    rules: Rules

    @cached_property
    def first(self) -> Ints:
        """How often an answer must be given to be in the set were the entropy 0; less is never enough [E]."""
        return np.maximum(np.ceil(self.total * self.threshold - SLACK), 1).astype(np.int64)

    @cached_property
    def last(self) -> Ints:
        """How often is often enough whatever the entropy [E]."""
        low = self.total * (self.threshold + self.rules.lam) - SLACK
        return np.maximum(np.ceil(low), 1).astype(np.int64)

    @cached_property
    def raising(self) -> _Raising:
        """Sums over the counts of each state."""
        return _Raising(self, int(np.minimum(self.last, self.total).max(initial=0)))

    def largest(self, among: Ints, at_least: Ints) -> Ints:
        """Return the largest number of answers that can be in the set, for some of the endings.

        ``at_least`` [S]: what is known to be possible of each state; less is not looked for.
        """
        state, total, raising = self.state[among], self.total[among], self.raising
        first, last = self.first[among], self.last[among]
        best = at_least[state]
        sure = np.flatnonzero(last <= total)  # that often is enough whatever the entropy
        reached = raising.reached[state[sure], last[sure]]
        best[sure] = np.maximum(best[sure], reached + self.n_placed[among[sure]] // last[sure])
        last = np.minimum(last, total)
        for step in range(int(np.max(last - first, initial=-1)) + 1):
            open_ = np.flatnonzero(first + step <= last)
            if len(among) > len(self.counts):
                open_ = open_[self._may_exceed(among[open_], first[open_] + step, at_least)]
            n = best[open_] + 1
            while len(open_):
                possible = raising.is_possible(among[open_], first[open_] + step, n)
                open_, n = open_[possible], n[possible]
                best[open_] = n
                n = n + 1
        return best

    def _may_exceed(self, endings: Ints, times: Ints, at_least: Ints) -> NDArray[np.bool_]:
        """Say in which endings there may be answers enough for more than ``at_least`` [S], each ``times`` times.

        Of endings of a state that ask for equally many times the one with most answers to place speaks for the others.
        """
        state = self.state[endings]
        ends = np.flatnonzero((np.diff(state, append=-1) != 0) | (np.diff(times, append=-1) != 0))
        enough = self.raising.left(endings[ends], times[ends], at_least[state[ends]] + 1) >= 0
        return np.repeat(enough, np.diff(ends, prepend=-1))

    def smallest(self) -> Ints:
        """Return how many of the answers given so far are in the set however the others fall [S]."""
        n_log_n = table_of_n_log_n(self.rules.n_answers)
        spread = n_log_n[self.counts].sum(axis=1)[self.state] + n_log_n[self.unread]
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(self.total > 1, 1 - spread / n_log_n[self.total], 0.0)
        fewest = np.maximum(self.total * (self.threshold + self.rules.lam * entropy) + SLACK, 1)
        strictest = np.zeros(len(self.counts))
        np.maximum.at(strictest, self.state, fewest)
        return np.count_nonzero(self.counts >= strictest[:, None], axis=1)


class _Raising:
    """Whether the v largest counts of a state can all become t: constant time each, from sums over the counts."""

    def __init__(self, endings: _Endings, most_times: int) -> None:
        self.endings, counts = endings, endings.counts
        self.n_log_n = table_of_n_log_n(endings.rules.n_answers)
        self.width = counts.shape[1]
        self.sums = np.zeros((len(counts), self.width + 1), np.int64)  # [S, v]: of the v largest counts
        np.cumsum(counts, axis=1, out=self.sums[:, 1:])
        self.spreads = np.zeros((len(counts), self.width + 1))  # [S, v]: of their n ln n
        np.cumsum(self.n_log_n[counts], axis=1, out=self.spreads[:, 1:])
        self.reached = np.zeros((len(counts), most_times + 1), np.int64)  # [S, t]: counts of at least t
        for times in range(1, most_times + 1):
            self.reached[:, times] = np.count_nonzero(counts >= times, axis=1)

    def left(self, endings: Ints, times: Ints, n: Ints) -> Ints:
        """Return how many answers are left once ``n`` answers have ``times`` votes; below 0 where they cannot."""
        state = self.endings.state[endings]
        reached = np.minimum(self.reached[state, times], n)
        given = self.sums[state, np.minimum(n, self.width)] - self.sums[state, reached]
        return np.asarray(self.endings.n_placed[endings] - (n - reached) * times + given)

    def is_possible(self, endings: Ints, times: Ints, n: Ints) -> NDArray[np.bool_]:
        """Say whether ``n`` answers can be given ``times`` times each, and often enough for the entropy then."""
        left = self.left(endings, times, n)
        possible = left >= 0
        kept = np.flatnonzero(possible)
        possible[kept] = self._is_often_enough(endings[kept], times[kept], n[kept], left[kept])
        return possible

    def _is_often_enough(self, endings: Ints, times: Ints, n: Ints, left: Ints) -> NDArray[np.bool_]:
        n_log_n, rules, state = self.n_log_n, self.endings.rules, self.endings.state[endings]
        reached = np.minimum(self.reached[state, times], n)
        unread, total = self.endings.unread[endings], self.endings.total[endings]
        given = self.spreads[state, np.minimum(n, self.width)] - self.spreads[state, reached]
        raised = (n - reached) * n_log_n[times] - given
        most = np.maximum(self.sums[state, min(1, self.width)], times)
        rest = self.spreads[state, -1] + raised - n_log_n[most]  # of all but the largest readable count
        spread = rest + n_log_n[unread] + n_log_n[most + left]
        if rules.unread == "symbol":
            to_unread = np.minimum(left, self.endings.n_free[endings])
            other = rest + n_log_n[unread + to_unread] + n_log_n[most + left - to_unread]
            spread = np.maximum(spread, other)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.where(total > 1, 1 - spread / n_log_n[total], 0.0)
        return np.asarray(times >= total * (self.endings.threshold + rules.lam * entropy) - SLACK)


def table_of_n_log_n(n: int) -> NDArray[np.float64]:
    """Return k ln k for k = 0..n."""
    whole = np.arange(n + 1, dtype=np.float64)
    return np.asarray(whole * np.log(np.maximum(whole, 1)))


class BoundsMemo:
    """The bounds under one threshold, remembered by state: questions whose counts are alike share them."""

    def __init__(self, q_hat: float, rules: Rules) -> None:
        self.q_hat, self.rules = q_hat, rules
        self._known: dict[State, tuple[int, int]] = {}

    def of(self, states: Sequence[State]) -> list[tuple[int, int]]:
        """Return (lower, upper) for each state."""
        known = self._known
        new = {state for state in states if state not in known}
        if new:
            self._learn(sorted(new))
        return [known[state] for state in states]

    def of_codes(self, codes: NDArray[np.int16]) -> tuple[Ints, Ints]:
        """Return lower and upper bounds [N] for questions whose answers so far are ``codes`` [N, n], -1 unread."""
        rows, which = distinct_rows(state_rows(codes))
        lower, upper = set_size_bounds(rows[:, 1:], rows[:, 0], self.q_hat, self.rules)
        return lower[which], upper[which]

    def _learn(self, states: list[State]) -> None:
        width = max(map(len, states))
        padded = np.zeros((len(states), width), np.int64)
        for row, state in enumerate(states):
            padded[row, : len(state)] = state
        lower, upper = set_size_bounds(padded[:, 1:], padded[:, 0], self.q_hat, self.rules)
        self._known.update(zip(states, zip(lower.tolist(), upper.tolist(), strict=True), strict=True))


def state_of(codes: Iterable[int]) -> State:
    """Return the state of one question from the codes of its answers so far."""
    counts: dict[int, int] = {}
    for code in codes:
        counts[code] = counts.get(code, 0) + 1
    unread = counts.pop(-1, 0)
    return (unread, *sorted(counts.values(), reverse=True))


def state_rows(codes: NDArray[np.int16]) -> NDArray[np.int64]:
    """Return each question's unread answers and its counts, largest first [N, 1 + K]."""
    n_rows, width = len(codes), int(codes.max(initial=-1)) + 2
    cells = codes + (1 + width * np.arange(n_rows))[:, None]
    counted = np.bincount(cells.ravel(), minlength=n_rows * width).reshape(n_rows, width)
    counts = counted[:, 1:].astype(np.int16)
    counts.sort(axis=1)
    n_most = int(np.max(np.count_nonzero(counts, axis=1), initial=0))
    return np.concatenate([counted[:, :1], counts[:, ::-1][:, :n_most]], axis=1)


def distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the rows that differ, and which of them each row is: ``np.unique(axis=0)``, without sorting whole rows."""
    mixers = np.random.default_rng(0).integers(1, 2**62, size=rows.shape[1], dtype=np.int64) | 1
    with np.errstate(over="ignore"):
        hashes = rows @ mixers
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    found = rows[first]
    if np.array_equal(found[which], rows):
        return found, which
    found, which = np.unique(rows, axis=0, return_inverse=True)  # two rows that differ shared a hash
    return found, which
