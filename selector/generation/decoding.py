"""Writing many completions at once with a causal language model from transformers.

Beyond `generate`: every row draws from its own seed, so that a completion does not depend on the batch it was made in
(up to float ties); what the prompts of one question share is read once; rows that are finished leave the batch; and
appending a token does not copy the cache.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

SHARE_FINISHED_TO_COMPACT = 0.2


@dataclass(frozen=True)
class Sampler:
    """How the next token is chosen: the likeliest at temperature 0, else drawn from the top_p nucleus."""

    temperature: float
    top_p: float

    def choose(self, logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
        """Return [n] token ids from logits [n, V], by inverting each row's distribution at uniforms [n]."""
        if self.temperature == 0:
            return logits.argmax(-1)
        probabilities = torch.softmax(logits.float() / self.temperature, dim=-1)
        if self.top_p >= 1:
            return _invert(probabilities, uniforms)
        probabilities, ids = probabilities.sort(dim=-1, descending=True)
        before = probabilities.cumsum(-1) - probabilities
        chosen = _invert(probabilities.masked_fill(before >= self.top_p, 0), uniforms)
        return ids.gather(-1, chosen[:, None])[:, 0]


def _invert(probabilities: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    cumulative = probabilities.cumsum(-1)
    targets = uniforms[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, targets, right=True)[:, 0].clamp(max=probabilities.shape[-1] - 1)


@torch.inference_mode()
def decode(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    *,
    groups: Sequence[str],
    seeds: Sequence[int],
    max_new_tokens: int,
    sampler: Sampler,
    ends: torch.Tensor,
) -> Generator[tuple[int, list[int]], None, None]:
    """Continue each prompt until a token for which ``ends`` [V] is true (kept), or for ``max_new_tokens``.

    Yields the number of a prompt and the ids written, as each is finished. Prompts of one group (a question) begin
    alike; what they share is read once. ``seeds`` are not used at temperature 0.
    """
    device = model.device
    ends = ends.to(device)
    cache, ids, mask = _read_shared(model, prompts, groups)
    mask = torch.cat([mask, mask.new_ones(len(prompts), max_new_tokens)], dim=1)
    width = mask.shape[1] - max_new_tokens
    positions = (mask[:, :width].cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    uniforms = torch.tensor(
        np.stack([np.random.default_rng(seed).random(max_new_tokens, dtype=np.float32) for seed in seeds]),
        device=device,
    )
    written: list[list[int]] = [[] for _ in prompts]
    rows = list(range(len(prompts)))  # the prompts still in the batch, in its order
    is_finished = torch.zeros(len(prompts), dtype=torch.bool, device=device)

    for step in range(max_new_tokens):
        logits = _forward(model, ids, mask[:, : width + step], positions, cache)
        tokens = sampler.choose(logits, uniforms[:, step])
        was_finished, is_finished = is_finished, is_finished | ends[tokens]
        is_last = step == max_new_tokens - 1
        for row, token, was, now in zip(
            rows, tokens.tolist(), was_finished.tolist(), is_finished.tolist(), strict=True
        ):
            if not was:
                written[row].append(token)
                if now or is_last:
                    yield row, written[row]
        n_finished = int(is_finished.sum())
        if n_finished == len(rows):
            break
        ids, positions = tokens[:, None], positions[:, -1:] + 1
        if n_finished > SHARE_FINISHED_TO_COMPACT * len(rows):
            kept = (~is_finished).nonzero()[:, 0]
            cache.batch_select_indices(kept)
            ids, positions, mask, uniforms = ids[kept], positions[kept], mask[kept], uniforms[kept]
            rows = [rows[i] for i in kept.tolist()]
            is_finished = is_finished[kept]


def _forward(
    model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, cache: DynamicCache
) -> torch.Tensor:
    """Read ids [n, W] behind the cache; return the logits [n, V] after the last one."""
    cache_name = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"  # renamed in 5.x
    output = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        use_cache=True,
        logits_to_keep=1,
        **{cache_name: cache},
    )
    logits: torch.Tensor = output.logits[:, -1]
    return logits


def _read_shared(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], groups: Sequence[str]
) -> tuple[DynamicCache, torch.Tensor, torch.Tensor]:
    """Read once what prompts of one group share with their longest, and hand each prompt its part of the cache.

    Return the cache [n, P], the ids still to be read [n, S], and the mask [n, P + S]; both parts padded on the left.
    """
    cache = _roomy_cache(model.config)
    longest: dict[str, Sequence[int]] = {}
    for group, prompt in zip(groups, prompts, strict=True):
        longest[group] = max(longest.get(group, ()), prompt, key=len)
    layers = [layer for layer in cache.layers if isinstance(layer, _RoomyLayer)]
    if len(layers) < len(cache.layers) or len(longest) == len(prompts):
        ids, mask = _left_padded(prompts)
        return cache, ids.to(model.device), mask.to(model.device)

    base_ids, base_mask = (tensor.to(model.device) for tensor in _left_padded(list(longest.values())))
    positions = (base_mask.cumsum(-1) - 1).clamp(min=0)
    _forward(model, base_ids, base_mask, positions, cache)
    shared = [_n_shared(prompt, longest[group]) for group, prompt in zip(groups, prompts, strict=True)]
    ids, ids_mask = _left_padded([prompt[n:] for prompt, n in zip(prompts, shared, strict=True)])

    number = {group: i for i, group in enumerate(longest)}
    bases = torch.tensor([number[group] for group in groups], device=model.device)
    starts = torch.tensor([base_ids.shape[1] - len(longest[group]) for group in groups], device=model.device)
    n_shared = torch.tensor(shared, device=model.device)
    columns = torch.arange(max(shared), device=model.device) - (max(shared) - n_shared)[:, None]  # < 0: padding
    shared_mask = (columns >= 0).long()
    sources = columns.clamp(min=0) + starts[:, None]
    for layer in layers:
        layer.rearrange(bases, sources)
    return cache, ids.to(model.device), torch.cat([shared_mask, ids_mask.to(model.device)], dim=1)


