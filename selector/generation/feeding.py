"""Asking any engine as a race asks: a few requests now, more while the first are answered."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import cast

from selector.generation.contract import Completion, Engine, FedEngine, Feed, Request, SamplingSettings, SetAside

BATCH = 256


def feed_of(engine: Engine, settings: SamplingSettings, seed: int) -> Feed:
    """Return the engine's own feed; for one that answers a batch at a time, a feed that hands it what has gathered."""
    if hasattr(engine, "feed"):
        return cast(FedEngine, engine).feed(settings, seed)
    return BatchFeed(engine, settings, seed)


def fewest_at_once(engine: Engine) -> int:
    """Return how many requests such an engine needs in flight to be fast; what answers in batches wants large ones."""
    return 1 if hasattr(engine, "feed") else BATCH


class BatchFeed:
    """A feed for an engine that takes nothing new before its batch is done: requests gather, and are the next batch."""

    def __init__(self, engine: Engine, settings: SamplingSettings, seed: int) -> None:
        self._engine, self._settings, self._seed = engine, settings, seed
        self._gathered: list[Request] = []
        self._batch: Generator[Completion | SetAside, None, None] | None = None
        self._in_flight: dict[str, int] = {}  # requests by question

    @property
    def n_in_flight(self) -> int:
        return sum(self._in_flight.values())

    def submit(self, requests: Sequence[Request]) -> None:
        self._gathered += requests
        for request in requests:
            self._in_flight[request.prompt.uid] = self._in_flight.get(request.prompt.uid, 0) + 1

    def results(self, timeout: float | None = None) -> list[Completion | SetAside]:
        """Return the next answer; a batch cannot be looked at without waiting, so ``timeout`` is not heeded."""
        while self._batch is not None or self._gathered:
            if self._batch is None:
                batch, self._gathered = self._gathered, []
                self._batch = self._engine.complete(batch, self._settings, self._seed)
            result = next(self._batch, None)
            if result is None:
                self._batch = None
                continue
            if isinstance(result, SetAside):
                if self._in_flight.pop(result.uid, 0):
                    self._gathered = [request for request in self._gathered if request.prompt.uid != result.uid]
                    return [result]
            elif result.uid in self._in_flight:
                self._in_flight[result.uid] -= 1
                if not self._in_flight[result.uid]:
                    del self._in_flight[result.uid]
                return [result]
        return []

    def close(self) -> None:
        if self._batch is not None:
            self._batch.close()
        self._batch, self._gathered, self._in_flight = None, [], {}
