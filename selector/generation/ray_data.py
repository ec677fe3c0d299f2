"""A model on as many machines as a Ray cluster has: Ray Data carries the questions, vLLM answers them.

Every machine finds the model where this one does: by its hub name, or at a path that they share. Prompts and probes are
token ids; rows of one question lie side by side, for the prefix cache; answers come as batches finish, in any order.
A worker that dies is started again, and its batches are asked again. A row that fails sets its question aside.

Each call of ``complete`` starts the replicas and ends them, which takes minutes with a large model: ask for much at
once. No seed is set per request (vLLM on a CPU dies of it). Ray Data keeps one completion of each request, so that n
outcomes are n rows with one prompt.
"""

from __future__ import annotations

import copy
import os
import secrets
from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import ray
from ray.data.llm import Processor, build_processor, vLLMEngineProcessorConfig
from ray.exceptions import RayError
from transformers import AutoConfig, AutoTokenizer

from selector.errors import EngineUnavailable, InvalidConfig
from selector.generation.contract import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside
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

ORPHANS_END = "RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper"  # vLLM's engine outlives a killed worker
CPU_BLOCK_TOKENS = 32  # what the prefix cache keeps together; of vLLM's 128 on a CPU probes share less


class RayEngine:
    """Runs ``replicas`` copies of the model on a Ray cluster, each asked ``batches`` of ``batch_size`` rows at once.

    ``address``: of the cluster ("auto", "ray://head:10001"); by default RAY_ADDRESS, else a cluster on this machine.
    ``cpus_per_replica``: for vLLM's CPU build; by default a replica takes ``tensor_parallel_size`` GPUs.
    ``dtype``: a torch name (as the weights are; float32 on CPUs). ``max_model_len``: the longest context, in tokens.
    ``engine_args``: anything else that vLLM's AsyncEngineArgs takes. ``probe_layout`` as TokenLayout has it.

    Tried on CPUs of one machine only. Answers are the same evidence as those of vllm_local.
    Raises InvalidConfig, ModelNotFound, and EngineUnavailable where there is no cluster or too small a one.
    """

    def __init__(
        self,
        model: str,
        *,
        address: str | None = None,
        replicas: int = 1,
        cpus_per_replica: int | None = None,
        batch_size: int = 32,
        batches: int = 8,
        revision: str | None = None,
        dtype: str | None = None,
        instruction: str | None = None,
        probe_layout: str = "shared-prefix",
        max_model_len: int | None = None,
        tensor_parallel_size: int = 1,
        engine_args: Mapping[str, Any] | None = None,
    ) -> None:
        counts = {"replicas": replicas, "batch_size": batch_size, "batches": batches}
        for name, value in {**counts, "tensor_parallel_size": tensor_parallel_size}.items():
            if value < 1:
                raise InvalidConfig(name, value, "at least 1")
        path, instruction = resolve_model(model, instruction)
        with named_if_missing(model, path):
            tokenizer = AutoTokenizer.from_pretrained(path, revision=revision)
            self._config = AutoConfig.from_pretrained(path, revision=revision)
            self._generation_config = load_generation_config(path, revision)
        self._path, self._name, self._max_model_len = path, model_name(model), max_model_len
        weights_dtype = str(getattr(self._config, "dtype", None) or "auto").removeprefix("torch.")
        self._dtype = dtype or ("float32" if cpus_per_replica else weights_dtype)
        self._layout = TokenLayout(
            tokenizer, instruction, extra_eos_ids=end_ids(self._generation_config), probe_layout=probe_layout
        )
        engine_kwargs = {
            "dtype": self._dtype,
            "tensor_parallel_size": tensor_parallel_size,
            "enable_prefix_caching": True,
            **({"block_size": CPU_BLOCK_TOKENS, "enforce_eager": True} if cpus_per_replica else {}),
            **({"revision": revision} if revision else {}),
            **({"max_model_len": max_model_len} if max_model_len else {}),
            **(engine_args or {}),
        }
        self._batch_size, self._is_ours = batch_size, not ray.is_initialized()
        self._where = f"the Ray cluster at {address}" if address else "the Ray cluster"
        if self._is_ours:
            os.environ.setdefault(ORPHANS_END, "true")  # heard where Ray is started here
            try:
                ray.init(address=address, log_to_driver=False, logging_level="warning")
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise EngineUnavailable(where=self._where, reason=str(error)) from error
        try:
            self._check_size(replicas, "CPU" if cpus_per_replica else "GPU", cpus_per_replica or tensor_parallel_size)
        except BaseException:
            self.close()
            raise
        ray.data.DataContext.get_current().enable_progress_bars = False
        bundle = {"bundles": [{"CPU": cpus_per_replica}]} if cpus_per_replica else None
        self._processor_options: dict[str, Any] = {
            "model_source": path,
            "engine_kwargs": engine_kwargs,
            "concurrency": replicas,
            "batch_size": batch_size,
            "max_concurrent_batches": batches,
            "should_continue_on_error": True,
            "log_engine_metrics": False,
            "placement_group_config": bundle,
            "chat_template_stage": False,
            "tokenize_stage": False,
            "detokenize_stage": False,
        }

    def _processor(self) -> Processor:
        """Return what answers rows, with new randomness: with the same, a call would draw again what others drew."""
        options = copy.deepcopy(self._processor_options)
        options["engine_kwargs"].setdefault("seed", secrets.randbelow(2**31))
        nothing = {"num_cpus": 0, "concurrency": 1}  # what goes before and after must not wait for what replicas hold
        return build_processor(
            vLLMEngineProcessorConfig(**options),
            postprocess=_kept(),
            preprocess_map_kwargs=nothing,
            postprocess_map_kwargs=nothing,
        )

    def _check_size(self, replicas: int, kind: str, each: int) -> None:
        """Refuse at once what Ray would wait for without end."""
        there = int(ray.cluster_resources().get(kind, 0))
        if there < replicas * each:
            hint = " (with cpus_per_replica, vLLM's CPU build needs none)" if kind == "GPU" else ""
            raise EngineUnavailable(
                where=self._where, reason=f"it has {there} {kind}s, and {replicas} x {each} are wanted{hint}"
            )

    @cached_property
    def _weights(self) -> str:
        commit = getattr(self._config, "_commit_hash", None)
        return str(commit) if commit else hash_of_weights(Path(self._path))

    @cached_property
    def _described_layout(self) -> Mapping[str, object]:
        return self._layout.describe()

    def describe(self, settings: SamplingSettings) -> Mapping[str, object]:
        return {
            "engine": "vllm",
            "model": self._name,
            "weights": self._weights,
            "dtype": self._dtype,
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
        context = self._max_model_len or self._config.get_text_config().max_position_embeddings
        return self._layout.too_long(prompts, settings, context)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Generator[Completion | SetAside, None, None]:
        if not requests:
            return
        asked = sorted(requests, key=lambda request: (request.prompt.uid, request.kind, request.index))
        prompts = {request.prompt.uid: request.prompt for request in asked}
        prompt_ids = {uid: self._layout.prompt_ids(prompt) for uid, prompt in prompts.items()}
        rows = [
            {
                "number": number,
                "tokenized_prompt": self._layout.row(request, prompt_ids[request.prompt.uid]),
                "sampling_params": self._sampling(request, settings),
            }
            for number, request in enumerate(asked)
        ]
        questions = ray.data.from_items(rows, override_num_blocks=-(-len(rows) // self._batch_size))
        refused: dict[str, SetAside] = {}
        n_answered = 0
        try:
            for row in self._processor()(questions).iter_rows():
                request, error = asked[row["number"]], row["__inference_error__"]
                uid = request.prompt.uid
                if error:
                    refused.setdefault(uid, SetAside(uid, "refused", f"The model cannot be asked it: {error[:300]}"))
                elif uid not in refused:
                    n_answered += 1
                    yield self._completion(request, row, settings)
        except RayError as error:
            raise EngineUnavailable(where=self._where, reason=str(error).strip().splitlines()[-1]) from error
        if len(refused) > 1 and not n_answered:  # not the questions' fault
            raise EngineUnavailable(where=self._where, reason=next(iter(refused.values())).message)
        yield from refused.values()

    def _sampling(self, request: Request, settings: SamplingSettings) -> dict[str, Any]:
        is_outcome, is_probe = request.kind is CompletionKind.OUTCOME, request.kind is CompletionKind.PROBE
        return {
            "max_tokens": settings.probe_max_tokens if is_probe else settings.max_tokens,
            "temperature": settings.temperature if is_outcome else 0.0,
            "top_p": settings.top_p if is_outcome else 1.0,
            "stop": self._layout.probe_stop if is_probe else None,
        }

    def _completion(self, request: Request, row: Mapping[str, Any], settings: SamplingSettings) -> Completion:
        """Ray Data does not say why a completion ended: as long as allowed, it was cut, unless it ends itself."""
        ids = [int(i) for i in row["generated_tokens"]]  # one at least
        is_probe = request.kind is CompletionKind.PROBE
        longest = settings.probe_max_tokens if is_probe else settings.max_tokens
        stop = self._layout.probe_stop if is_probe else None
        ends = ids[-1] in self._layout.eos_ids or (stop is not None and stop in self._layout.text(ids))
        return Completion(
            uid=request.prompt.uid,
            kind=request.kind,
            index=request.index,
            text=row["generated_text"],
            n_tokens=len(ids),
            n_prompt_tokens=int(row["num_input_tokens"]),
            finish_reason="stop" if len(ids) < longest or ends else "length",
            token_ids=self._layout.without_end(ids) if request.kind is CompletionKind.TRAJECTORY else (),
        )

    def close(self) -> None:
        """End the cluster where it was started here, or leave it."""
        if self._is_ours:
            ray.shutdown()


def _kept() -> Any:
    """Return what keeps of an answered row its number and what was generated. It runs on machines without Assay."""
    names = ("number", "generated_tokens", "generated_text", "num_input_tokens")
    return lambda row: {name: row[name] for name in names}
