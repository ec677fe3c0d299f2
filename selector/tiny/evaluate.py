"""Measure `assay-tiny`: `python -m selector.tiny.evaluate [--model DIR]` prints held-out accuracy by family."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings, open_engine
from selector.progress import StageProgress
from selector.rewards import accuracy_reward
from selector.tiny import MODEL_DIR
from selector.tiny.questions import FAMILIES, TinyQuestion, demo_sets

N_ROLLOUTS = 8
MAX_NEW_TOKENS = 80
SETTINGS = SamplingSettings(temperature=1.0, max_tokens=MAX_NEW_TOKENS, probe_max_tokens=16)


def accuracies(
    directory: Path,
    questions: Sequence[TinyQuestion],
    *,
    greedy: bool = False,
    n_rollouts: int = N_ROLLOUTS,
    seed: int = 0,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> list[float]:
    """Return the share of each question's rollouts that are right: of so many sampled ones, or of the greedy one.

    ``show`` hears how many of how many completions are made.
    """
    kind, n_rollouts = (CompletionKind.TRAJECTORY, 1) if greedy else (CompletionKind.OUTCOME, n_rollouts)
    prompts = [Prompt(str(number), question.text) for number, question in enumerate(questions)]
    requests = [Request(prompt, kind, index) for prompt in prompts for index in range(n_rollouts)]
    texts: list[list[str]] = [[] for _ in questions]
    with closing(open_engine("transformers", model=str(directory), instruction="")) as engine:
        for done, completion in enumerate(engine.complete(requests, SETTINGS, seed), start=1):
            if isinstance(completion, Completion):
                texts[int(completion.uid)].append(completion.text)
            show(done, len(requests))
    return [
        sum(accuracy_reward(rollouts, answer=[question.answer] * n_rollouts)) / n_rollouts
        for question, rollouts in zip(questions, texts, strict=True)
    ]


def _table_row(questions: Sequence[TinyQuestion], shares: Sequence[float]) -> str:
    by_family = [
        [share for question, share in zip(questions, shares, strict=True) if question.family == family]
        for family in FAMILIES
    ]
    return " | ".join(f"{sum(found) / len(found):.2f}" for found in by_family) + f" | {sum(shares) / len(shares):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure assay-tiny on its held-out questions.")
    parser.add_argument("--model", type=Path, default=MODEL_DIR)
    directory = parser.parse_args().model
    questions = demo_sets()["held_out"]
    with StageProgress() as progress:
        sampled = accuracies(directory, questions, show=lambda done, total: progress("sampled", done, total))
        greedy = accuracies(directory, questions, greedy=True)
    print(" | ".join(["", *FAMILIES, "all"]))
    print("greedy | " + _table_row(questions, greedy))
    print("mean of 8 | " + _table_row(questions, sampled))


if __name__ == "__main__":
    main()
