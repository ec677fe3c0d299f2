"""A model behind servers with OpenAI's API, one or many: vLLM by token ids, others by chat.

A server that takes token ids at /v1/completions and gives them back (vLLM does) is asked exactly as a model in this
process: prompts and probes are token ids. Any other server is asked by chat, with probes laid out as text; that is
another layout and another fingerprint. No seed is ever sent: vLLM on a CPU dies of it, elsewhere it promises little.
Which of several servers is asked what, and when again: selector.generation.fleet.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import threading
from collections.abc import Coroutine, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import openai
from transformers import AutoTokenizer

from selector.errors import EngineUnavailable, InvalidConfig, ModelNotFound, TokenizerNotFound
from selector.generation.addresses import server_urls
from selector.generation.contract import Completion, Feed, Prompt, Request, SamplingSettings, SetAside, fed_once
from selector.generation.fleet import Fleet, Group, RefusedError, Replica, TryError
from selector.generation.models import TINY_NAME, end_ids, load_generation_config, model_name, resolve_model
from selector.generation.openai_layouts import ByChat, ByTokenIds, ServerLayout, token_ids
from selector.generation.prompts import PROBE_LAYOUTS, TokenLayout, fingerprint_of
from selector.generation.queued_feed import QueuedFeed

T = TypeVar("T")
NO_KNOWN_LIMIT = 2**31
CHECK_SECONDS = 60.0  # for one token, of a server that may be at work for others

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Served:
    """What a server says of the model."""

    root: str  # where its files are, as the server sees it
    context: int
    takes_ids: bool

    def __str__(self) -> str:
        return f"{self.root} of {self.context} tokens, asked by {'token ids' if self.takes_ids else 'chat'}"


class OpenAIEngine:
    """Keeps ``concurrency`` completions in flight at each server over kept-alive connections.

    ``base_url``: one address or several (a sequence, or with commas or spaces), of servers of the same model. One that
    does not answer at first, or later, is named in a log and tried again while the others work.
    ``tokenizer``: directory or hub name, where the server's own name for the model leads to none.
    ``layout``: "token-ids" or "chat"; found out by asking unless given. ``probe_layout``: as TokenLayout has it, for
    a server asked by token ids; by chat there is only the authors'.
    ``max_retries``: with growing, random pauses; of a request, and of checks of a server that does not answer.
    Raises InvalidConfig, ModelNotFound, TokenizerNotFound and EngineUnavailable.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | Sequence[str] | None = None,
        api_key_env: str | None = None,
        tokenizer: str | None = None,
        revision: str | None = None,
        instruction: str | None = None,
        layout: str | None = None,
        probe_layout: str | None = None,
        concurrency: int = 256,
        max_retries: int = 8,
        timeout_seconds: float = 1800.0,
    ) -> None:
        urls = server_urls(base_url or "")
        if layout not in (None, "token-ids", "chat"):
            raise InvalidConfig("layout", layout, "token-ids or chat")
        if concurrency < 1:
            raise InvalidConfig("concurrency", concurrency, "at least 1")
        if probe_layout not in (None, *PROBE_LAYOUTS):
            raise InvalidConfig("probe_layout", probe_layout, f"one of {', '.join(PROBE_LAYOUTS)}")
        self._model, self._revision, self._max_retries = model, revision, max_retries
        self._probe_layout = probe_layout or "shared-prefix"
        self._api_key = _api_key(api_key_env)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai-http", daemon=True)
        self._thread.start()
        timeout = openai.Timeout(timeout_seconds, connect=10)
        key = self._api_key or "none"  # a server of one's own wants none, the client insists on one
        self._replicas = [
            Replica(url, openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=timeout)) for url in urls
        ]
        self._fleet = Fleet(
            self._replicas,
            ask=self._ask,
            check=self._check,
            concurrency=concurrency,
            max_retries=max_retries,
            rng=random.Random(),  # noqa: S311 - pauses
        )
        try:
            self._served = self._run(self._connect(layout))
            _, instruction = resolve_model(TINY_NAME if model == TINY_NAME else self._served.root, instruction)
            if probe_layout == "shared-prefix" and not self._served.takes_ids:
                raise InvalidConfig("probe_layout", probe_layout, "authors, for a server that is asked by chat")
            self._layout: ServerLayout = (
                self._by_token_ids(tokenizer, self._served, instruction)
                if self._served.takes_ids
                else ByChat(model, instruction=instruction)
            )
            self._loop.call_soon_threadsafe(self._fleet.start)
        except BaseException:
            self.close()
            raise

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _connect(self, layout: str | None) -> _Served:
        """Look at all servers at once; one that answers is enough, and those that answer must serve the same."""
        looks = await asyncio.gather(*(self._first_look(replica, layout, 1, 10.0) for replica in self._replicas))
        if not any(looks):  # a server that loads its model says so with a status: wait for that
            looks = await asyncio.gather(
                *(self._first_look(replica, layout, self._max_retries, CHECK_SECONDS) for replica in self._replicas)
            )
        found = [(replica, served) for replica, served in zip(self._replicas, looks, strict=True) if served]
        if not found:
            raise self._fleet.error()
        for replica in self._replicas:
            if not replica.is_up:
                _log.warning("%s does not answer (%s). It is tried again.", replica.url, replica.failure)
        (first, served), *others = found
        for replica, other in others:
            if error := self._mismatch(replica.url, other, first.url, served):
                raise error
        return served

    async def _first_look(
        self, replica: Replica, layout: str | None, max_retries: int, seconds: float
    ) -> _Served | None:
        if replica.failure and replica.failure.is_lost:
            return None
        client = replica.client.with_options(max_retries=max_retries, timeout=seconds)
        try:
            served = await self._model_at(replica, client)
            takes_ids = await self._takes_ids(replica, client) if layout is None else layout == "token-ids"
        except TryError as failure:
            if failure.is_final:
                raise failure.error from failure
            replica.is_up, replica.failure = False, failure
            return None
        replica.is_up, replica.failure = True, None
        return replace(served, takes_ids=takes_ids)

    def _mismatch(self, url: str, served: _Served, first_url: str, first: _Served) -> InvalidConfig | None:
        if replace(served, root=model_name(served.root)) == replace(first, root=model_name(first.root)):
            return None
        return InvalidConfig("base_url", f"{url} with {served}", f"servers of one model; {first_url} has {first}")

    async def _model_at(self, replica: Replica, client: openai.AsyncOpenAI) -> _Served:
        try:
            page = await client.models.list()
        except openai.NotFoundError as error:
            reason = "it knows no /models below this address (it usually ends in /v1)"
            raise TryError(EngineUnavailable(where=replica.url, reason=reason), reason, is_final=True) from error
        except openai.APIError as error:
            raise self._failure(replica, error) from error
        entries = {entry.id: entry for entry in page.data}
        if self._model not in entries:
            missing = ModelNotFound(model=self._model, where=replica.url, available=", ".join(sorted(entries)))
            raise TryError(missing, f"it has no model {self._model}", is_final=True)
        extra = entries[self._model].model_extra or {}
        return _Served(extra.get("root") or self._model, extra.get("max_model_len") or NO_KNOWN_LIMIT, takes_ids=False)

    async def _takes_ids(self, replica: Replica, client: openai.AsyncOpenAI) -> bool:
        """Ask for one token after two token ids, and see whether ids are understood and given back."""
        try:
            answer = await client.completions.create(
                model=self._model, prompt=[1, 1], max_tokens=1, temperature=0, extra_body={"return_token_ids": True}
            )
        except (openai.BadRequestError, openai.NotFoundError, openai.UnprocessableEntityError):
            return False
        except openai.APIError as error:
            if isinstance(error, openai.APIStatusError) and error.status_code in (405, 501):
                return False
            raise self._failure(replica, error) from error
        if not token_ids(answer.choices[0]):
            reason = (
                "it takes token ids but gives none back, so that trajectories cannot be cut exactly (vLLM does, by "
                "return_token_ids); use the layout 'chat' with this server"
            )
            raise TryError(EngineUnavailable(where=replica.url, reason=reason), reason, is_final=True)
        return True

    async def _check(self, replica: Replica) -> None:
        """See whether a server that failed answers again, with the same model as the others."""
        client = replica.client.with_options(timeout=CHECK_SECONDS)
        served = await self._model_at(replica, client)
        if self._served.takes_ids:
            served = replace(served, takes_ids=await self._takes_ids(replica, client))
        else:
            try:
                await client.chat.completions.create(
                    model=self._model, messages=[{"role": "user", "content": "1"}], max_tokens=1
                )
            except openai.APIError as error:
                raise self._failure(replica, error) from error
        if mismatch := self._mismatch(replica.url, served, "the fleet", self._served):
            raise TryError(mismatch, f"it has {served} now", is_final=True)

    async def _ask(self, replica: Replica, requests: Sequence[Request], settings: SamplingSettings) -> list[Completion]:
        try:
            return await self._layout.ask(replica.client, requests, settings)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            raise RefusedError(self._reason(error)) from error
        except openai.APIError as error:
            raise self._failure(replica, error) from error
        except EngineUnavailable as error:
            raise TryError(error, error.reason) from error

    def _failure(self, replica: Replica, error: openai.APIError) -> TryError:
        if isinstance(error, openai.NotFoundError):
            missing = ModelNotFound(model=self._model, where=replica.url)
            return TryError(missing, f"it has no model {self._model}", is_final=True)
        is_denied = isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError)
        reason = "it refuses the API key (give api_key_env)" if is_denied else self._reason(error)
        return TryError(
            EngineUnavailable(where=replica.url, reason=reason),
            reason,
            is_lost=isinstance(error, openai.APIConnectionError),
            is_busy=isinstance(error, openai.RateLimitError),
            is_final=is_denied,
            retry_after=_retry_after(error),
        )

    def _reason(self, error: openai.APIError) -> str:
        """Say what went wrong, without the key, which a server might repeat."""
        if isinstance(error, openai.APITimeoutError):
            return "it took too long"
        if isinstance(error, openai.APIConnectionError):
            return f"no connection ({error.__cause__ or error})"
        status = f"status {error.status_code}, " if isinstance(error, openai.APIStatusError) else ""
        message = error.message.replace(self._api_key, "***") if self._api_key else error.message
        return status + message[:300]

    def _by_token_ids(self, tokenizer: str | None, served: _Served, instruction: str) -> ByTokenIds:
        source = tokenizer or (resolve_model(TINY_NAME)[0] if self._model == TINY_NAME else served.root)
        revision = None if Path(source).is_dir() else self._revision
        try:
            loaded = AutoTokenizer.from_pretrained(source, revision=revision)
        except (OSError, ValueError) as error:
            raise TokenizerNotFound(tokenizer=source, model=self._model) from error
        config = load_generation_config(source, revision)
        layout = TokenLayout(loaded, instruction, extra_eos_ids=end_ids(config), probe_layout=self._probe_layout)
        return ByTokenIds(self._model, layout=layout, context=served.context, generation_config=config)

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

    def feed(self, settings: SamplingSettings, seed: int) -> Feed:
        def start(feed: QueuedFeed, requests: Sequence[Request]) -> None:
            groups = [Group(some, settings, feed) for some in self._groups(requests)]
            self._loop.call_soon_threadsafe(self._fleet.submit, groups)

        async def withdraw(feed: QueuedFeed) -> None:
            self._fleet.withdraw(feed)

        def stop(feed: QueuedFeed) -> None:
            if self._thread.is_alive():
                self._run(withdraw(feed))

        return QueuedFeed(start, stop)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Generator[Completion | SetAside, None, None]:
        yield from fed_once(self.feed(settings, seed), requests)

    def _groups(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """Put requests of one question and kind together, as many as the layout asks at once."""
        alike: dict[tuple[str, str], list[Request]] = {}
        for request in requests:
            alike.setdefault((request.prompt.uid, request.kind), []).append(request)
        for together in alike.values():
            size = self._layout.completions_per_request.get(together[0].kind, 1)
            yield from (together[start : start + size] for start in range(0, len(together), size))

    def close(self) -> None:
        """End what is in flight and the connections."""
        if self._thread.is_alive():
            self._run(self._shut_down())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _shut_down(self) -> None:
        await self._fleet.close()
        for replica in self._replicas:
            await replica.client.close()
        await asyncio.sleep(0)  # transports close one turn later


def _api_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise InvalidConfig("api_key_env", variable, "the name of an environment variable that holds the key")
    return os.environ[variable]


def _retry_after(error: openai.APIError) -> float | None:
    """Return the seconds a server asks to wait, where it names a number."""
    if not isinstance(error, openai.APIStatusError):
        return None
    headers = error.response.headers
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name])) * scale
        except (KeyError, ValueError):
            continue
    return None