def _n_shared(prompt: Sequence[int], base: Sequence[int]) -> int:
    """Return how many ids both begin with, leaving at least one of the prompt to be read."""
    n = 0
    while n < len(prompt) - 1 and n < len(base) and prompt[n] == base[n]:
        n += 1
    return n


def _left_padded(prompts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids [n, W] padded on the left with 0, and their mask, 0 on the padding."""
    width = max(map(len, prompts))
    ids = torch.zeros(len(prompts), width, dtype=torch.long)
    mask = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt, dtype=torch.long)
        mask[row, width - len(prompt) :] = 1
    return ids, mask


def _roomy_cache(config: Any) -> DynamicCache:
    """Return the cache that the model wants, its plain layers replaced by ones that grow in place."""
    cache = DynamicCache(config=config)
    cache.layers = [_RoomyLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


class _RoomyLayer(DynamicLayer):
    """Keys and values at the front of a larger buffer: a new token is written behind them, and nothing is copied."""

    ROOM = 64
    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        length = self.get_seq_length()
        end = length + key_states.shape[-2]
        if self._buffers is None or end > self._buffers[0].shape[-2]:
            self._buffers = (self._grown(self.keys, key_states, end), self._grown(self.values, value_states, end))
        keys, values = self._buffers
        keys[..., length:end, :] = key_states
        values[..., length:end, :] = value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        return self.keys, self.values

    def _grown(self, past: torch.Tensor, new: torch.Tensor, end: int) -> torch.Tensor:
        buffer = new.new_empty((*new.shape[:-2], end + max(self.ROOM, end // 4), new.shape[-1]))
        if past.numel():
            buffer[..., : past.shape[-2], :] = past
        return buffer

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        super().batch_select_indices(indices)
        self._buffers = None

    def rearrange(self, rows: torch.Tensor, columns: torch.Tensor) -> None:
        """Make row i the positions ``columns[i]`` of what was row ``rows[i]``; columns [n, P]."""
        n_heads, width, depth = self.keys.shape[1:]
        flat = (rows[:, None] * width + columns).flatten()

        def gathered(states: torch.Tensor) -> torch.Tensor:
            by_position = states.transpose(1, 2).reshape(-1, n_heads * depth)
            return by_position.index_select(0, flat).view(*columns.shape, n_heads, depth).transpose(1, 2)

        self.keys, self.values = gathered(self.keys), gathered(self.values)
        self._buffers = None


def cache_bytes_per_token(model: PreTrainedModel) -> int:
    """Return what one token of one row occupies in the cache: keys and values of every layer."""
    config = model.config.get_text_config()
    n_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    head_width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(2 * config.num_hidden_layers * n_heads * head_width * model.dtype.itemsize)
