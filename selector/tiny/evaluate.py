"""Measure `assay-tiny`: `python -m selector.tiny.evaluate [--model DIR]` prints held-out accuracy by family."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from selector.rewards import accuracy_reward
from selector.tiny import MODEL_DIR
from selector.tiny.questions import FAMILIES, TinyQuestion, demo_sets

N_ROLLOUTS = 8
MAX_NEW_TOKENS = 80
BATCH_SIZE = 300  # sequences generated together


def load_model(directory: Path = MODEL_DIR) -> tuple[Any, Any]:
    """Return model (float32, on the CPU) and tokenizer."""
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(directory)


@torch.inference_mode()
def answer_questions(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    n_rollouts: int,
    temperature: float = 1.0,
    on_progress: Callable[[int], None] = lambda n_done: None,
) -> list[list[str]]:
    """Return ``n_rollouts`` completions of each question; temperature 0 is greedy. Uses torch's global generator.

    ``on_progress`` hears how many questions are done after each batch.
    """
    completions: list[list[str]] = [[] for _ in texts]
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    n_together = max(1, BATCH_SIZE // n_rollouts)
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    for start in range(0, len(by_length), n_together):
        batch = by_length[start : start + n_together]
        inputs = tokenizer.apply_chat_template(
            [[{"role": "user", "content": texts[i]}] for i in batch],
            add_generation_prompt=True,
            padding=True,
            return_tensors="pt",
            return_dict=True,
        )
        made = model.generate(**inputs, **sampling, num_return_sequences=n_rollouts, max_new_tokens=MAX_NEW_TOKENS)
        decoded = tokenizer.batch_decode(made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        for row, i in enumerate(batch):
            completions[i] = decoded[row * n_rollouts : (row + 1) * n_rollouts]
        on_progress(start + len(batch))
    return completions


def accuracies(
    model: Any,
    tokenizer: Any,
    questions: Sequence[TinyQuestion],
    *,
    n_rollouts: int = N_ROLLOUTS,
    temperature: float = 1.0,
    seed: int = 0,
    on_progress: Callable[[int], None] = lambda n_done: None,
) -> list[float]:
    """Return the share of right rollouts of each question."""
    torch.manual_seed(seed)
    completions = answer_questions(
        model,
        tokenizer,
        [question.text for question in questions],
        n_rollouts=n_rollouts,
        temperature=temperature,
        on_progress=on_progress,
    )
    return [
        sum(accuracy_reward(texts, answer=[question.answer] * n_rollouts)) / n_rollouts
        for question, texts in zip(questions, completions, strict=True)
    ]


def _table(questions: Sequence[TinyQuestion], shares: Sequence[float]) -> str:
    by_family = [
        [share for question, share in zip(questions, shares, strict=True) if question.family == family]
        for family in FAMILIES
    ]
    return " | ".join(f"{sum(found) / len(found):.2f}" for found in by_family) + f" | {sum(shares) / len(shares):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure assay-tiny on its held-out questions.")
    parser.add_argument("--model", type=Path, default=MODEL_DIR)
    model, tokenizer = load_model(parser.parse_args().model)
    questions = demo_sets()["held_out"]
    print(" | ".join(["", *FAMILIES, "all"]))
    print("greedy | " + _table(questions, accuracies(model, tokenizer, questions, n_rollouts=1, temperature=0.0)))
    print("mean of 8 | " + _table(questions, accuracies(model, tokenizer, questions)))


if __name__ == "__main__":
    main()
