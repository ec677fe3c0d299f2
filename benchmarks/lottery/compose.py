"""Compose the mixed pool: `python -m benchmarks.lottery.compose` (two minutes on one core).

The candidates are put to the model 20 times each, with another seed than selection's evidence will have. A question
is mastered when 19 or 20 answers are right, hopeless when none is, and wobbles when 3 to 17 are. Pool and calibration
set take the same numbers of each; those that wobble come evenly from four skills. Held out are medium questions of the
four, whatever the model makes of them, and some mastered ones, to see what is forgotten.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import torch

from benchmarks.lottery.pools import MIXED_DIR, MIXED_MODEL_DIR, MIXED_SEED, mixed_candidates, shuffled, to_row
from benchmarks.lottery.skills import SKILLS, SkillQuestion
from selector.progress import StageProgress
from selector.state import write_atomically
from selector.tiny import evaluate
from selector.tiny.questions import TinyQuestion

N_ROLLOUTS = 20
SEED = 1  # of the rollouts that classify the candidates
TAUGHT = ("marbles", "boxes", "sharing", "digits")  # skills whose medium questions the model can work out
MASTERED = ("marbles", "boxes", "series", "digits")  # skills of which it masters easy questions
IN_SET = {"mastered": 50, "large": 25, "trap": 25}  # in the pool and in the calibration set
WOBBLING_IN_SET = 3  # of each taught skill
HELD_OUT_MEDIUM, HELD_OUT_MASTERED = 18, 12  # medium of each taught skill; mastered in all


def is_measured(question: SkillQuestion, number: int) -> bool:
    """Say whether a candidate, the so-manieth of its skill and level, is put to the model."""
    if question.level == "easy":
        return question.skill in MASTERED
    if question.level == "medium":
        return question.skill in TAUGHT and number < 40
    return number < 14


def classify(question: SkillQuestion, share: float) -> str:
    """Return what a question is to the model, or "" for what no set takes."""
    if question.level in ("large", "trap"):
        return question.level if share == 0 else ""
    if question.level == "easy":
        return "mastered" if share >= 19 / 20 else ""
    return f"wobbling {question.skill}" if 3 / 20 <= share <= 17 / 20 else ""


def compose(candidates: Sequence[SkillQuestion], shares: Sequence[float]) -> dict[str, list[TinyQuestion]]:
    """Return pool, calibration set and held-out questions. Raises ValueError when there are too few of a kind."""
    groups: Mapping[str, list[TinyQuestion]] = defaultdict(list)
    sets: dict[str, list[TinyQuestion]] = {"pool": [], "calibration": [], "held_out": []}
    n_medium = dict.fromkeys(SKILLS, 0)
    for question, share in zip(candidates, shares, strict=True):
        if question.level == "medium" and n_medium[question.skill] < HELD_OUT_MEDIUM:
            n_medium[question.skill] += 1
            sets["held_out"].append(question)
        else:
            groups[classify(question, share)].append(question)
    for kind, count in {**IN_SET, **{f"wobbling {skill}": WOBBLING_IN_SET for skill in TAUGHT}}.items():
        n_held_out = HELD_OUT_MASTERED if kind == "mastered" else 0
        found = shuffled(groups[kind], MIXED_SEED)
        if len(found) < 2 * count + n_held_out:
            raise ValueError(f"{2 * count + n_held_out} {kind} questions are wanted, {len(found)} found.")
        sets["pool"] += found[:count]
        sets["calibration"] += found[count : 2 * count]
        sets["held_out"] += found[2 * count : 2 * count + n_held_out]
    return {name: shuffled(questions, MIXED_SEED) for name, questions in sets.items()}


def measured_candidates() -> list[SkillQuestion]:
    """Return the candidates that are put to the model."""
    by_family = defaultdict(list)
    for question in mixed_candidates():
        by_family[question.family].append(question)
    return [each for found in by_family.values() for number, each in enumerate(found) if is_measured(each, number)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the candidates and write the mixed pool.")
    parser.add_argument("--model", type=Path, default=MIXED_MODEL_DIR)
    parser.add_argument("--out", type=Path, default=MIXED_DIR)
    options = parser.parse_args()
    torch.set_num_threads(1)
    candidates = measured_candidates()
    with StageProgress() as progress:
        shares = evaluate.accuracies(
            options.model,
            candidates,
            n_rollouts=N_ROLLOUTS,
            seed=SEED,
            show=lambda done, total: progress("rollouts of the candidates", done, total),
        )
    by_family = defaultdict(list)
    for question, share in zip(candidates, shares, strict=True):
        by_family[question.family].append(share)
    for family, found in by_family.items():
        n_always, n_never = sum(share >= 0.95 for share in found), sum(share == 0 for share in found)
        print(f"{family}: mean {fmean(found):.2f}; of {len(found)}, {n_always} mastered and {n_never} hopeless")
    for name, questions in compose(candidates, shares).items():
        write_atomically(options.out / f"{name}.jsonl", map(to_row, questions))
        print(f"{name}: {len(questions)} questions")


if __name__ == "__main__":
    main()
