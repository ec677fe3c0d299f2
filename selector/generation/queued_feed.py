"""A feed whose answers another thread puts in."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import TypeAlias

from selector.generation.contract import Completion, Request, SetAside

Answer: TypeAlias = Completion | SetAside


class QueuedFeed:
    """Requests go out by ``start``, in flight until ``put`` has answered them; ``stop`` cancels what is left.

    ``put`` and ``fail`` may be called from any thread, everything else from one.
    """

    def __init__(
        self, start: Callable[[QueuedFeed, Sequence[Request]], None], stop: Callable[[QueuedFeed], None]
    ) -> None:
        self._start, self._stop = start, stop
        self._answers: queue.SimpleQueue[tuple[Answer, int] | BaseException] = queue.SimpleQueue()
        self._n_in_flight = 0
        self._failure: BaseException | None = None
        self._is_open = True

    @property
    def n_in_flight(self) -> int:
        return self._n_in_flight

    def submit(self, requests: Sequence[Request]) -> None:
        if not self._is_open:
            raise ValueError("this feed is closed")
        self._n_in_flight += len(requests)
        if requests:
            self._start(self, requests)

    def results(self, timeout: float | None = None) -> list[Answer]:
        answers: list[Answer] = []
        while self._n_in_flight and self._failure is None:
            try:
                answer = self._answers.get_nowait() if answers else self._answers.get(timeout=timeout)
            except queue.Empty:
                break
            if isinstance(answer, BaseException):
                self._failure = answer
            else:
                answers.append(answer[0])
                self._n_in_flight -= answer[1]
        if self._failure is not None and not answers:
            raise self._failure
        return answers

    def close(self) -> None:
        if self._is_open:
            self._is_open, self._n_in_flight = False, 0
            self._stop(self)

    def put(self, answer: Answer, n_requests: int) -> None:
        """Give an answer to so many of the requests in flight."""
        self._answers.put((answer, n_requests))

    def fail(self, error: BaseException) -> None:
        """Nothing more will come; say why."""
        self._answers.put(error)
