"""Compose the scarce pool: `python -m benchmarks.lottery.scarce` (a few minutes on one core).

Like the pools that teams bring, for `assay-tiny` itself: 43 questions mastered (at least 19 of 20 rollouts right), 57
hopeless (at most 1), 20 between (5 to 15). They are the demo's pool and calibration questions, with products out of the
model's reach to fill up the hopeless ones. The calibration set has the same composition, of questions drawn anew.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.lottery.pools import (
    SCARCE_CALIBRATION,
    SCARCE_POOL,
    SCRATCH,
    demo_pool,
    gather_evidence,
    share_right,
    shuffled,
)
from selector.progress import StageProgress
from selector.rows import question_uid
from selector.state import write_atomically
from selector.tiny import MODEL_DIR, evaluate
from selector.tiny.questions import TinyQuestion, demo_sets, draw_question, question_key

IN_SET = {"mastered": 43, "hopeless": 57, "between": 20}
N_ROLLOUTS = 20
PRIOR_ROLLOUTS = 8  # of each question, from before the training; the beliefs of curricula begin with them
POOL_SEED, CALIBRATION_SEED = 2028, 2029
N_DRAWN = 600  # for the calibration set, about as many as the pool was taken from

Row = dict[str, Any]


def level_of(share: float) -> str:
    """Return what a question is to the model, or "" for what no set takes."""
    n_right = round(N_ROLLOUTS * share)
    return "mastered" if n_right >= 19 else "hopeless" if n_right <= 1 else "between" if 5 <= n_right <= 15 else ""


def compose(measured: Iterable[tuple[TinyQuestion, float, float]], seed: int) -> list[Row]:
    """Return a set from questions with the shares right of 20 rollouts and of those from before the training."""
    levels: dict[str, list[Row]] = {level: [] for level in ("mastered", "hopeless", "between", "")}
    for question, share, share_before in measured:
        levels[level_of(share)].append(to_row(question, share_before))
    rng = random.Random(seed)
    products = []
    while len(levels["hopeless"]) + len(products) < IN_SET["hopeless"]:
        a, b = rng.randint(130, 990), rng.randint(130, 990)
        products.append(TinyQuestion(f"Compute {a}*{b}.", str(a * b), "product", True, ()))
    shares = evaluate.accuracies(MODEL_DIR, products, n_rollouts=PRIOR_ROLLOUTS, seed=seed)
    levels["hopeless"] += [to_row(question, share) for question, share in zip(products, shares, strict=True)]
    taken = {
        "mastered": levels["mastered"][: IN_SET["mastered"]],
        "hopeless": levels["hopeless"][: IN_SET["hopeless"]],
        "between": rng.sample(levels["between"], IN_SET["between"]),
    }
    for level, rows in taken.items():
        if len(rows) < IN_SET[level]:
            raise ValueError(f"{IN_SET[level]} {level} questions are wanted, {len(rows)} found.")
    return shuffled([{**row, "level": level} for level, rows in taken.items() for row in rows], seed)


def to_row(question: TinyQuestion, share_before: float) -> Row:
    """Return one line of a set."""
    return {
        "uid": question_uid(question.text),
        "question": question.text,
        "answer": question.answer,
        "family": question.family,
        "right_before": round(PRIOR_ROLLOUTS * share_before),
    }


def read_rows(path: Path) -> list[Row]:
    """Return a stored set."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measured_demo(progress: StageProgress) -> list[tuple[TinyQuestion, float, float]]:
    """Return the demo's pool and calibration questions, with what the lottery's evidence says of them."""
    demo = demo_pool()
    evidence = gather_evidence(demo, SCRATCH / "demo", progress)
    answers = {each.uid: each.outcome_answers for each in [*evidence.pool_votes, *evidence.calibration_votes]}
    questions = {question_uid(each.text): each for each in [*demo.pool, *demo.calibration]}
    return [
        (
            question,
            share_right(answers[uid], question.answer),
            share_right(answers[uid][:PRIOR_ROLLOUTS], question.answer),
        )
        for uid, question in questions.items()
    ]


def measured_anew(progress: StageProgress) -> list[tuple[TinyQuestion, float, float]]:
    """Return questions that are in no set of the demo, with what fresh rollouts say of them."""
    rng = random.Random(CALIBRATION_SEED)
    seen = {question_key(each.text) for questions in demo_sets().values() for each in questions}
    drawn: list[TinyQuestion] = []
    while len(drawn) < N_DRAWN:
        question = draw_question(rng)
        if question_key(question.text) not in seen:
            seen.add(question_key(question.text))
            drawn.append(question)
    shares = evaluate.accuracies(
        MODEL_DIR,
        drawn,
        n_rollouts=N_ROLLOUTS,
        seed=CALIBRATION_SEED,
        show=lambda done, total: progress("rollouts of new questions", done, total),
    )
    return [(question, share, share) for question, share in zip(drawn, shares, strict=True)]


def write(path: Path, rows: Sequence[Row]) -> None:
    write_atomically(path, [json.dumps(row) + "\n" for row in rows])
    print(f"{path}: {len(rows)} questions")


def main() -> None:
    torch.set_num_threads(1)
    with StageProgress() as progress:
        write(SCARCE_POOL, compose(measured_demo(progress), POOL_SEED))
        write(SCARCE_CALIBRATION, compose(measured_anew(progress), CALIBRATION_SEED))


if __name__ == "__main__":
    main()
