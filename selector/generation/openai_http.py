"""A model behind an HTTP server with OpenAI's API: vLLM by token ids, others by chat.

A server that takes token ids at /v1/completions and gives them back (vLLM does) is asked exactly as a model in this
process: prompts and probes are token ids. Any other server is asked by chat, with probes laid out as text; that is
another layout and another fingerprint. No seed is ever sent: vLLM on a CPU dies of it, elsewhere it promises little.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Coroutine, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import openai
from transformers import AutoTokenizer

from selector.errors import EngineUnavailable, InvalidConfig, ModelNotFound, TokenizerNotFound
from selector.generation.contract import Completion, Prompt, Request, SamplingSettings, SetAside
from selector.generation.models import TINY_NAME, end_ids, load_generation_config, model_name, resolve_model
from selector.generation.openai_layouts import ByChat, ByTokenIds, ServerLayout, token_ids
from selector.generation.prompts import TokenLayout, fingerprint_of

T = TypeVar("T")
NO_KNOWN_LIMIT = 2**31


@dataclass(frozen=True)
class _Served:
    """What the server says of the model."""

    root: str  # where its files are, as the server sees it
    context: int
    takes_ids: bool


@dataclass
class _Group:
    """Like requests that are asked together, until none is left."""

    requests: list[Request]
    n_answers_at_failure: int | None = None  # what the server had answered in all when it last failed on this


_Results = queue.SimpleQueue[Completion | SetAside | None]


class OpenAIEngine:
    """Keeps ``concurrency`` completions in flight over kept-alive connections, and retries with growing pauses.

    ``tokenizer``: directory or hub name, where the server's own name for the model leads to none.
    ``layout``: "token-ids" or "chat"; found out by asking unless given.
    Raises InvalidConfig, ModelNotFound, TokenizerNotFound and EngineUnavailable.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        tokenizer: str | None = None,
        revision: str | None = None,
        instruction: str | None = None,
        layout: str | None = None,
        concurrency: int = 256,
        max_retries: int = 8,
        timeout_seconds: float = 1800.0,
    ) -> None:
        if not base_url:
            raise InvalidConfig("base_url", base_url, "the address of a server, such as http://127.0.0.1:8000/v1")
        if layout not in (None, "token-ids", "chat"):
            raise InvalidConfig("layout", layout, "token-ids or chat")
        if concurrency < 1:
            raise InvalidConfig("concurrency", concurrency, "at least 1")
        self._model, self._url, self._revision, self._concurrency = model, base_url, revision, concurrency
        api_key = _api_key(api_key_env)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai-http", daemon=True)
        self._thread.start()
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key,
            max_retries=max_retries,
            timeout=openai.Timeout(timeout_seconds, connect=10),
        )
        self._n_answers = 0  # of all requests so far: tells a server that fails from a request that fails
        try:
            served = self._run(self._connect(layout))
            _, instruction = resolve_model(TINY_NAME if model == TINY_NAME else served.root, instruction)
            self._layout: ServerLayout = (
                self._by_token_ids(tokenizer, served, instruction)
                if served.takes_ids
                else ByChat(self._client, model, instruction=instruction)
            )
        except BaseException:
            self.close()
            raise

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _connect(self, layout: str | None) -> _Served:
        try:
            try:
                page = await self._client.with_options(max_retries=1, timeout=10).models.list()
            except (openai.InternalServerError, openai.RateLimitError):
                page = await self._client.models.list()
        except openai.NotFoundError as error:
            raise EngineUnavailable(
                where=self._url, reason="it knows no /models below this address (it usually ends in /v1)"
            ) from error
        except openai.APIError as error:
            raise self._translated(error) from error
        entries = {entry.id: entry for entry in page.data}
        if self._model not in entries:
            raise ModelNotFound(model=self._model, where=self._url, available=", ".join(sorted(entries)))
        extra = entries[self._model].model_extra or {}
        takes_ids = await self._takes_ids() if layout is None else layout == "token-ids"
        return _Served(extra.get("root") or self._model, extra.get("max_model_len") or NO_KNOWN_LIMIT, takes_ids)

    async def _takes_ids(self) -> bool:
        """Ask for one token after two token ids, and see whether ids are understood and given back."""
        try:
            answer = await self._client.completions.create(
                model=self._model, prompt=[1, 1], max_tokens=1, temperature=0, extra_body={"return_token_ids": True}
            )
        except (openai.BadRequestError, openai.NotFoundError, openai.UnprocessableEntityError):
            return False
        except openai.APIStatusError as error:
            if error.status_code in (405, 501):
                return False
            raise self._translated(error) from error
        except openai.APIError as error:
            raise self._translated(error) from error
        if not token_ids(answer.choices[0]):
            raise EngineUnavailable(
                where=self._url,
                reason="it takes token ids but gives none back, so that trajectories cannot be cut exactly "
                "(vLLM does, by return_token_ids); use the layout 'chat' with this server",
            )
        return True

    def _by_token_ids(self, tokenizer: str | None, served: _Served, instruction: str) -> ByTokenIds:
        source = tokenizer or (resolve_model(TINY_NAME)[0] if self._model == TINY_NAME else served.root)
        revision = None if Path(source).is_dir() else self._revision
        try:
            loaded = AutoTokenizer.from_pretrained(source, revision=revision)
        except (OSError, ValueError) as error:
            raise TokenizerNotFound(tokenizer=source, model=self._model) from error
        config = load_generation_config(source, revision)
        layout = TokenLayout(loaded, instruction, extra_eos_ids=end_ids(config))
        return ByTokenIds(self._client, self._model, layout=layout, context=served.context, generation_config=config)

    def describe(self, settings: SamplingSettings) -> Mapping[str, object]:
        return {
            "engine": "openai",
            "model": model_name(self._model),
            "weights": self._revision or "as served",
            **self._layout.description,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "probe_max_tokens": settings.probe_max_tokens,
        }

    def fingerprint(self, settings: SamplingSettings) -> str:
        return fingerprint_of(self.describe(settings))

    def recommended_sampling(self) -> Mapping[str, float]:
        return self._layout.recommended_sampling()

    def set_aside(self, prompts: Sequence[Prompt], settings: SamplingSettings) -> list[SetAside]:
        """Name the prompts too long for the model; by chat none is known before the server refuses it."""
        return self._layout.too_long(prompts, settings)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Generator[Completion | SetAside, None, None]:
        results: _Results = queue.SimpleQueue()
        groups = deque(self._groups(requests))
        work = asyncio.run_coroutine_threadsafe(self._work(groups, settings, results), self._loop)
        try:
            while (result := results.get()) is not None:
                yield result
            work.result()
        finally:
            work.cancel()

    def _groups(self, requests: Sequence[Request]) -> Iterator[_Group]:
        """Put requests of one question and kind together, as many as the layout asks at once."""
        for (_, kind), alike in groupby(requests, key=lambda request: (request.prompt.uid, request.kind)):
            size = self._layout.completions_per_request.get(kind, 1)
            while some := list(islice(alike, size)):
                yield _Group(some)

    async def _work(self, groups: deque[_Group], settings: SamplingSettings, results: _Results) -> None:
        """Answer all groups, about ``concurrency`` completions at a time; None follows the last result."""

        async def worker() -> None:
            while groups:
                group = groups.popleft()
                await self._answer(group, settings, results)
                if group.requests:
                    groups.append(group)

        largest = max((len(group.requests) for group in groups), default=1)
        workers = [asyncio.create_task(worker()) for _ in range(-(-self._concurrency // largest))]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            results.put(None)

    async def _answer(self, group: _Group, settings: SamplingSettings, results: _Results) -> None:
        """Ask once (with the client's retries) and take from the group what needs no more asking.

        What the server refuses is set aside, and so is that on which it failed twice while it answered others.
        """
        uid = group.requests[0].prompt.uid
        try:
            completions = await self._layout.ask(group.requests, settings)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            results.put(SetAside(uid, "refused", f"The server refuses it: {_reason(error)}"))
            group.requests.clear()
        except openai.InternalServerError as error:
            if group.n_answers_at_failure == self._n_answers:
                raise self._translated(error) from error
            if group.n_answers_at_failure is not None:
                results.put(SetAside(uid, "server_error", f"The server keeps failing on it: {_reason(error)}"))
                group.requests.clear()
            group.n_answers_at_failure = self._n_answers
        except openai.APIError as error:
            raise self._translated(error) from error
        else:
            self._n_answers += 1
            for completion in completions:
                results.put(completion)
            del group.requests[: len(completions)]  # a server may give fewer than asked for

    def _translated(self, error: openai.APIError) -> EngineUnavailable | ModelNotFound:
        if isinstance(error, openai.NotFoundError):
            return ModelNotFound(model=self._model, where=self._url)
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return EngineUnavailable(where=self._url, reason="it refuses the API key (give api_key_env)")
        return EngineUnavailable(where=self._url, reason=_reason(error))

    def close(self) -> None:
        """End what is in flight and the connections."""
        if self._thread.is_alive():
            self._run(self._shut_down())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _shut_down(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()
        await asyncio.sleep(0)  # transports close one turn later


def _api_key(variable: str | None) -> str:
    if variable is None:
        return "none"  # a server of one's own wants none, the client insists on one
    if not os.environ.get(variable):
        raise InvalidConfig("api_key_env", variable, "the name of an environment variable that holds the key")
    return os.environ[variable]


def _reason(error: openai.APIError) -> str:
    if isinstance(error, openai.APITimeoutError):
        return "it took too long"
    if isinstance(error, openai.APIConnectionError):
        return f"no connection ({error.__cause__ or error})"
    if isinstance(error, openai.APIStatusError):
        return f"status {error.status_code}, {error.message[:300]}"
    return error.message[:300]
