"""Train `assay-tiny` with four curricula at equal rollouts, and measure what each training was worth.

`python -m benchmarks.steered_training --run` does what is not done yet, seed by seed, and can be stopped and started
again anywhere; `--table` prints the table and rewrites it in docs/curriculum.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, cast

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import datasets
import torch
import transformers

from benchmarks.lottery.__main__ import read_results
from benchmarks.lottery.pools import SCARCE_POOL, demo_pool
from benchmarks.lottery.scarce import PRIOR_ROLLOUTS, Row, read_rows
from benchmarks.lottery.table import paired_difference, rewrite
from benchmarks.lottery.training import QuickTrainer, be_quiet, measure
from selector.curriculum import CURRICULA, RewardLog
from selector.curriculum.adapters.steering import LogSteering
from selector.curriculum.adapters.trl import CurriculumGRPOTrainer
from selector.progress import StageProgress
from selector.rewards import accuracy_reward
from selector.tiny import grpo

ARMS = ("random", "insight", "mopps", "dynamic_sampling")
N_SEEDS = 8
N_QUESTIONS, N_ROLLOUTS, N_STEPS = 4, 8, 25  # of a step; dynamic sampling has fewer steps for the same rollouts
BUDGET = N_QUESTIONS * N_STEPS  # questions rolled out in one training
LEARNING_RATE = 1e-4
RESULTS = Path("docs/data/steered_training.jsonl")
DOCUMENT = Path("docs/curriculum.md")


class WithinBudget(LogSteering):
    """Rolls out no more than ``BUDGET`` questions, dropped ones included."""

    n_asked = 0

    def propose(self, k: int) -> list[str]:
        self.n_asked += k
        return super().propose(k)

    def refill(self) -> list[str]:
        more = super().refill()[: BUDGET - self.n_asked]
        self.n_asked += len(more)
        return more


class SteeredTrainer(CurriculumGRPOTrainer, QuickTrainer):
    """The trainer of the lottery, steered, and stopped when there are no rollouts left for another step."""

    def __init__(self, *args: Any, steering: WithinBudget, **kwargs: Any) -> None:
        super().__init__(*args, steering=steering, **kwargs)
        self.add_callback(_StopInTime(steering))


class _StopInTime(transformers.TrainerCallback):
    def __init__(self, steering: WithinBudget) -> None:
        self.steering = steering

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = BUDGET - self.steering.n_asked < N_QUESTIONS


def train_and_measure(arm: str, seed: int, pool: Sequence[Row]) -> dict[str, Any]:
    """Train with one curriculum, and return what came of it and what its rollouts were spent on."""
    began = time.process_time()
    demo = demo_pool()
    rows = [
        {"uid": row["uid"], "prompt": [{"role": "user", "content": row["question"]}], "answer": row["answer"]}
        for row in pool
    ]
    prior = {row["uid"]: (row["right_before"], PRIOR_ROLLOUTS - row["right_before"]) for row in pool}
    rewards: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "rewards.jsonl"
        os.environ["ASSAY_REWARD_LOG"] = str(log)
        steering = WithinBudget(CURRICULA[arm](prior, seed=seed, prior=prior), log)
        grpo.train(
            datasets.Dataset.from_list(rows),
            accuracy_reward,
            n_steps=N_STEPS,
            seed=seed,
            directory=Path(folder),
            show=lambda step, mean_reward: rewards.append(round(mean_reward, 4)),
            model_dir=demo.model_dir,
            trainer_class=cast("Any", partial(SteeredTrainer, steering=steering)),
            may_learn_nothing=True,
            learning_rate=LEARNING_RATE,
            beta=0.0,
            max_completion_length=demo.max_new_tokens,
            per_device_train_batch_size=N_QUESTIONS * N_ROLLOUTS,
        )
        trained = time.process_time()
        events, _ = RewardLog(log).read_from()
        measured = measure(demo, Path(folder))
    level = {row["uid"]: row["level"] for row in pool}
    return {
        **measured,
        "rollouts": sum(len(event.rewards) for event in events),
        "steps": len(rewards),
        "with_variance": round(fmean(len(set(event.rewards)) > 1 for event in events), 4),
        "between": round(fmean(level[event.uid] == "between" for event in events), 4),
        "distinct": len({event.uid for event in events}),
        "rewards": rewards,
        "seconds_training_measuring": [round(trained - began, 1), round(time.process_time() - trained, 1)],
    }


def add_result(arm: str, seed: int, result: Mapping[str, Any]) -> None:
    """Append one finished training."""
    is_torn = RESULTS.exists() and not RESULTS.read_bytes().endswith(b"\n")
    line = ("\n" if is_torn else "") + json.dumps({"arm": arm, "seed": seed, **result}) + "\n"
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(line)


def run(shard: int, n_shards: int, n_seeds: int, progress: StageProgress) -> None:
    """Do every training of this shard's seeds that has no result yet, seed by seed; the untrained model comes first."""
    be_quiet()
    torch.set_num_threads(1)
    pool = read_rows(SCARCE_POOL)
    if shard == 0 and not any(each["arm"] == "untrained" for each in read_results(RESULTS)):
        add_result("untrained", 0, measure(demo_pool(), demo_pool().model_dir))
    jobs = [(arm, seed) for seed in range(shard, n_seeds, n_shards) for arm in ARMS]
    for number, (arm, seed) in enumerate(jobs):
        progress("trainings", number, len(jobs))
        if not any((each["arm"], each["seed"]) == (arm, seed) for each in read_results(RESULTS)):
            add_result(arm, seed, train_and_measure(arm, seed, pool))
    progress("trainings", len(jobs), len(jobs))


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of all finished trainings: means, and differences to random paired by seed."""
    by_arm = {arm: {each["seed"]: each for each in results if each["arm"] == arm} for arm in ARMS}
    lines = [
        "| curriculum | mean of 8 | against random | greedy | against random | rollouts | steps | with variance "
        "| on what wobbles | seeds |",
        "|---" * 10 + "|",
    ]
    for arm, found in by_arm.items():
        if not found:
            continue
        cells = [f"`{arm}`"]
        for measured in ("mean_of_8", "greedy"):
            ours, baseline = ({seed: each[measured] for seed, each in by_arm[key].items()} for key in (arm, "random"))
            mean, half, n = paired_difference(ours, baseline)
            cell = "" if arm == "random" or n < 2 else f"{mean:+.3f} ± {half:.3f}"
            cells += [f"{fmean(ours.values()):.3f}", f"**{cell}**" if cell and abs(mean) > half else cell]
        cells += [f"{fmean(each[name] for each in found.values()):.0f}" for name in ("rollouts", "steps")]
        cells += [f"{fmean(each[name] for each in found.values()):.2f}" for name in ("with_variance", "between")]
        lines.append("| " + " | ".join([*cells, str(len(found))]) + " |")
    for each in results:
        if each["arm"] == "untrained":
            lines.append(f"| before training | {each['mean_of_8']:.3f} | | {each['greedy']:.3f} | | | | | | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="train what has no result yet")
    parser.add_argument("--shard", default="0/1", help="which share of the seeds, such as 1/2")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--table", action="store_true", help="print the table and rewrite it in docs/curriculum.md")
    options = parser.parse_args()
    if not (options.run or options.table):
        parser.error("say --run, --table, or both")
    if options.run:
        with StageProgress() as progress:
            run(*map(int, options.shard.split("/")), options.seeds, progress)
    if options.table:
        found = table(read_results(RESULTS))
        print(found)
        rewrite(DOCUMENT, {"steered training": found})


if __name__ == "__main__":
    main()
