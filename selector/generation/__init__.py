"""Models that answer: the registry of engines. Each loads what it needs (torch, an HTTP client) only when opened."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import Any

from selector.errors import EngineUnavailable, InvalidConfig
from selector.generation.contract import (
    Completion,
    CompletionKind,
    Engine,
    Prompt,
    Request,
    SamplingSettings,
    SetAside,
)

__all__ = [
    "ENGINES",
    "Completion",
    "CompletionKind",
    "Engine",
    "Prompt",
    "Request",
    "SamplingSettings",
    "SetAside",
    "open_engine",
]


ENGINES: Mapping[str, tuple[str, str]] = {  # module and class; stored in the database by name, so names never change
    "transformers": ("selector.generation.transformers_local", "TransformersEngine"),
    "openai": ("selector.generation.openai_http", "OpenAIEngine"),
    "vllm": ("selector.generation.vllm_local", "VLLMEngine"),
    "ray": ("selector.generation.ray_data", "RayEngine"),
    "scripted": ("selector.generation.scripted", "ScriptedEngine"),
}

EXTRAS = {"ray": "ray,vllm"}  # of pip, for engines that not everybody installs


def open_engine(kind: str, *, model: str, **options: Any) -> Engine:
    """Load a model or connect to its server; options left out or None take their defaults.

    ``transformers``: revision, dtype, device, batch_size, instruction, probe_layout.
    ``openai``: base_url, api_key_env, tokenizer, revision, instruction, concurrency, max_retries, timeout_seconds,
    layout, probe_layout.
    ``vllm``: revision, dtype, instruction, probe_layout, max_model_len, tensor_parallel_size, data_parallel_size, seed,
    engine_args.
    ``ray``: address, replicas, cpus_per_replica, batch_size, batches, revision, dtype, instruction, probe_layout,
    max_model_len, tensor_parallel_size, engine_args.
    ``scripted``: the arguments of ScriptedEngine.
    Raises InvalidConfig, ModelNotFound or EngineUnavailable.
    """
    if kind not in ENGINES:
        raise InvalidConfig("engine", kind, f"one of {', '.join(ENGINES)}")
    module, class_name = ENGINES[kind]
    try:
        engine_class = getattr(import_module(module), class_name)
    except ImportError as missing:
        if kind not in EXTRAS:
            raise
        reason = f"it cannot be loaded ({missing}); pip install 'assay-rlvr[{EXTRAS[kind]}]'"
        raise EngineUnavailable(where=kind.capitalize(), reason=reason) from missing
    given = {name: value for name, value in options.items() if value is not None}
    known = list(signature(engine_class).parameters)
    if unknown := sorted(set(given) - set(known)):
        raise InvalidConfig("engine options", ", ".join(unknown), f"among those of {kind}: {', '.join(known)}")
    engine: Engine = engine_class(model, **given)
    return engine
