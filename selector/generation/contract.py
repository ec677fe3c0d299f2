"""What every engine does: take requests as token ids or text, give completions back as they finish."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class CompletionKind(StrEnum):
    """What a completion was asked for."""

    OUTCOME = "outcome"  # one sampled rollout
    TRAJECTORY = "trajectory"  # the greedy chain that is cut
    PROBE = "probe"  # the answer forced at a cut


@dataclass(frozen=True)
class Prompt:
    """A question as the model is asked it."""

    uid: str
    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class SamplingSettings:
    """How answers are sampled. All of it is part of the generation fingerprint."""

    temperature: float = 0.6
    top_p: float = 1.0
    max_tokens: int = 2048  # of a rollout and of the trajectory
    probe_max_tokens: int = 64


@dataclass(frozen=True)
class Request:
    """One completion to make.

    ``index`` tells completions of one question and kind apart: 0..n-1 for outcomes, 0 for the trajectory, and for
    a probe the number of trajectory tokens it keeps (so that equal cuts are asked once, whatever n_P is).
    A probe carries the whole trajectory, as ids or (where the server gives none) as text; the engine cuts it.
    """

    prompt: Prompt
    kind: CompletionKind
    index: int
    trajectory_ids: tuple[int, ...] = ()
    trajectory_text: str = ""


@dataclass(frozen=True)
class Completion:
    """What the model wrote, as it wrote it; answers are read from it later, so that a better reader costs nothing."""

    uid: str
    kind: CompletionKind
    index: int
    text: str  # of a probe: what follows the prefilled "\\boxed{"; of a probe cut from text: the whole response
    n_tokens: int  # generated, the end token included
    n_prompt_tokens: int
    finish_reason: str  # "stop" or "length"; never mixed with the answer
    token_ids: tuple[int, ...] = ()  # of trajectories only, without the end token; empty where there is only text


@dataclass(frozen=True)
class SetAside:
    """A question that cannot be asked: named and counted, and it does not fail the batch."""

    uid: str
    code: str  # "prompt_too_long", "refused", "server_error"
    message: str


class Feed(Protocol):
    """Requests in flight that take more while others are answered: a race asks little at a time and often."""

    @property
    def n_in_flight(self) -> int:
        """How many submitted requests have neither a completion nor a question set aside taken by ``results``."""
        ...

    def submit(self, requests: Sequence[Request]) -> None:
        """Put requests in flight now, and return at once; those of one question and kind stay together.

        A (question, kind, index) may be submitted again once its answer was taken, not before.
        """
        ...

    def results(self, timeout: float | None = None) -> list[Completion | SetAside]:
        """Return what was answered since the last call, in any order; wait for one, at most ``timeout`` seconds.

        Empty at once when nothing is in flight, and when the time is over. A SetAside answers everything of its
        question that is in flight: nothing more comes for it.
        Raises EngineUnavailable when the model cannot be asked any more, after giving all that was answered.
        """
        ...

    def close(self) -> None:
        """Cancel what is in flight; nothing more is given. Safe to repeat."""
        ...


class Engine(Protocol):
    """A model that answers requests. Implementations: transformers_local, vllm_local, openai_http, ray_data, scripted.

    An engine that can take new requests while others are in flight is a FedEngine.
    """

    def fingerprint(self, settings: SamplingSettings) -> str:
        """Hash what answers depend on: weights revision, tokenizer and template, prompt and probe layout version,
        temperature, top_p, token limits, dtype, engine family. Never the URL, n, seed or batch size."""
        ...

    def describe(self, settings: SamplingSettings) -> Mapping[str, object]:
        """The parts of the fingerprint by name, for reports and for saying what differs."""
        ...

    def recommended_sampling(self) -> Mapping[str, float]:
        """Return the ``temperature`` and ``top_p`` that the model's authors recommend, as far as they do."""
        ...

    def set_aside(self, prompts: Sequence[Prompt], settings: SamplingSettings) -> list[SetAside]:
        """Name the prompts too long for the model, by length on the rendered template.

        Raises InvalidConfig when ``max_tokens`` leaves no room for any prompt.
        """
        ...

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Generator[Completion | SetAside, None, None]:
        """Yield one completion per request as they finish, in any order; SetAside for a question the model refuses.

        Raises EngineUnavailable when the model cannot be asked any more; what was yielded stays good.
        """
        ...

    def close(self) -> None:
        """Free the model or the connections."""
        ...


class FedEngine(Engine, Protocol):
    """An engine that takes new requests while others are in flight. ``complete`` is then one feed, fed once."""

    def feed(self, settings: SamplingSettings, seed: int) -> Feed:
        """Open a feed, to be closed by the caller; everything submitted to it is sampled by ``settings``."""
        ...


def fed_once(feed: Feed, requests: Sequence[Request]) -> Generator[Completion | SetAside, None, None]:
    """Submit all requests and yield what comes of them: ``complete`` by way of a feed, which is closed at the end."""
    try:
        feed.submit(requests)
        while feed.n_in_flight:
            yield from feed.results()
    finally:
        feed.close()
