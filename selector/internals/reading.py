"""Reading a model's internals: one teacher-forced pass over the prompt and the greedy chain of each question.

Nothing is tokenised again: the ids are those of the completion store. One question at a time and layer by layer, so
that a long chain costs little more memory than the model: of each layer's hidden states two tokens are kept, of each
attention map two numbers a head and token, and the vocabulary's probabilities are read some tokens at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from selector.errors import InternalsUnavailable, MissingCompletions, Stopped
from selector.generation.contract import Completion, CompletionKind, Engine, Prompt
from selector.generation.prompts import TokenLayout
from selector.generation.transformers_local import TransformersEngine
from selector.internals.attention import AttentionReading, reading_attention, shows_attention
from selector.internals.contract import Internals, InternalsStore, concatenate
from selector.internals.pivots import find_pivots, long_range_signal, window_for

N_TOP_TOKENS = 256
PREFIX_SHARE = 0.25  # of the chain, whose token entropy stands for a partial rollout
LOGITS_AT_ONCE = 1 << 23  # 32 MiB in float32, and some copies of it
SECONDS_BETWEEN_SAVES = 2.0
QUESTIONS_BETWEEN_SAVES = 64


def read_internals(
    engine: Engine,
    prompts: Sequence[Prompt],
    trajectories: Mapping[str, Completion],
    *,
    fingerprint: str,
    store: InternalsStore,
    progress: Callable[[int, int], None] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Internals:
    """Return the internals of every prompt, in their order, reading what ``store`` lacks.

    ``trajectories`` are the greedy chains by uid, ``fingerprint`` the generation settings they were made with. What
    was read is saved every few seconds. Raises Stopped once ``should_stop`` says so, after saving;
    MissingCompletions for a prompt without a trajectory; InternalsUnavailable, also for an engine that does not run
    the model in this process.
    """
    if not isinstance(engine, TransformersEngine):
        reason = "only the transformers engine runs the model in this process"
        raise InternalsUnavailable(what="internals", where=type(engine).__name__, reason=reason)
    for prompt in prompts:
        if prompt.uid not in trajectories:
            raise MissingCompletions(uid=prompt.uid, kind=CompletionKind.TRAJECTORY, n_missing=1)
    found = store.load([prompt.uid for prompt in prompts])
    missing = {prompt.uid: prompt for prompt in prompts if prompt.uid not in found}
    n_stored = len(found)
    reader = ModelReader(engine.model, engine.layout)
    pending: list[Internals] = []
    saved_at = time.monotonic()

    def save() -> None:
        nonlocal saved_at
        rows = pending.copy()
        pending.clear()
        if rows:
            store.add(rows)
            found.update((row.uids[0], row) for row in rows)
        saved_at = time.monotonic()
        progress(len(found), n_stored + len(missing))

    save()
    for prompt in sorted(missing.values(), key=lambda prompt: prompt.uid):
        if should_stop():
            save()
            raise Stopped("Stopped as asked; what was finished is kept.")
        pending.append(reader.read(prompt, trajectories[prompt.uid], fingerprint))
        if len(pending) >= QUESTIONS_BETWEEN_SAVES or time.monotonic() - saved_at > SECONDS_BETWEEN_SAVES:
            save()
    save()
    return concatenate([found[prompt.uid] for prompt in prompts])


@dataclass(frozen=True)
class Reading:
    """What one pass shows of one question; tensors are float32 on the CPU. R tokens of chain, H heads of all layers.

    ``start``, ``end``, ``prompt_hidden`` [D]; ``first_probabilities`` [V] after the prompt; ``token_entropy`` and
    ``self_certainty`` [R]; ``spans`` [H] and ``far`` [H, R] as AttentionReading gives them, None without attention.
    """

    start: torch.Tensor
    end: torch.Tensor
    prompt_hidden: torch.Tensor
    first_probabilities: torch.Tensor
    token_entropy: torch.Tensor
    self_certainty: torch.Tensor
    spans: torch.Tensor | None
    far: torch.Tensor | None


class ModelReader:
    """Reads one loaded model. Raises InternalsUnavailable where its blocks cannot be found."""

    def __init__(self, model: PreTrainedModel, layout: TokenLayout) -> None:
        self._model, self._layout = model, layout
        self._name = type(model).__name__
        self._body = model.base_model
        self._blocks = _transformer_blocks(model)
        self._thinking = _thinking_ids(layout.tokenizer)
        self._shows_attention = shows_attention(model)

    def read(self, prompt: Prompt, trajectory: Completion, fingerprint: str) -> Internals:
        """Return one row. Raises InternalsUnavailable where the numbers are not finite, or a chain has no ids."""
        if trajectory.text and not trajectory.token_ids:
            reason = f"the chain of question {prompt.uid} was stored as text, without its token ids"
            raise InternalsUnavailable(what="hidden states", where=self._name, reason=reason)
        chain = list(trajectory.token_ids)
        found = self.pass_over(self._layout.prompt_ids(prompt), chain)
        for name, tensor in vars(found).items():
            if tensor is not None and not bool(torch.isfinite(tensor).all()):
                reason = f"{name} of question {prompt.uid} is not finite; load the model in float32"
                raise InternalsUnavailable(what="usable numbers", where=self._name, reason=reason)
        top = found.first_probabilities.topk(min(N_TOP_TOKENS, len(found.first_probabilities)))
        n_prefix = -(-len(chain) // round(1 / PREFIX_SHARE))
        return Internals(
            uids=(prompt.uid,),
            fingerprint=fingerprint,
            start=found.start.numpy()[None],
            end=found.end.numpy()[None],
            prompt_hidden=found.prompt_hidden.numpy()[None],
            top_tokens=top.indices.numpy().astype(np.int32)[None],
            top_probabilities=top.values.numpy()[None],
            n_response_tokens=np.array([len(chain)], np.int64),
            n_pivots=np.array([_n_pivots(found)], np.int64),
            mean_token_entropy=_mean(found.token_entropy),
            prefix_token_entropy=_mean(found.token_entropy[:n_prefix]),
            self_certainty=_mean(found.self_certainty),
            is_truncated=np.array([trajectory.finish_reason == "length"]),
        )

    @torch.inference_mode()
    def pass_over(self, prompt_ids: Sequence[int], chain: Sequence[int]) -> Reading:
        """Read prompt and chain once, as they stand."""
        ids = torch.tensor([[*prompt_ids, *chain]], device=self._model.device)
        n_prompt, n_all = len(prompt_ids), ids.shape[1]
        anchors = [n_prompt + place for place in self._anchors(chain)] if chain else []
        attention = AttentionReading(n_prompt, n_all, window_for(n_all)) if self._shows_attention else None
        sums: list[torch.Tensor] = []

        def keep_anchors(_module: torch.nn.Module, _args: Any, output: Any) -> None:
            hidden = output[0] if isinstance(output, tuple) else output
            sums.append(hidden[0, anchors].float())

        with ExitStack() as stack:
            for block in self._blocks[:-1]:  # the last one's state is read after the final norm, as transformers does
                stack.callback(block.register_forward_hook(keep_anchors).remove)
            if attention:
                stack.enter_context(reading_attention(self._model, attention))
            last = self._body(input_ids=ids, use_cache=False).last_hidden_state[0]
        means = torch.stack([*sums, last[anchors].float()]).mean(0).cpu()
        entropy, certainty, first = self._probabilities(last[n_prompt - 1 : max(n_all - 1, n_prompt)], len(chain))
        zeros = torch.zeros(last.shape[1])
        spans, far = attention.result() if attention else (None, None)
        return Reading(
            start=means[0] if chain else zeros,
            end=means[1] if chain else zeros,
            prompt_hidden=last[n_prompt - 1].float().cpu(),
            first_probabilities=first,
            token_entropy=entropy,
            self_certainty=certainty,
            spans=spans,
            far=far,
        )

    def _anchors(self, chain: Sequence[int]) -> tuple[int, int]:
        """Return where the chain of thought begins and ends: at the think delimiters if it has them."""
        opening, closing = self._thinking
        start = chain.index(opening) if opening in chain else 0
        end = len(chain) - 1 - chain[::-1].index(closing) if closing in chain else len(chain) - 1
        return (start, end) if start <= end else (0, len(chain) - 1)

    def _probabilities(self, hidden: torch.Tensor, n_chain: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return entropy and self-certainty of the distributions after ``hidden`` [n, D], and the first one [V]."""
        size = max(1, LOGITS_AT_ONCE // self._model.config.get_text_config().vocab_size)
        entropies, certainties, first = [], [], torch.empty(0)
        for start in range(0, len(hidden), size):
            logs = torch.log_softmax(self._logits(hidden[start : start + size]).float(), dim=-1)
            probabilities = logs.exp()
            first = first if start else probabilities[0].cpu()
            entropies.append(-(probabilities * logs).sum(-1))
            certainties.append(-logs.mean(-1) - np.log(logs.shape[-1]))
        return torch.cat(entropies)[:n_chain].cpu(), torch.cat(certainties)[:n_chain].cpu(), first

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits [n, V] after ``hidden`` [n, D], with all that the architecture does to them.

        The model is run on one token and its body's output exchanged for the states in question.
        """

        def exchange(_module: torch.nn.Module, _args: Any, output: Any) -> Any:
            output["last_hidden_state"] = hidden[None]
            return output

        any_token = torch.zeros((1, 1), dtype=torch.long, device=self._model.device)
        with ExitStack() as stack:
            stack.callback(self._body.register_forward_hook(exchange).remove)
            logits: torch.Tensor = self._model(input_ids=any_token, use_cache=False).logits[0]
        return logits


def _transformer_blocks(model: PreTrainedModel) -> torch.nn.ModuleList:
    n_layers = model.config.get_text_config().num_hidden_layers
    for module in model.base_model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == n_layers:
            return module
    reason = f"it has no list of its {n_layers} transformer blocks"
    raise InternalsUnavailable(what="hidden states", where=type(model).__name__, reason=reason)


def _thinking_ids(tokenizer: Any) -> tuple[int | None, int | None]:
    vocabulary = tokenizer.get_vocab()
    return vocabulary.get("<think>"), vocabulary.get("</think>")


def _n_pivots(found: Reading) -> int:
    if found.spans is None or found.far is None:
        return -1
    if not found.far.shape[1]:
        return 0
    return len(find_pivots(long_range_signal(found.far.numpy(), found.spans.numpy())))


def _mean(values: torch.Tensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array([values.double().mean().item() if len(values) else 0.0], np.float32)
