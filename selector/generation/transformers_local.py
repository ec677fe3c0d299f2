"""A causal language model in this process, by transformers and torch, on the CPU or one GPU."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging

from selector.errors import InvalidConfig
from selector.generation.contract import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside
from selector.generation.decoding import Sampler, cache_bytes_per_token, decode
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
from selector.seeds import question_seed

GREEDY = Sampler(temperature=0, top_p=1)
CPU_CACHE_BYTES = 2**30
MAX_ROWS = 512


class TransformersEngine:
    """Answers in batches of questions sorted by length, so that little of a batch is padding.

    ``batch_size`` rows at once (as many as a quarter of the GPU or 1 GiB holds, at most 512); ``dtype`` a torch name
    such as "bfloat16" (float32 on a CPU, else as the weights are); ``device`` a torch name (a GPU where there is one);
    ``probe_layout`` as TokenLayout has it.
    Raises ModelNotFound and InvalidConfig.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        dtype: str | None = None,
        device: str | None = None,
        batch_size: int | None = None,
        instruction: str | None = None,
        probe_layout: str = "shared-prefix",
    ) -> None:
        path, instruction = resolve_model(model, instruction)
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = dtype or ("float32" if device == "cpu" else "auto")
        if dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
            raise InvalidConfig("dtype", dtype, "the name of a torch dtype, such as float32 or bfloat16")
        if batch_size is not None and batch_size < 1:
            raise InvalidConfig("batch_size", batch_size, "at least 1")
        logging.disable_progress_bar()
        with named_if_missing(model, path):
            tokenizer = AutoTokenizer.from_pretrained(path, revision=revision)
            self._generation_config = load_generation_config(path, revision)
            self._layout = TokenLayout(
                tokenizer, instruction, extra_eos_ids=end_ids(self._generation_config), probe_layout=probe_layout
            )
            loaded: torch.nn.Module = AutoModelForCausalLM.from_pretrained(path, revision=revision, dtype=dtype)
        self._model: PreTrainedModel = loaded.to(device).eval()  # type: ignore[assignment]
        self._path, self._name, self._batch_size = path, model_name(model), batch_size

    @property
    def model(self) -> PreTrainedModel:
        """The model itself, for reading what happens inside it."""
        return self._model

    @property
    def layout(self) -> TokenLayout:
        """How questions become token ids."""
        return self._layout

    @cached_property
    def _weights(self) -> str:
        """Name the weights: the hub's commit, or a hash of the files of a local directory."""
        commit = getattr(self._model.config, "_commit_hash", None)
        return str(commit) if commit else hash_of_weights(Path(self._path))

    @cached_property
    def _described_layout(self) -> Mapping[str, object]:
        return self._layout.describe()

    def describe(self, settings: SamplingSettings) -> Mapping[str, object]:
        return {
            "engine": "transformers",
            "model": self._name,
            "weights": self._weights,
            "dtype": str(self._model.dtype).removeprefix("torch."),
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
        return self._layout.too_long(prompts, settings, self._model.config.get_text_config().max_position_embeddings)

    def complete(
        self, requests: Sequence[Request], settings: SamplingSettings, seed: int
    ) -> Generator[Completion | SetAside, None, None]:
        for kind in CompletionKind:
            of_kind = [request for request in requests if request.kind is kind]
            prompts = {request.prompt.uid: self._layout.prompt_ids(request.prompt) for request in of_kind}
            rendered = [(request, self._layout.row(request, prompts[request.prompt.uid])) for request in of_kind]
            longest = {request.prompt.uid: 0 for request in of_kind}
            for request, row in rendered:
                longest[request.prompt.uid] = max(longest[request.prompt.uid], len(row))
            rendered.sort(key=lambda pair: (-longest[pair[0].prompt.uid], pair[0].prompt.uid))
            while rendered:
                size = self._batch_size or self._rows_that_fit(len(rendered[0][1]) + settings.max_tokens)
                batch, rendered = rendered[:size], rendered[size:]
                yield from self._complete_batch(kind, batch, settings, seed)

    def _rows_that_fit(self, n_tokens: int) -> int:
        """Return how many rows of so many tokens may be in the cache at once."""
        is_gpu = self._model.device.type == "cuda"
        room = torch.cuda.get_device_properties(self._model.device).total_memory // 4 if is_gpu else CPU_CACHE_BYTES
        return int(min(max(1, room // (n_tokens * cache_bytes_per_token(self._model))), MAX_ROWS))

    def _complete_batch(
        self, kind: CompletionKind, batch: Sequence[tuple[Request, list[int]]], settings: SamplingSettings, seed: int
    ) -> Iterator[Completion]:
        is_probe = kind is CompletionKind.PROBE
        max_tokens = settings.probe_max_tokens if is_probe else settings.max_tokens
        is_outcome = kind is CompletionKind.OUTCOME
        for number, ids in decode(
            self._model,
            [row for _, row in batch],
            groups=[request.prompt.uid for request, _ in batch],
            seeds=[question_seed(seed, f"outcome {request.index}", request.prompt.uid) for request, _ in batch],
            max_new_tokens=max_tokens,
            sampler=Sampler(settings.temperature, settings.top_p) if is_outcome else GREEDY,
            ends=self._probe_ends if is_probe else self._ends,
        ):
            yield self._completion(*batch[number], ids)

    def _completion(self, request: Request, row: Sequence[int], ids: list[int]) -> Completion:
        is_probe = request.kind is CompletionKind.PROBE
        ends = self._probe_ends if is_probe else self._ends
        kept = self._layout.without_end(ids)
        text = self._layout.text(kept)
        return Completion(
            uid=request.prompt.uid,
            kind=request.kind,
            index=request.index,
            text=text.split(self._layout.probe_stop, 1)[0] if is_probe and self._layout.probe_stop else text,
            n_tokens=len(ids),
            n_prompt_tokens=len(row),
            finish_reason="stop" if ends[ids[-1]] else "length",
            token_ids=kept if request.kind is CompletionKind.TRAJECTORY else (),
        )

    @cached_property
    def _ends(self) -> torch.Tensor:
        """Say for each token whether it ends a completion."""
        ends = torch.zeros(self._model.config.get_text_config().vocab_size, dtype=torch.bool)
        ends[list(self._layout.eos_ids)] = True
        return ends

    @cached_property
    def _probe_ends(self) -> torch.Tensor:
        """Say for each token whether it ends a probe: an end token, or one with a newline in it."""
        stop = self._layout.probe_stop
        if stop is None:
            return self._ends
        ends = self._ends.clone()
        tokenizer = self._layout.tokenizer
        texts = tokenizer.batch_decode([[i] for i in range(min(len(tokenizer), len(ends)))])
        ends[[i for i, text in enumerate(texts) if stop in text]] = True
        return ends

    def close(self) -> None:
        """Give the model's memory back."""
        del self._model
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
