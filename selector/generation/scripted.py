"""A model that answers from a script: for tests, and for trying the rest out without a model."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence

from selector.errors import EngineUnavailable
from selector.generation.contract import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside
from selector.generation.prompts import fingerprint_of

Key = tuple[str, CompletionKind, int]


class ScriptedCrashError(RuntimeError):
    """The script said to crash here."""


class ScriptedEngine:
    """Answers from ``script`` where it has the request, else with one of ``answers`` chosen by a hash of the request.

    A request is named by (uid, kind, index). Trajectories count 1 to 12 steps, one token a word. The same request
    always gets the same answer, whatever the seed.
    """

    def __init__(
        self,
        model: str = "scripted",
        *,
        script: Mapping[Key, str] | None = None,
        answers: Sequence[str] = ("1", "2", "3", "4"),
        delay_seconds: float = 0.0,
        fails_half: bool = False,
        crash_after: int | None = None,
        refused: Sequence[str] = (),
        max_prompt_words: int = 10_000,
    ) -> None:
        """``model`` only names it. ``fails_half``: every call breaks off after half of its requests. ``crash_after``:
        ScriptedCrashError after so many completions. ``refused``: uids that are refused one by one."""
        self._model, self._script, self._answers = model, dict(script or {}), tuple(answers)
        self._delay_seconds, self._fails_half, self._crash_after = delay_seconds, fails_half, crash_after
        self._refused, self._max_prompt_words = frozenset(refused), max_prompt_words
        self.asked: Counter[Key] = Counter()

    def describe(self, settings: SamplingSettings) -> Mapping[str, object]:
        script = sorted((*map(str, key), text) for key, text in self._script.items())
        return {
            "engine": "scripted",
            "model": self._model,
            "script": hashlib.sha256(repr((script, self._answers)).encode()).hexdigest()[:16],
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "probe_max_tokens": settings.probe_max_tokens,
        }

    def fingerprint(self, settings: SamplingSettings) -> str:
        return fingerprint_of(self.describe(settings))

    def recommended_sampling(self) -> Mapping[str, float]:
        return {}

    def set_aside(self, prompts: Sequence[Prompt], settings: SamplingSettings) -> list[SetAside]:
        lengths = ((prompt.uid, len(prompt.text.split())) for prompt in prompts)
        return [
            SetAside(uid, "prompt_too_long", f"The prompt has {length} words, with room for {self._max_prompt_words}.")
            for uid, length in lengths
            if length > self._max_prompt_words
        ]

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Generator[Completion | SetAside, None, None]:
        refused_here: set[str] = set()
        for n_done, request in enumerate(requests):
            uid = request.prompt.uid
            if self._fails_half and n_done >= (len(requests) + 1) // 2:
                raise EngineUnavailable(where="the script", reason="it fails half of the time")
            if self._crash_after is not None and self.asked.total() >= self._crash_after:
                raise ScriptedCrashError(f"crashed after {self._crash_after} completions")
            time.sleep(self._delay_seconds)
            if uid in self._refused:
                if uid not in refused_here:
                    refused_here.add(uid)
                    yield SetAside(uid, "refused", "The script refuses this question.")
                continue
            self.asked[uid, request.kind, request.index] += 1
            yield self._completion(request, settings)

    def _completion(self, request: Request, settings: SamplingSettings) -> Completion:
        uid = request.prompt.uid
        number = _hash(uid, request.kind, request.index)
        text = self._script.get((uid, request.kind, request.index), "")
        if not text:
            answer = self._answers[number % len(self._answers)]
            steps = " ".join(f"step{i}" for i in range(1 + number % 12))
            text = f"{answer}}}" if request.kind is CompletionKind.PROBE else f"{steps} \\boxed{{{answer}}}"
        is_probe = request.kind is CompletionKind.PROBE
        limit = settings.probe_max_tokens if is_probe else settings.max_tokens
        words = text.split(" ")
        is_trajectory = request.kind is CompletionKind.TRAJECTORY
        return Completion(
            uid=uid,
            kind=request.kind,
            index=request.index,
            text=" ".join(words[:limit]),
            n_tokens=min(len(words), limit),
            n_prompt_tokens=len(request.prompt.text.split()) + (request.index if is_probe else 0),
            finish_reason="stop" if len(words) <= limit else "length",
            token_ids=tuple(_hash(word) % 2**31 for word in words[:limit]) if is_trajectory else (),
        )

    def close(self) -> None:
        """Nothing to free."""


def _hash(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest(), "big")
