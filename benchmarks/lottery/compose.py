"""Compose the mixed pool: `python -m benchmarks.lottery.compose` (a minute on one core).

The candidates are put to the model 20 times each, with another seed than selection's evidence will have. A question
is mastered when 19 or 20 answers are right, hopeless when none is, and wobbles when 4 to 16 are. Pool and calibration
set take the same numbers of each from every skill; held out are medium questions, whatever the model makes of them,
and some mastered ones, to see what is forgotten.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

import torch

from benchmarks.lottery.pools import MIXED_DIR, MIXED_MODEL_DIR, MIXED_SEED, mixed_candidates, shuffled, to_row
from benchmarks.lottery.skills import LEVELS, SKILLS, SkillQuestion
from selector.progress import StageProgress
from selector.state import write_atomically
from selector.tiny import evaluate

N_ROLLOUTS = 20
SEED = 1  # of the rollouts that classify the candidates
MEASURED = {"easy": 46, "medium": 40, "large": 24, "trap": 24}  # candidates of each skill put to the model
IN_SET = {"mastered": 18, "large": 9, "trap": 9, "wobbling": 4}  # of each skill, in the pool and in the calibration set
HELD_OUT = {"medium": 12, "mastered": 4}  # of each skill


def classify(question: SkillQuestion, share: float) -> str:
    """Return what a question is to the model, or "" for what no set takes."""
    if question.level in ("large", "trap"):
        return question.level if share == 0 else ""
    if question.level == "easy":
        return "mastered" if share >= 19 / 20 else ""
    return "wobbling" if 4 / 20 <= share <= 16 / 20 else ""


def compose(candidates: list[SkillQuestion], shares: list[float]) -> dict[str, list[SkillQuestion]]:
    """Return pool, calibration set and held-out questions. Raises ValueError when a skill lacks questions of a kind."""
    share_of = dict(zip([question.text for question in candidates], shares, strict=True))
    sets: dict[str, list[SkillQuestion]] = {"pool": [], "calibration": [], "held_out": []}
    for skill in SKILLS:
        of_skill = [question for question in candidates if question.skill == skill]
        medium = [question for question in of_skill if question.level == "medium"]
        sets["held_out"] += medium[: HELD_OUT["medium"]]
        groups = defaultdict(list)
        for question in of_skill:
            if question not in medium[: HELD_OUT["medium"]]:
                groups[classify(question, share_of[question.text])].append(question)
        for kind, count in IN_SET.items():
            wanted = 2 * count + (HELD_OUT["mastered"] if kind == "mastered" else 0)
            if len(groups[kind]) < wanted:
                raise ValueError(f"{skill}: {wanted} {kind} questions are wanted, {len(groups[kind])} found.")
            sets["pool"] += groups[kind][:count]
            sets["calibration"] += groups[kind][count : 2 * count]
        sets["held_out"] += groups["mastered"][2 * IN_SET["mastered"] :][: HELD_OUT["mastered"]]
    return {name: shuffled(questions, MIXED_SEED) for name, questions in sets.items()}  # type: ignore[misc]


def measured_candidates() -> list[SkillQuestion]:
    """Return the first so many candidates of each skill and level."""
    taken: Counter[str] = Counter()
    chosen = []
    for question in mixed_candidates():
        if taken[question.family] < MEASURED[question.level]:
            taken[question.family] += 1
            chosen.append(question)
    return chosen


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
    for skill in SKILLS:
        for level in LEVELS:
            found = [
                share
                for question, share in zip(candidates, shares, strict=True)
                if question.family == f"{skill} {level}"
            ]
            kinds = Counter("0" if share == 0 else "1" if share >= 0.95 else "between" for share in found)
            print(f"{skill} {level}: mean {sum(found) / len(found):.2f}, {json.dumps(kinds)}")
    for name, questions in compose(candidates, shares).items():
        write_atomically(options.out / f"{name}.jsonl", map(to_row, questions))
        print(f"{name}: {len(questions)} questions")


if __name__ == "__main__":
    main()
