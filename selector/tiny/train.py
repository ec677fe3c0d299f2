"""Train `assay-tiny` from nothing: `python -m selector.tiny.train --out DIR` (about 15 minutes on one core).

The number of steps and the seed are fixed, so that a run can be repeated; floating point may differ between machines.
Muon trains the matrices, AdamW the embedding and the norms.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.nn import functional
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from selector.tiny.muon import Muon
from selector.tiny.questions import FAMILIES, TinyQuestion, demo_sets, draw_question, question_key, write_solution
from selector.tiny.tokenizer import CONTEXT, PROBE_TEXT, REASONING_SUFFIX, train_tokenizer

SEED = 7
N_STEPS = 3400
BATCH_SIZE = 40
MUON_LR = 5e-3
ADAMW_LR = 4e-3
WARMUP_STEPS = 60
PROBE_SHARE = 0.15  # a chain cut anywhere and an answer forced
SUFFIX_SHARE = 0.10  # asked to reason step by step
BATCHES_PER_SORT = 16  # drawn together and sorted by length, so that little is spent on padding
IGNORED = -100

Example = tuple[list[int], int]  # token ids, and where the part to learn begins
DrawExamples = Callable[[random.Random, PreTrainedTokenizerFast], Iterator[Example]]


def draw_training_questions(rng: random.Random) -> Iterator[TinyQuestion]:
    """Yield questions without end, none of them in the demo's sets."""
    excluded = {question_key(question.text) for drawn in demo_sets().values() for question in drawn}
    while True:
        question = draw_question(rng)
        if question_key(question.text) not in excluded:
            yield question


def write_example(question: TinyQuestion, rng: random.Random, tokenizer: PreTrainedTokenizerFast) -> Example:
    """Turn a question into one training example: a solution, or an answer forced after a cut chain."""
    family = FAMILIES[question.family]
    is_terse = rng.random() < (family.bare_terse_share if question.is_bare else family.terse_share)
    asked = question.text + (REASONING_SUFFIX if rng.random() < SUFFIX_SHARE else "")
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": asked}], add_generation_prompt=True, return_dict=False
    )
    solution = tokenizer.encode(write_solution(question, terse=is_terse))
    if rng.random() < PROBE_SHARE:
        prompt = prompt + solution[: rng.randint(1, len(solution))] + tokenizer.encode(PROBE_TEXT)
        solution = tokenizer.encode(question.answer + "}")
    return prompt + solution + [tokenizer.eos_token_id], len(prompt)


def draw_examples(rng: random.Random, tokenizer: PreTrainedTokenizerFast) -> Iterator[Example]:
    """Yield training examples without end."""
    for question in draw_training_questions(rng):
        yield write_example(question, rng, tokenizer)


def draw_batches(
    seed: int, n_steps: int, tokenizer: PreTrainedTokenizerFast, draw: DrawExamples = draw_examples
) -> Iterator[list[Example]]:
    """Yield batches of examples of similar length."""
    rng = random.Random(seed)  # noqa: S311
    examples = draw(rng, tokenizer)
    for first in range(0, n_steps, BATCHES_PER_SORT):
        n_batches = min(BATCHES_PER_SORT, n_steps - first)
        drawn = [next(examples) for _ in range(n_batches * BATCH_SIZE)]
        drawn.sort(key=lambda example: len(example[0]))
        batches = [drawn[start : start + BATCH_SIZE] for start in range(0, len(drawn), BATCH_SIZE)]
        rng.shuffle(batches)
        yield from batches


def collate(batch: Sequence[Example], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and next-token targets [batch, length]; padding on the right, where causal attention ignores it."""
    length = max(len(ids) for ids, _ in batch)
    ids = torch.full((len(batch), length), pad_id)
    targets = torch.full((len(batch), length), IGNORED)
    for row, (example, learn_from) in enumerate(batch):
        ids[row, : len(example)] = torch.tensor(example)
        targets[row, learn_from - 1 : len(example) - 1] = torch.tensor(example[learn_from:])
    return ids, targets


def new_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return the untrained model: 0.84 million parameters."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=32,
        intermediate_size=320,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def train(
    *,
    seed: int = SEED,
    n_steps: int = N_STEPS,
    tokenizer: PreTrainedTokenizerFast | None = None,
    model: LlamaForCausalLM | None = None,
    draw: DrawExamples = draw_examples,
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Return the trained model (float32) and its tokenizer, showing progress on standard error.

    Another ``tokenizer``, a ``model`` to start from and other examples to ``draw`` raise another model the same way.
    """
    torch.manual_seed(seed)
    tokenizer = tokenizer or train_tokenizer(seed)
    model = (model or new_model(tokenizer)).train()
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    optimizers = [
        Muon(matrices, lr=MUON_LR),
        torch.optim.AdamW(others, lr=ADAMW_LR, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / WARMUP_STEPS, max(0.02, 1 - step / n_steps))
        )
        for optimizer in optimizers
    ]
    note_column = TextColumn("{task.fields[note]}")
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note_column)
    loss_mean, n_tokens, began = 0.0, 0, time.monotonic()
    with Progress(*columns, redirect_stdout=False, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("training", total=n_steps, note="")
        for step, batch in enumerate(draw_batches(seed, n_steps, tokenizer, draw), start=1):
            ids, targets = collate(batch, tokenizer.pad_token_id)
            hidden = model.model(input_ids=ids).last_hidden_state
            learned = targets != IGNORED
            loss = functional.cross_entropy(model.lm_head(hidden[learned]), targets[learned])
            loss.backward()
            for optimizer, schedule in zip(optimizers, schedules, strict=True):
                optimizer.step()
                schedule.step()
                optimizer.zero_grad(set_to_none=True)
            n_tokens += ids.numel()
            loss_mean = loss.item() if step == 1 else 0.98 * loss_mean + 0.02 * loss.item()
            note = f"loss {loss_mean:.3f}, {n_tokens / (time.monotonic() - began):.0f} tokens/s"
            progress.update(task, advance=1, note=note)
            if progress.disable and step % 100 == 0:
                print(f"step {step} of {n_steps}: {note}", file=sys.stderr, flush=True)
    return model.eval(), tokenizer


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, directory: Path) -> None:
    """Write weights (bfloat16 safetensors), configuration, tokenizer and chat template."""
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model.bfloat16().save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train assay-tiny from nothing.")
    parser.add_argument("--out", type=Path, required=True, help="directory for weights and tokenizer")
    parser.add_argument("--steps", type=int, default=N_STEPS, help=f"optimizer steps (default {N_STEPS})")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    save(*train(seed=arguments.seed, n_steps=arguments.steps), arguments.out)


if __name__ == "__main__":
    main()
