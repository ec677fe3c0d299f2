"""The benchmark of steered trainings: its pool, its budget and its table. The trainings themselves are run by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from selector.curriculum import CURRICULA, RewardEvent, RewardLog

pytest.importorskip("trl", reason="TRL is not installed: pip install 'assay-rlvr[demo]'")
from benchmarks import steered_training as benchmark
from benchmarks.lottery import scarce
from benchmarks.lottery.pools import SCARCE_POOL


def test_the_pool_is_mostly_mastered_or_hopeless_and_holds_no_held_out_question() -> None:
    pool = scarce.read_rows(SCARCE_POOL)

    levels = Counter(row["level"] for row in pool)
    held_out = {question.text for question in benchmark.demo_pool().held_out}

    assert levels == {"mastered": 43, "hopeless": 57, "between": 20}
    assert len({row["uid"] for row in pool}) == len(pool)
    assert not held_out & {row["question"] for row in pool}


def test_no_training_rolls_out_more_than_the_budget(tmp_path: Path) -> None:
    uids = [row["uid"] for row in scarce.read_rows(SCARCE_POOL)]
    log = RewardLog(tmp_path / "rewards.jsonl")
    steering = benchmark.WithinBudget(CURRICULA["dynamic_sampling"](uids, seed=0), log.path)
    asked: list[str] = []

    step = 0
    while benchmark.BUDGET - steering.n_asked >= benchmark.N_QUESTIONS:
        batch = steering.propose(benchmark.N_QUESTIONS)
        while batch:
            asked += batch
            log.append([RewardEvent(uid, (1.0, float(int(uid[:8], 16) % 4 > 0)), step) for uid in batch])
            batch = steering.refill()
        step += 1

    assert benchmark.BUDGET - benchmark.N_QUESTIONS < len(asked) <= benchmark.BUDGET
    assert step < benchmark.N_STEPS


def test_the_table_pairs_seeds_and_counts_them() -> None:
    def result(arm: str, seed: int, share: float) -> dict[str, Any]:
        measured = {"mean_of_8": share, "greedy": share, "rollouts": 800, "steps": 25, "with_variance": 0.5}
        return {"arm": arm, "seed": seed, "between": 0.25, **measured}

    pairs = [(0, 0.60, 0.65), (1, 0.62, 0.68), (2, 0.64, 0.69)]
    results = [result("random", seed, ours) for seed, ours, _ in pairs]
    results += [result("insight", seed, theirs) for seed, _, theirs in pairs]

    lines = benchmark.table(results).splitlines()

    assert lines[2] == "| `random` | 0.620 |  | 0.620 |  | 800 | 25 | 0.50 | 0.25 | 3 |"
    assert lines[3].startswith("| `insight` | 0.673 | **+0.053 ± 0.014** |")
    assert len(lines) == 4
