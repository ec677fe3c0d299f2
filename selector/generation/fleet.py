"""Several servers of one model: which of them is asked what, and what becomes of the work of one that fails.

A question has a home, chosen by rendezvous hashing of its uid over the replicas that answer, so that its requests meet
their prefix in one replica's cache. A replica with room and nothing of its own takes whole questions from another's
queue, as long as none of their requests was sent; they stay where they were taken to. Each replica is trusted with few
completions at once at first, with more as it answers, and with fewer while it answers at less than half the pace of
the fastest; and it begins nothing that the others would have finished sooner.

Everything here runs in one event loop, so that a group of requests is in one place at a time, and only the task that
asks for it can answer it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from selector.errors import EngineUnavailable, SelectorError
from selector.generation.contract import Completion, Request, SamplingSettings, SetAside
from selector.generation.replica import FIRST_WINDOW, Group, RefusedError, Replica, Sink, TryError

SLOW = 2.0  # times as long for an answer as the fastest replica takes
LONGEST_PAUSE_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Fleet:
    """Sends groups of requests to replicas and brings every request one answer.

    ``ask`` puts the first requests of a group to a replica: it returns at least one completion, or raises RefusedError
    or TryError. ``check`` asks a replica that failed for a little, and raises TryError. ``max_retries``:
    how often a request is asked again, and how many checks in a row a replica may fail before it counts as gone; it is
    checked further on as long as others answer. Raises nothing itself: errors go to the sinks.
    """

    def __init__(
        self,
        replicas: Sequence[Replica],
        *,
        ask: Callable[[Replica, Sequence[Request], SamplingSettings], Awaitable[list[Completion]]],
        check: Callable[[Replica], Awaitable[None]],
        concurrency: int,
        max_retries: int,
        rng: random.Random,
    ) -> None:
        self.replicas = list(replicas)
        self._ask, self._check, self._max_retries, self._rng = ask, check, max_retries, rng
        self._concurrency = concurrency
        self._first_window = min(concurrency, FIRST_WINDOW) if len(self.replicas) > 1 else concurrency
        self._moved: dict[str, Replica] = {}  # questions that live elsewhere than the hash says
        self._homeless: list[Group] = []
        self._watches: dict[Replica, asyncio.Task[None]] = {}
        for replica in self.replicas:
            replica.window = self._first_window

    def start(self) -> None:
        """Begin to check the replicas that did not answer at first."""
        for replica in self.replicas:
            if not replica.is_up:
                self._watch(replica)

    def submit(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self._queue(group)
        self._dispatch()

    def withdraw(self, sink: Sink, uid: str | None = None) -> int:
        """Take back what is in flight for a sink (of one question), and return how many requests that is."""

        def is_meant(group: Group) -> bool:
            return group.sink is sink and uid in (None, group.uid)

        taken = [group for group in self._homeless if is_meant(group)]
        self._homeless = [group for group in self._homeless if not is_meant(group)]
        for replica in self.replicas:
            for group in [group for group in replica.sent if is_meant(group)]:
                _cancel(replica.sent[group])
                replica.finished(group)
                taken.append(group)
            for question in list(replica.waiting) if uid is None else [uid]:
                for group in replica.take(question):
                    if is_meant(group):
                        taken.append(group)
                    else:
                        replica.put(group)
        return sum(len(group.requests) for group in taken)

    def _queue(self, group: Group) -> None:
        """Put a group into the queue of its question's home."""
        ranked = sorted(self.replicas, key=lambda replica: _weight(replica.url, group.uid), reverse=True)
        home = self._moved.get(group.uid)
        if home is None or not home.is_up:
            home = next((replica for replica in ranked if replica.is_up), None)
        if home is None:
            self._homeless.append(group)
            if self._is_hopeless():
                self._fail([group.sink])
            return
        self._settle(group.uid, home, ranked[0])
        home.put(group)

    def _settle(self, uid: str, home: Replica, hashed: Replica | None = None) -> None:
        if home is hashed:
            self._moved.pop(uid, None)
        else:
            self._moved[uid] = home

    def _dispatch(self) -> None:
        """Send what there is room for, the fastest first: a replica's own, then whole questions of the others."""
        in_order = sorted(self.replicas, key=lambda replica: replica.seconds or 0.0)
        for replica in in_order:
            self._send_own(replica)
        while any(self._steal(replica) for replica in in_order):
            pass
        if not any(replica.sent for replica in in_order):  # what others are too slow for, or failed at
            for replica in in_order:
                if replica.waiting and replica.has_room():
                    self._send(replica)

    def _send_own(self, replica: Replica) -> None:
        while replica.waiting and replica.has_room(len(replica.first().requests)) and self._helps(replica):
            self._send(replica)

    def _helps(self, replica: Replica) -> bool:
        """Say whether a replica would answer before the others had answered all that waits without it."""
        others = [other for other in self.replicas if other is not replica and other.is_up and other.seconds]
        if not replica.seconds or not others:
            return True
        n_waiting = sum(each.n_waiting for each in self.replicas)
        n_a_second = sum(other.window / (other.seconds or 1.0) for other in others)
        return replica.seconds <= SLOW * min(other.seconds or 0.0 for other in others) + n_waiting / n_a_second

    def _steal(self, thief: Replica) -> bool:
        """Take a question that waits for another, if there is nothing else to do; say whether one was taken."""
        if thief.waiting or not thief.has_room() or not self._helps(thief):
            return False
        for other in sorted(self.replicas, key=lambda replica: -replica.n_waiting):
            if other is not thief and (uid := other.last_movable(thief)) is not None:
                for group in other.take(uid):
                    thief.put(group)
                self._settle(uid, thief)
                self._send_own(thief)
                return True
        return False

    def _send(self, replica: Replica) -> None:
        group = replica.take_first()
        replica.n_sent_of[group.uid] += 1
        replica.sent[group] = self._task(self._answer(replica, group))

    async def _answer(self, replica: Replica, group: Group) -> None:
        """Ask one replica until all requests of a group are answered, or are moved on."""
        while group.requests:
            n_before, started = replica.n_answers, time.monotonic()
            try:
                completions = await self._ask(replica, group.requests, group.settings)
            except RefusedError as refusal:
                self._set_aside(group, "refused", f"The server refuses it: {refusal}")
                return
            except TryError as failure:
                if not self._goes_on(replica, group, failure, n_before, started):
                    return
                group.is_pausing = True
                await asyncio.sleep(pause_seconds(group.n_failures, failure.retry_after, self._rng))
                group.is_pausing = False
            else:
                self._answered(replica, time.monotonic() - started, len(completions))
                for completion in completions:
                    group.sink.put(completion, 1)
                del group.requests[: len(completions)]  # a server may give fewer than asked for
        replica.finished(group)
        self._dispatch()

    def _answered(self, replica: Replica, seconds: float, n_completions: int) -> None:
        """Trust a replica with more, or with fewer where it is slow beside the others."""
        replica.n_answers += 1
        replica.n_losses, replica.suspected_at, replica.failure = 0, None, None
        replica.seconds = seconds if replica.seconds is None else 0.8 * replica.seconds + 0.2 * seconds
        known = [other.seconds for other in self.replicas if other.is_up and other.seconds is not None]
        if replica.seconds <= SLOW * min(known, default=replica.seconds):
            replica.window = min(self._concurrency, replica.window + 2 * n_completions)
        elif replica.window > self._first_window:
            replica.window = max(self._first_window, replica.window - n_completions)

    def _goes_on(self, replica: Replica, group: Group, failure: TryError, n_before: int, started: float) -> bool:
        """Take note of a failure, and say whether the same replica is to be asked again.

        It is given up when it answered nothing since a try that began after it was suspected already.
        """
        replica.failure = failure
        if not failure.is_lost and not failure.is_busy:
            group.n_failures += 1
        if failure.is_busy:
            replica.window = max(1, replica.window // 2)
        if replica.is_up and replica.n_answers == n_before:
            if failure.is_final or (replica.suspected_at is not None and started > replica.suspected_at):
                self._lose(replica, failure)
            elif replica.suspected_at is None:
                replica.suspected_at = time.monotonic()
        if group not in replica.sent:  # it was lost with the replica, and has moved already
            return False
        if group.n_failures <= self._max_retries and replica.is_up:
            return True
        if group.n_failures > self._max_retries and not self._has_another_chance(group, replica, failure):
            return False
        replica.finished(group)
        self._queue(group)
        self._dispatch()
        return False

    def _has_another_chance(self, group: Group, replica: Replica, failure: TryError) -> bool:
        """Say whether a group that failed too often is to be asked again: at every other replica that answers, and
        where there is none once more, after the others. Then its question is set aside, if others were answered."""
        is_first, n_answers = group.n_answers_at_failure is None, sum(other.n_answers for other in self.replicas)
        group.failed_at.add(replica)
        untried = [other for other in self.replicas if other.is_up and other not in group.failed_at]
        if is_first:
            group.n_answers_at_failure = n_answers
        elif not untried and group.n_answers_at_failure == n_answers:
            self._fail([group.sink])
            return False
        elif not untried:
            self._set_aside(group, "server_error", f"The server keeps failing on it: {failure.reason}")
            return False
        group.n_failures = 0
        if untried:
            self._settle(group.uid, max(untried, key=lambda other: _weight(other.url, group.uid)))
            for waiting in replica.take(group.uid):
                self._queue(waiting)
        return True

    def _set_aside(self, group: Group, code: str, message: str) -> None:
        group.sink.put(SetAside(group.uid, code, message), self.withdraw(group.sink, group.uid))
        self._dispatch()

    def _lose(self, replica: Replica, failure: TryError) -> None:
        """Send nothing more to a replica until it passes a check; what waits for it, and what it lost, goes elsewhere.

        What it was asked and may still answer is waited for, unless there is no connection to it any more.
        """
        replica.is_up, replica.suspected_at, replica.n_failed_checks = False, None, 0
        replica.n_losses += 1
        if len(self.replicas) > 1:
            _log.warning("%s does not answer (%s): its questions go to other servers.", replica.url, failure.reason)
        lost = [group for group in replica.sent if failure.is_lost or group.is_pausing]
        for group in lost:
            _cancel(replica.sent[group])
            replica.finished(group)
            group.is_pausing = False
        for group in [*lost, *(group for uid in list(replica.waiting) for group in replica.take(uid))]:
            self._queue(group)
        self._watch(replica)
        self._dispatch()

    def _watch(self, replica: Replica) -> None:
        self._watches[replica] = self._task(self._check_until_up(replica))

    async def _check_until_up(self, replica: Replica) -> None:
        if replica.n_losses > 1:  # it passed its last check, and then answered nothing
            await asyncio.sleep(pause_seconds(replica.n_losses, None, self._rng))
        while not replica.is_up:
            try:
                await self._check(replica)
            except TryError as failure:
                replica.failure = failure
                replica.n_failed_checks += 1 + failure.is_final * self._max_retries
                if self._homeless and self._is_hopeless():
                    self._fail({group.sink: None for group in self._homeless})
                await asyncio.sleep(pause_seconds(replica.n_failed_checks - 1, failure.retry_after, self._rng))
            else:
                replica.is_up, replica.n_failed_checks, replica.failure, replica.seconds = True, 0, None, None
                replica.window = self._first_window
                if len(self.replicas) > 1:
                    _log.warning("%s answers again.", replica.url)
        homeless, self._homeless = self._homeless, []
        self.submit(homeless)

    def _is_hopeless(self) -> bool:
        """Say whether no replica is worth waiting for."""
        return not any(replica.is_up or replica.n_failed_checks <= self._max_retries for replica in self.replicas)

    def error(self) -> SelectorError:
        """Say what is the matter with each replica that failed last time; there is one at least."""
        failures = [(replica.url, replica.failure) for replica in self.replicas if replica.failure]
        if len(failures) == 1:
            return failures[0][1].error
        each = "; ".join(f"{url}: {failure}" for url, failure in failures)
        return EngineUnavailable(where=", ".join(url for url, _ in failures), reason=each)

    def _fail(self, sinks: Iterable[Sink]) -> None:
        error = self.error()
        for sink in list(sinks):
            self.withdraw(sink)
            sink.fail(error)
        self._dispatch()

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Let a fault of this program be heard where answers are waited for."""
        if not task.cancelled() and (error := task.exception()):
            sinks = {group.sink: None for replica in self.replicas for group in replica.groups()}
            for sink in sinks | {group.sink: None for group in self._homeless}:
                sink.fail(error)

    async def close(self) -> None:
        """End what is in flight."""
        tasks = [*self._watches.values(), *(task for replica in self.replicas for task in replica.sent.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pause_seconds(n_failures: int, retry_after: float | None, rng: random.Random) -> float:
    """Return how long to wait after so many failures: between half and all of min(30, 2^(n-1)) seconds (n from 0), or,
    where the server says how long, between that and a quarter more, a minute at most: clients that failed together
    do not come back together."""
    if retry_after is not None:
        return min(retry_after, 60.0) * rng.uniform(1.0, 1.25)
    return min(LONGEST_PAUSE_SECONDS, 2.0 ** min(n_failures - 1, 10)) * rng.uniform(0.5, 1.0)


def _weight(url: str, uid: str) -> bytes:
    return hashlib.blake2b(f"{url}\0{uid}".encode(), digest_size=8).digest()


def _cancel(task: asyncio.Task[None]) -> None:
    if task is not asyncio.current_task():
        task.cancel()
