"""Outcome answers asked for one by one, as a race wants them: from the store, and what it lacks of the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from selector.answers import extract_answer
from selector.errors import Stopped
from selector.generation.contract import Completion, CompletionKind, Engine, Prompt, Request, SamplingSettings, SetAside
from selector.generation.feeding import feed_of, fewest_at_once
from selector.generation.store import CompletionStore
from selector.volatility import SECONDS_BETWEEN_SAVES

SECONDS_BETWEEN_LOOKS = 1.0  # at whether to stop, while nothing comes in


@dataclass(frozen=True)
class Heard:
    """The answer to one outcome of a question, "" where none could be read, and how long the completion was."""

    uid: str
    index: int
    answer: str
    n_tokens: int


class ModelOutcomes:
    """A model's outcomes of the questions in ``prompts``, which are by the uids a race knows them by.

    Questions of one prompt share its completions. Everything is stored as it comes: every ``chunk_size`` completions,
    and at least every few seconds; what is stored is never asked again. ``set_aside`` names questions that the model
    refused on the way. To be closed, which stores what came and cancels what is in flight.
    """

    def __init__(
        self,
        engine: Engine,
        prompts: Mapping[str, Prompt],
        *,
        settings: SamplingSettings,
        seed: int,
        store: CompletionStore,
        chunk_size: int = 256,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._prompts, self._store, self._should_stop = prompts, store, should_stop
        self._keys = {prompt.uid for prompt in prompts.values()}
        self._stored = {(key, index) for key, kind, index in store.keys(self._keys) if kind is CompletionKind.OUTCOME}
        self._unsaved: dict[tuple[str, int], Completion] = {}
        self._chunk_size, self._saved_at = chunk_size, time.monotonic()
        self.n_made = 0  # completions
        self._feed = feed_of(engine, settings, seed)
        self.fewest_at_once = fewest_at_once(engine)
        self._waiting: dict[str, dict[int, list[str]]] = {}  # key, index: uids
        self._ready: list[Heard | SetAside] = []
        self.set_aside: dict[str, SetAside] = {}

    @property
    def n_in_flight(self) -> int:
        """How many answers are asked for and not heard."""
        return self._feed.n_in_flight + len(self._ready)

    def ask(self, wanted: Sequence[tuple[str, int]]) -> None:
        """Ask for outcomes, each by its question's uid and its index."""
        requests = []
        found: dict[str, dict[int, Completion]] = {}
        for uid, index in wanted:
            key = self._prompts[uid].uid
            if uid in self.set_aside:
                continue
            if unsaved := self._unsaved.get((key, index)):
                self._ready.append(_heard(uid, unsaved))
            elif (key, index) in self._stored:
                if key not in found:
                    found[key] = {each.index: each for each in self._store.load([key], CompletionKind.OUTCOME)}
                self._ready.append(_heard(uid, found[key][index]))
            elif index in (waiting := self._waiting.setdefault(key, {})):
                waiting[index].append(uid)
            else:
                waiting[index] = [uid]
                requests.append(Request(self._prompts[uid], CompletionKind.OUTCOME, index))
        self._feed.submit(requests)

    def heard(self) -> list[Heard | SetAside]:
        """Return what came since the last call; wait for something unless nothing was asked for.

        Raises Stopped and EngineUnavailable, both after storing what came.
        """
        ready, self._ready = self._ready, []
        while not ready and self._feed.n_in_flight:
            self._check()
            for result in self._feed.results(SECONDS_BETWEEN_LOOKS):
                ready += self._noted(result)
        self._check()
        return ready

    def _noted(self, result: Completion | SetAside) -> list[Heard | SetAside]:
        waiting = self._waiting.get(result.uid, {})
        if isinstance(result, SetAside):
            del self._waiting[result.uid]
            asked = [uid for uid, prompt in self._prompts.items() if prompt.uid == result.uid]
            named = [SetAside(uid, result.code, result.message) for uid in asked]
            self.set_aside |= {each.uid: each for each in named}
            return list(named)
        self._unsaved[result.uid, result.index] = result
        self.n_made += 1
        is_late = time.monotonic() - self._saved_at > SECONDS_BETWEEN_SAVES
        if len(self._unsaved) >= self._chunk_size or is_late:
            self._save()
        return [_heard(uid, result) for uid in waiting.pop(result.index)]

    def _save(self) -> None:
        chunk, self._unsaved = self._unsaved, {}  # a chunk that the store refuses is not offered again
        if chunk:
            self._store.add(list(chunk.values()))
            self._stored |= chunk.keys()
        self._saved_at = time.monotonic()

    def _check(self) -> None:
        if self._should_stop():
            self._save()
            raise Stopped("Stopped as asked; what was finished is kept.")

    def count_tokens(self, keys: Collection[str]) -> int:
        """Return the tokens of all outcomes stored of the questions with these keys."""
        self._save()
        return self._store.tokens(keys)[CompletionKind.OUTCOME]

    def close(self) -> None:
        """Store what came, and cancel what is in flight."""
        self._save()
        self._feed.close()


def _heard(uid: str, completion: Completion) -> Heard:
    return Heard(uid, completion.index, extract_answer(completion.text), completion.n_tokens)
