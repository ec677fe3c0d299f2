"""Attention that keeps no map: each block of rows is computed, used, reduced to two numbers a head, and dropped.

Registered with transformers as an attention implementation, it runs after rotary embeddings and norms of queries and
keys, so one function serves every architecture written against that interface.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from selector.errors import InternalsUnavailable

NAME = "assay_streamed"
BLOCK_ELEMENTS = 1 << 23  # attention probabilities in memory at once (32 MiB in float32)
CHANGES_THE_MAP = ("s_aux", "sinks", "position_bias", "head_mask")  # arguments of attention that are not computed here


class AttentionReading:
    """Backward span and far attention of every head, filled layer by layer.

    Counts the rows ``first`` to ``end`` of each map, and leaves out the first token of the prompt, where heads park
    attention they have no use for. ``window``: the distance in tokens beyond which attention is far.
    """

    def __init__(self, first: int, end: int, window: int) -> None:
        self._first, self._end, self._window = first, end, window
        self._spans: list[torch.Tensor] = []
        self._far: list[torch.Tensor] = []

    def begin_layer(self, n_heads: int, device: torch.device) -> None:
        """Make room for the heads of the next layer."""
        self._spans.append(torch.zeros(n_heads, device=device))
        self._far.append(torch.zeros(n_heads, self._end - self._first, device=device))

    def add(self, probabilities: torch.Tensor, row: int) -> None:
        """Count the rows from ``row`` on of the layer's map: probabilities [heads, rows, keys], float32."""
        begin, end = max(row, self._first), min(row + probabilities.shape[1], self._end)
        if begin >= end:
            return
        counted = probabilities[:, begin - row : end - row, 1:]
        keys = torch.arange(1, probabilities.shape[2], device=counted.device)
        distances = torch.arange(begin, end, device=counted.device)[:, None] - keys
        self._spans[-1] += torch.einsum("hrk,rk->h", counted, distances.to(counted.dtype))
        is_far = (distances > self._window).to(counted.dtype)
        self._far[-1][:, begin - self._first : end - self._first] = torch.einsum("hrk,rk->hr", counted, is_far)

    def result(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean backward span of each head [all heads] and its far attention by row [all heads, rows]."""
        n_rows = max(1, self._end - self._first)
        return torch.cat(self._spans).cpu() / n_rows, torch.cat(self._far).cpu()


_reading: ContextVar[AttentionReading | None] = ContextVar("attention_reading", default=None)


@contextmanager
def reading_attention(model: PreTrainedModel, reading: AttentionReading) -> Iterator[None]:
    """Let the model attend by blocks and note what is read, then put its own attention back."""
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    token = _reading.set(reading)
    try:
        yield
    finally:
        _reading.reset(token)
        model.set_attn_implementation(before)


def shows_attention(model: PreTrainedModel) -> bool:
    """Whether the architecture lets its attention be computed from outside."""
    return bool(model._supports_attention_backend) and model._can_set_attn_implementation()


def streamed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attend in blocks of rows: query [1, H, T, d], key and value [1, KV, T, d] -> [1, T, H, d].

    ``attention_mask`` is boolean, true where attention is allowed; None is plain causal attention.
    """
    if found := [name for name in CHANGES_THE_MAP if others.get(name) is not None]:
        raise InternalsUnavailable(
            what="attention maps",
            where=type(module).__name__,
            reason=f"it attends with {', '.join(found)}, which is not read here",
        )
    n_heads, n_rows, width = query.shape[1:]
    reading = _reading.get()
    if reading is not None:
        reading.begin_layer(n_heads, query.device)
    keys = key.repeat_interleave(n_heads // key.shape[1], dim=1).transpose(2, 3)
    values = value.repeat_interleave(n_heads // value.shape[1], dim=1)
    scaling = width**-0.5 if scaling is None else scaling
    n_past = keys.shape[3] - n_rows
    size = max(1, BLOCK_ELEMENTS // (n_heads * keys.shape[3]))
    attended = torch.empty((1, n_rows, n_heads, values.shape[3]), dtype=query.dtype, device=query.device)
    for start in range(0, n_rows, size):
        end = min(start + size, n_rows)
        n_keys = keys.shape[3] if attention_mask is not None else n_past + end
        scores = torch.matmul(query[:, :, start:end], keys[..., :n_keys]) * scaling
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        if attention_mask is not None:
            allowed = attention_mask[:, :, start:end, :n_keys]
        else:
            allowed = torch.ones(end - start, n_keys, dtype=torch.bool, device=query.device).tril(n_past + start)
        scores.masked_fill_(~allowed, torch.finfo(scores.dtype).min)
        probabilities = torch.softmax(scores, dim=-1, dtype=torch.float32)
        attended[:, start:end] = torch.matmul(probabilities.to(query.dtype), values[:, :, :n_keys]).transpose(1, 2)
        if reading is not None:
            reading.add(probabilities[0], start)
    return attended, None


AttentionInterface.register(NAME, streamed_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
