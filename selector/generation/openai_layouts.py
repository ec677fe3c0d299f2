"""The two ways of asking a server with OpenAI's API: by token ids, and by chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, cast

import openai
from openai.types.chat import ChatCompletionMessageParam
from transformers import GenerationConfig

from selector.errors import EngineUnavailable
from selector.generation.contract import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside
from selector.generation.models import recommended_sampling
from selector.generation.prompts import TEXT_LAYOUT, TokenLayout, chat_messages, extraction_messages

# What a server would otherwise take from the model's own recommendations, so that settings mean the same everywhere.
PLAIN_SAMPLING = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


class ServerLayout(Protocol):
    """How requests are put to a server."""

    completions_per_request: Mapping[CompletionKind, int]  # of one question and kind, asked for at once; 1 if not named

    async def ask(
        self, client: openai.AsyncOpenAI, group: Sequence[Request], settings: SamplingSettings
    ) -> list[Completion]:
        """Return completions for the first requests of a group of like ones: at least one, at most all.

        Raises what the client raises, and EngineUnavailable.
        """
        ...

    def too_long(self, prompts: Sequence[Prompt], settings: SamplingSettings) -> list[SetAside]: ...

    def recommended_sampling(self) -> Mapping[str, float]: ...

    @property
    def description(self) -> Mapping[str, object]: ...


class ByTokenIds:
    """Prompts and probes as token ids at /v1/completions, and token ids back."""

    completions_per_request: Mapping[CompletionKind, int] = {CompletionKind.OUTCOME: 8, CompletionKind.PROBE: 32}

    def __init__(self, model: str, *, layout: TokenLayout, context: int, generation_config: GenerationConfig) -> None:
        self._model, self._layout, self._context = model, layout, context
        self._generation_config = generation_config

    @cached_property
    def description(self) -> Mapping[str, object]:
        return self._layout.describe()

    def too_long(self, prompts: Sequence[Prompt], settings: SamplingSettings) -> list[SetAside]:
        return self._layout.too_long(prompts, settings, self._context)

    def recommended_sampling(self) -> Mapping[str, float]:
        return recommended_sampling(self._generation_config)

    async def ask(
        self, client: openai.AsyncOpenAI, group: Sequence[Request], settings: SamplingSettings
    ) -> list[Completion]:
        first = group[0]
        is_probe = first.kind is CompletionKind.PROBE
        prompt_ids = self._layout.prompt_ids(first.prompt)
        rows = [self._layout.row(request, prompt_ids) for request in (group if is_probe else group[:1])]
        answer = await client.completions.create(
            model=self._model,
            prompt=rows,
            n=1 if is_probe else len(group),
            stop=self._layout.probe_stop if is_probe else None,
            extra_body={"return_token_ids": True, **PLAIN_SAMPLING},
            **_sampling(first, settings),
        )
        choices = sorted(answer.choices, key=lambda choice: choice.index)
        if [choice.index for choice in choices] != list(range(len(choices))):
            raise EngineUnavailable(where=str(client.base_url), reason="it numbers its answers in its own way")
        lengths = [len(row) for row in rows] if is_probe else [len(prompt_ids)] * len(group)
        return [self._completion(client, *made) for made in zip(group, choices, lengths, strict=False)]

    def _completion(
        self, client: openai.AsyncOpenAI, request: Request, choice: Any, n_prompt_tokens: int
    ) -> Completion:
        ids = token_ids(choice)
        if ids is None:
            raise EngineUnavailable(where=str(client.base_url), reason="it stopped giving token ids back")
        return Completion(
            uid=request.prompt.uid,
            kind=request.kind,
            index=request.index,
            text=choice.text,
            n_tokens=len(ids),
            n_prompt_tokens=n_prompt_tokens,
            finish_reason=_finish_reason(choice, client),
            token_ids=self._layout.without_end(ids) if request.kind is CompletionKind.TRAJECTORY else (),
        )


class ByChat:
    """Questions as chat messages, and probes as the authors lay them out in text; lengths are the server's business."""

    completions_per_request: Mapping[CompletionKind, int] = {}  # servers differ in what they do with more, and count

    def __init__(self, model: str, *, instruction: str) -> None:
        self._model, self._instruction = model, instruction

    @property
    def description(self) -> Mapping[str, object]:
        return {"layout": TEXT_LAYOUT, "instruction": self._instruction}

    def too_long(self, prompts: Sequence[Prompt], settings: SamplingSettings) -> list[SetAside]:
        return []

    def recommended_sampling(self) -> Mapping[str, float]:
        return {}

    async def ask(
        self, client: openai.AsyncOpenAI, group: Sequence[Request], settings: SamplingSettings
    ) -> list[Completion]:
        request = group[0]
        messages = chat_messages(request.prompt, self._instruction)
        if request.kind is CompletionKind.PROBE:
            messages = extraction_messages(request.prompt, self._instruction, request.trajectory_text, request.index)
        answer = await client.chat.completions.create(
            model=self._model,
            messages=cast(list[ChatCompletionMessageParam], messages),
            **_sampling(request, settings),
        )
        choice, usage = answer.choices[0], answer.usage
        completion = Completion(
            uid=request.prompt.uid,
            kind=request.kind,
            index=request.index,
            text=choice.message.content or "",
            n_tokens=usage.completion_tokens if usage else 0,
            n_prompt_tokens=usage.prompt_tokens if usage else 0,
            finish_reason=_finish_reason(choice, client),
        )
        return [completion]


def token_ids(choice: Any) -> list[int] | None:
    """Return the token ids that a server gives beside the text, if it does."""
    ids: list[int] | None = (choice.model_extra or {}).get("token_ids")
    return ids


def _sampling(request: Request, settings: SamplingSettings) -> dict[str, Any]:
    is_outcome = request.kind is CompletionKind.OUTCOME
    is_probe = request.kind is CompletionKind.PROBE
    return {
        "max_tokens": settings.probe_max_tokens if is_probe else settings.max_tokens,
        "temperature": settings.temperature if is_outcome else 0.0,
        "top_p": settings.top_p if is_outcome else 1.0,
    }


def _finish_reason(choice: Any, client: openai.AsyncOpenAI) -> str:
    if choice.finish_reason in (None, "abort"):
        raise EngineUnavailable(where=str(client.base_url), reason="it broke an answer off")
    return "length" if choice.finish_reason == "length" else "stop"
