"""vLLM in this process: its own engine, fed without pauses, so that nothing waits for the slowest of a batch.

The engine runs in processes of its own, which this one starts and ends. It takes new requests while others are in
flight, and keeps what it read: the probes of a question go on from the prompt and the chain in its prefix cache.

No request carries a seed: vLLM on a CPU dies of it, and elsewhere it promises little. The engine as a whole has one.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import itertools
import os
import secrets
import threading
from collections.abc import Generator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import AutoTokenizer

from selector.errors import EngineUnavailable, InvalidConfig
from selector.generation.contract import (
    Completion,
    CompletionKind,
    Feed,
    Prompt,
    Request,
    SamplingSettings,
    SetAside,
    fed_once,
)
from selector.generation.models import (
    end_ids,
    hash_of_weights,
    load_generation_config,
    model_name,
    named_if_missing,
    recommended_sampling,
    resolve_model,
)
from selector.generation.prompts import TokenLayout, fingerprint_of
from selector.generation.queued_feed import QueuedFeed

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

WHERE = "vLLM in this process"
CPU_DEFAULTS = {"dtype": "float32", "block_size": 32, "enforce_eager": True}  # 32: probes share more than by 128


class VLLMEngine:
    """Answers with vLLM's engine, which this process starts: the sampled outcomes of a question as one request of n.

    ``dtype``: a torch name (float32 on a CPU, else as the weights are). ``max_model_len``: the longest context, in
    tokens (the model's own). ``tensor_parallel_size``: GPUs for one copy of the model (1). ``data_parallel_size``:
    copies of the model (as many as there are GPUs for); a question keeps to one, for its prefix cache. ``seed``: of
    the engine (a new one each time: with the same seed a run that goes on would draw again what it drew before).
    ``engine_args``: anything else that vLLM's AsyncEngineArgs takes. ``probe_layout`` as TokenLayout has it.

    Tried on CPUs only; GPUs, and several of them, have not been tried.
    Raises ModelNotFound, InvalidConfig, and EngineUnavailable where vLLM is missing or does not start.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        dtype: str | None = None,
        instruction: str | None = None,
        probe_layout: str = "shared-prefix",
        max_model_len: int | None = None,
        tensor_parallel_size: int = 1,
        data_parallel_size: int | None = None,
        seed: int | None = None,
        engine_args: Mapping[str, Any] | None = None,
    ) -> None:
        self._path, instruction = resolve_model(model, instruction)
        self._name = model_name(model)
        for name, size in (("tensor_parallel_size", tensor_parallel_size), ("data_parallel_size", data_parallel_size)):
            if size is not None and size < 1:
                raise InvalidConfig(name, size, "at least 1")
        with named_if_missing(model, self._path):
            tokenizer = AutoTokenizer.from_pretrained(self._path, revision=revision)
            self._generation_config = load_generation_config(self._path, revision)
        self._layout = TokenLayout(
            tokenizer, instruction, extra_eos_ids=end_ids(self._generation_config), probe_layout=probe_layout
        )
        given = {
            "dtype": dtype,
            "revision": revision,
            "max_model_len": max_model_len,
            "data_parallel_size": data_parallel_size,
        }
        self._n_replicas = 1
        self._numbers = itertools.count()
        self._in_flight: dict[QueuedFeed, dict[str, dict[asyncio.Task[None], int]]] = {}  # by question; requests each
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vllm", daemon=True)
        self._thread.start()
        self._engine: AsyncLLM | None = None
        try:
            args = {
                "tensor_parallel_size": tensor_parallel_size,
                "seed": secrets.randbelow(2**31) if seed is None else seed,
                "disable_log_stats": True,
                **{name: value for name, value in given.items() if value is not None},
                **(engine_args or {}),
            }
            started = asyncio.run_coroutine_threadsafe(self._start_engine(args), self._loop)
            self._engine = started.result()
        except BaseException:
            self.close()
            raise

    async def _start_engine(self, given: Mapping[str, Any]) -> AsyncLLM:
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # it writes a lot
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        try:
            import torch
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.platforms import current_platform
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            reason = f"it cannot be loaded ({error}); pip install 'assay-rlvr[vllm]'"
            raise EngineUnavailable(where=WHERE, reason=reason) from error
        known = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
        if unknown := sorted(set(given) - known):
            raise InvalidConfig("engine_args", ", ".join(unknown), "among those of vLLM's AsyncEngineArgs")
        if current_platform.is_cpu():
            n_copies, defaults = 1, CPU_DEFAULTS
        else:
            n_copies, defaults = max(1, torch.cuda.device_count() // given["tensor_parallel_size"]), {}
        args = {"data_parallel_size": n_copies, **defaults, **given}
        try:
            config = AsyncEngineArgs(model=self._path, tokenizer=self._path, **args).create_engine_config()
        except (ValueError, TypeError) as error:
            raise InvalidConfig("the engine's options", given, f"what vLLM accepts ({_reason(error)})") from error
        self._n_replicas = args["data_parallel_size"]
        try:
            return AsyncLLM.from_vllm_config(config, disable_log_stats=True)
        except (RuntimeError, ValueError, OSError) as error:
            raise EngineUnavailable(where=WHERE, reason=f"it does not start ({_reason(error)})") from error

    @property
    def _running(self) -> AsyncLLM:
        if self._engine is None:
            raise EngineUnavailable(where=WHERE, reason="it was closed")
        return self._engine

    @cached_property
    def _weights(self) -> str:
        """Name the weights: the hub's commit, or a hash of the files of a local directory."""
        commit = getattr(self._running.model_config.hf_config, "_commit_hash", None)
        return str(commit) if commit else hash_of_weights(Path(self._path))

    @cached_property
    def _described_layout(self) -> Mapping[str, object]:
        return self._layout.describe()

    def describe(self, settings: SamplingSettings) -> Mapping[str, object]:
        return {
            "engine": "vllm",
            "model": self._name,
            "weights": self._weights,
            "dtype": str(self._running.model_config.dtype).removeprefix("torch."),
            **self._described_layout,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            "probe_max_tokens": settings.probe_max_tokens,
        }

    def fingerprint(self, settings: SamplingSettings) -> str:
        return fingerprint_of(self.describe(settings))

    def recommended_sampling(self) -> Mapping[str, float]:
        return recommended_sampling(self._generation_config)

    def set_aside(self, prompts: Sequence[Prompt], settings: SamplingSettings) -> list[SetAside]:
        return self._layout.too_long(prompts, settings, self._running.model_config.max_model_len)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Generator[Completion | SetAside, None, None]:
        yield from fed_once(self.feed(settings, seed), requests)

    def feed(self, settings: SamplingSettings, seed: int) -> Feed:
        """Open a feed. ``seed`` is not used: see above."""

        def start(feed: QueuedFeed, requests: Sequence[Request]) -> None:
            groups = list(self._groups(requests, settings))
            self._loop.call_soon_threadsafe(self._ask_all, feed, groups, settings)

        def stop(feed: QueuedFeed) -> None:
            if self._thread.is_alive():
                asyncio.run_coroutine_threadsafe(self._withdraw(feed), self._loop).result()

        return QueuedFeed(start, stop)

    def _groups(
        self, requests: Sequence[Request], settings: SamplingSettings
    ) -> Generator[tuple[list[Request], list[int]], None, None]:
        """Yield what is asked as one, with its token ids: the outcomes of a question, else each request by itself."""
        prompts: dict[str, list[int]] = {}
        outcomes: dict[str, list[Request]] = {}
        for request in requests:
            uid = request.prompt.uid
            if uid not in prompts:
                prompts[uid] = self._layout.prompt_ids(request.prompt)
            if request.kind is CompletionKind.OUTCOME and settings.temperature > 0:
                outcomes.setdefault(uid, []).append(request)
            else:
                yield [request], self._layout.row(request, prompts[uid])
        for uid, group in outcomes.items():
            yield group, prompts[uid]

    def _ask_all(
        self, feed: QueuedFeed, groups: Sequence[tuple[list[Request], list[int]]], settings: SamplingSettings
    ) -> None:
        tasks = self._in_flight.setdefault(feed, {})
        for group, row in groups:
            uid = group[0].prompt.uid
            task = self._loop.create_task(self._answer(feed, group, row, settings))
            tasks.setdefault(uid, {})[task] = len(group)
            task.add_done_callback(partial(self._forget, feed, uid))

    def _forget(self, feed: QueuedFeed, uid: str, task: asyncio.Task[None]) -> None:
        of_feed = self._in_flight.get(feed, {})
        of_feed.get(uid, {}).pop(task, None)
        if not of_feed.get(uid, True):
            del of_feed[uid]
        if not task.cancelled() and (error := task.exception()):
            feed.fail(error)

    async def _answer(
        self, feed: QueuedFeed, group: Sequence[Request], row: list[int], settings: SamplingSettings
    ) -> None:
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        try:
            completions = await self._ask(group, row, settings)
        except EngineDeadError as error:
            raise EngineUnavailable(where=WHERE, reason="its engine died") from error
        except (VLLMClientError, ValueError) as error:
            self._set_aside(feed, group[0].prompt.uid, "refused", f"vLLM refuses it: {_reason(error)}")
        except EngineGenerateError as error:
            message = f"vLLM failed on it: {_reason(error.__cause__ or error)}"
            self._set_aside(feed, group[0].prompt.uid, "server_error", message)
        else:
            for completion in completions:
                feed.put(completion, 1)

    def _set_aside(self, feed: QueuedFeed, uid: str, code: str, message: str) -> None:
        tasks = self._in_flight.get(feed, {}).pop(uid, {})
        for task in tasks:
            if task is not asyncio.current_task():
                task.cancel()
        if tasks:
            feed.put(SetAside(uid, code, message), sum(tasks.values()))

    async def _withdraw(self, feed: QueuedFeed) -> None:
        tasks = [task for of_question in self._in_flight.pop(feed, {}).values() for task in of_question]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, group: Sequence[Request], row: list[int], settings: SamplingSettings) -> list[Completion]:
        from vllm import SamplingParams, TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        first = group[0]
        is_probe, is_outcome = first.kind is CompletionKind.PROBE, first.kind is CompletionKind.OUTCOME
        params = SamplingParams(
            n=len(group),
            temperature=settings.temperature if is_outcome else 0.0,
            top_p=settings.top_p if is_outcome else 1.0,
            max_tokens=settings.probe_max_tokens if is_probe else settings.max_tokens,
            stop=self._layout.probe_stop if is_probe else None,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        home = None
        if self._n_replicas > 1:
            home = int.from_bytes(hashlib.sha256(first.prompt.uid.encode()).digest()[:8], "big") % self._n_replicas
        made: list[Any] = []
        async for answer in self._running.generate(
            TokensPrompt(prompt_token_ids=row), params, str(next(self._numbers)), data_parallel_rank=home
        ):
            made += answer.outputs
        made.sort(key=lambda output: output.index)
        return [self._completion(request, output, len(row)) for request, output in zip(group, made, strict=True)]

    def _completion(self, request: Request, output: Any, n_prompt_tokens: int) -> Completion:
        if output.finish_reason not in ("stop", "length"):
            raise EngineUnavailable(where=WHERE, reason=f"it broke an answer off ({output.finish_reason})")
        ids = list(output.token_ids)
        return Completion(
            uid=request.prompt.uid,
            kind=request.kind,
            index=request.index,
            text=output.text,
            n_tokens=len(ids),
            n_prompt_tokens=n_prompt_tokens,
            finish_reason=output.finish_reason,
            token_ids=self._layout.without_end(ids) if request.kind is CompletionKind.TRAJECTORY else (),
        )

    def close(self) -> None:
        """End the engine's processes and free what they hold."""
        if not self._thread.is_alive():
            return
        engine, self._engine = self._engine, None
        asyncio.run_coroutine_threadsafe(self._shut_down(engine), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _shut_down(self, engine: AsyncLLM | None) -> None:
        for feed in list(self._in_flight):
            await self._withdraw(feed)
        if engine is not None:
            engine.shutdown()
            await asyncio.sleep(0)  # its own tasks end


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
