"""One of several servers of a model: what it has to do, how it does, and what can go wrong with it."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from selector.errors import SelectorError
from selector.generation.contract import Completion, Request, SamplingSettings, SetAside

FIRST_WINDOW = 32  # completions at once, of a replica that has answered nothing yet


class RefusedError(Exception):
    """A server will never answer these requests; the text says why."""


class TryError(Exception):
    """A server did not answer this time."""

    def __init__(
        self,
        error: SelectorError,
        reason: str,
        *,
        is_lost: bool = False,
        is_busy: bool = False,
        is_final: bool = False,
        retry_after: float | None = None,
    ) -> None:
        """``is_lost``: no connection, so what is in flight will not come. ``is_busy``: it asks for patience.
        ``is_final``: it answers, but not to us; asking again soon is no use. ``retry_after``: seconds it asks for."""
        super().__init__(reason)
        self.error, self.reason, self.retry_after = error, reason, retry_after
        self.is_lost, self.is_busy, self.is_final = is_lost, is_busy, is_final


class Sink(Protocol):
    """Where answers go."""

    def put(self, result: Completion | SetAside, n_requests: int) -> None: ...

    def fail(self, error: BaseException) -> None: ...


@dataclass(eq=False)
class Group:
    """Like requests of one question that are asked together, until none is left."""

    requests: list[Request]
    settings: SamplingSettings
    sink: Sink
    n_failures: int = 0
    n_answers_at_failure: int | None = None  # what all replicas had answered when this first failed once too often
    failed_at: set[Replica] = field(default_factory=set)  # where it failed once too often
    is_pausing: bool = False

    def __post_init__(self) -> None:
        self.uid = self.requests[0].prompt.uid


@dataclass(eq=False)
class Replica:
    """One server, what it has to do, and how it does."""

    url: str
    client: Any
    window: int = FIRST_WINDOW
    is_up: bool = True
    suspected_at: float | None = None  # its last try failed; until it answers, one thing at a time is sent
    failure: TryError | None = None
    n_failed_checks: int = 0
    n_losses: int = 0  # since its last answer
    n_answers: int = 0
    seconds: float | None = None  # that an answer takes, smoothed
    waiting: dict[str, deque[Group]] = field(default_factory=dict)
    n_waiting: int = 0  # completions
    sent: dict[Group, asyncio.Task[None]] = field(default_factory=dict)
    n_sent_of: Counter[str] = field(default_factory=Counter)

    def has_room(self, n_more: int = 1) -> bool:
        if not self.is_up or self.suspected_at is not None:
            return self.is_up and not self.sent
        return not self.sent or sum(len(group.requests) for group in self.sent) + n_more <= self.window

    def put(self, group: Group) -> None:
        """Let a group wait, with others of its question or at the end."""
        self.waiting.setdefault(group.uid, deque()).append(group)
        self.n_waiting += len(group.requests)

    def first(self) -> Group:
        """Return what is sent next; something waits."""
        return next(iter(self.waiting.values()))[0]

    def take_first(self) -> Group:
        group = self.first()
        self.waiting[group.uid].popleft()
        if not self.waiting[group.uid]:
            del self.waiting[group.uid]
        self.n_waiting -= len(group.requests)
        return group

    def take(self, uid: str) -> Sequence[Group]:
        """Return what waits of a question, and let it wait here no more."""
        groups = self.waiting.pop(uid, deque())
        self.n_waiting -= sum(len(group.requests) for group in groups)
        return groups

    def groups(self) -> list[Group]:
        return [*self.sent, *(group for groups in self.waiting.values() for group in groups)]

    def last_movable(self, to: Replica) -> str | None:
        """Return the question that would be asked last, of those of which nothing was sent and the other can begin."""
        for uid, groups in reversed(self.waiting.items()):
            is_free = uid not in self.n_sent_of and not any(to in group.failed_at for group in groups)
            if is_free and to.has_room(len(groups[0].requests)):
                return uid
        return None

    def finished(self, group: Group) -> None:
        del self.sent[group]
        self.n_sent_of[group.uid] -= 1
        if not self.n_sent_of[group.uid]:
            del self.n_sent_of[group.uid]
