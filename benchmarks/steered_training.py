"""Train `assay-tiny` with four curricula at equal rollouts, and measure what each training was worth.

`python -m benchmarks.steered_training --run` does what is not done yet, seed by seed, and can be stopped and started
again anywhere; `--table` prints the table and rewrites it in docs/curriculum.md; `--compose` makes the pool again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
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

from benchmarks.lottery.__main__ import SCRATCH, read_results
from benchmarks.lottery.pools import demo_pool, gather_evidence, share_right, shuffled
from benchmarks.lottery.table import paired_difference, rewrite
from benchmarks.lottery.training import QuickTrainer, be_quiet, measure
from selector.curriculum import CURRICULA, RewardLog
from selector.curriculum.adapters.steering import LogSteering
from selector.curriculum.adapters.trl import CurriculumGRPOTrainer
from selector.progress import StageProgress
from selector.rewards import accuracy_reward
from selector.rows import question_uid
from selector.state import write_atomically
from selector.tiny import evaluate, grpo
from selector.tiny.questions import TinyQuestion

ARMS = ("random", "insight", "mopps", "dynamic_sampling")
N_SEEDS = 8
N_QUESTIONS, N_ROLLOUTS, N_STEPS = 4, 8, 25  # of a step; dynamic sampling has fewer steps for the same rollouts
BUDGET = N_QUESTIONS * N_STEPS  # questions rolled out in one training
LEARNING_RATE = 1e-4
PRIOR_ROLLOUTS = 8  # of each question, from before the training; beliefs begin with them
N_MASTERED, N_HOPELESS, N_BETWEEN = 43, 57, 20
COMPOSE_SEED = 2028
POOL = Path("docs/data/steered_pool.jsonl")
RESULTS = Path("docs/data/steered_training.jsonl")
DOCUMENT = Path("docs/curriculum.md")

Row = dict[str, Any]


def compose(progress: StageProgress) -> list[Row]:
    """Return a pool that is mostly mastered or hopeless, of the demo's questions and products out of the model's reach.

    Mastered: at least 19 of 20 rollouts right; hopeless: at most 1; between: 5 to 15.
    """
    demo = demo_pool()
    evidence = gather_evidence(demo, SCRATCH / "demo", progress)
    votes = {each.uid: each for each in [*evidence.pool_votes, *evidence.calibration_votes]}
    mastered, hopeless, between = [], [], []
    for uid, question in {question_uid(each.text): each for each in [*demo.pool, *demo.calibration]}.items():
        answers = votes[uid].outcome_answers
        n_right = round(20 * share_right(answers, question.answer))
        row = _row(question, round(PRIOR_ROLLOUTS * share_right(answers[:PRIOR_ROLLOUTS], question.answer)))
        level = mastered if n_right >= 19 else hopeless if n_right <= 1 else between if 5 <= n_right <= 15 else []
        level.append(row)
    rng = random.Random(COMPOSE_SEED)
    products = []
    while len(hopeless) + len(products) < N_HOPELESS:
        a, b = rng.randint(130, 990), rng.randint(130, 990)
        products.append(TinyQuestion(f"Compute {a}*{b}.", str(a * b), "product", True, ()))
    shares = evaluate.accuracies(demo.model_dir, products, n_rollouts=PRIOR_ROLLOUTS, seed=COMPOSE_SEED)
    hopeless += [_row(each, round(PRIOR_ROLLOUTS * share)) for each, share in zip(products, shares, strict=True)]
    between = rng.sample(between, N_BETWEEN)
    named = {"mastered": mastered[:N_MASTERED], "hopeless": hopeless[:N_HOPELESS], "between": between}
    rows = [{**row, "level": level} for level, of_level in named.items() for row in of_level]
    return cast("list[Row]", shuffled(cast("list[TinyQuestion]", rows), COMPOSE_SEED))


def _row(question: TinyQuestion, n_right: int) -> Row:
    return {
        "uid": question_uid(question.text),
        "question": question.text,
        "answer": question.answer,
        "family": question.family,
        "right_before": n_right,
    }


def read_pool() -> list[Row]:
    """Return the pool that is stored."""
    return [json.loads(line) for line in POOL.read_text(encoding="utf-8").splitlines()]


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
    pool = read_pool()
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
    parser.add_argument("--compose", action="store_true", help="make the pool, from the evidence of the lottery")
    parser.add_argument("--run", action="store_true", help="train what has no result yet")
    parser.add_argument("--shard", default="0/1", help="which share of the seeds, such as 1/2")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--table", action="store_true", help="print the table and rewrite it in docs/curriculum.md")
    options = parser.parse_args()
    if not (options.compose or options.run or options.table):
        parser.error("say --compose, --run or --table")
    with StageProgress() as progress:
        if options.compose:
            write_atomically(POOL, [json.dumps(row) + "\n" for row in compose(progress)])
        if options.run:
            run(*map(int, options.shard.split("/")), options.seeds, progress)
    if options.table:
        found = table(read_results(RESULTS))
        print(found)
        rewrite(DOCUMENT, {"steered training": found})


if __name__ == "__main__":
    main()
