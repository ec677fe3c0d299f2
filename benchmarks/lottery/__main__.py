"""Run the lottery, or print its table.

`python -m benchmarks.lottery --run` does what is not done yet, in complete blocks of seeds, and can be stopped and
started again anywhere; `--shard 0/2` and `--shard 1/2` share the work between two processes. `--table` prints the
tables of the results and rewrites those in docs/lottery.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

from benchmarks.lottery.arms import N_SEEDS, PICKS_FILE, Job, Picks, jobs
from benchmarks.lottery.pools import POOLS, SCRATCH, Evidence, Pool, gather_evidence, gather_internals
from benchmarks.lottery.table import DOCUMENT, rewrite, tables
from selector.errors import StateInUse
from selector.internals import Internals
from selector.progress import StageProgress

RESULTS = Path("docs/data/lottery.jsonl")
SECONDS_BETWEEN_TRIES = 5.0


def read_results(path: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the finished trainings, one a line; a line torn by a crash counts as not there."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def add_result(job: Job, result: Mapping[str, Any], path: Path = RESULTS) -> None:
    """Append one finished training; processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_torn = path.exists() and not path.read_bytes().endswith(b"\n")
    row = {"pool": job.pool, "arm": job.arm, "budget": job.budget, "seed": job.seed, **result}
    line = ("\n" if is_torn else "") + json.dumps(row) + "\n"
    with path.open("ab") as file:
        file.write(line.encode())


def shares_right(path: Path = PICKS_FILE) -> dict[str, list[float]]:
    """Return by job how often the model was right on each of its picks, in 20 rollouts before training."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["job"]: row["right"] for row in map(json.loads, lines)}


def name_of(pool: str, seed: int, picks: Sequence[str]) -> str:
    """Name a training by all that it depends on: arms that pick the same questions share it."""
    return hashlib.sha256(json.dumps([pool, seed, sorted(picks)]).encode()).hexdigest()[:16]


def run(shard: int, n_shards: int, progress: StageProgress, *, n_seeds: int, pools: tuple[str, ...]) -> None:
    """Do every job of this shard that has no result yet."""
    import torch

    from benchmarks.lottery.training import Recipe, be_quiet, measure, train_and_measure

    be_quiet()
    torch.set_num_threads(1)
    loaded = cache(lambda name: POOLS[name]())

    @cache
    def gathered(name: str) -> Evidence:
        while True:
            try:
                return gather_evidence(loaded(name), SCRATCH / name, progress)
            except StateInUse:  # by the process of another shard, which asks for the same
                progress("waiting for the other process's answers", 0, 1)
                time.sleep(SECONDS_BETWEEN_TRIES)

    def gather(pool: Pool, with_internals: bool) -> tuple[Evidence, Internals | None]:
        return gathered(pool.name), gather_internals(pool, SCRATCH / pool.name) if with_internals else None

    picks = Picks(PICKS_FILE, gather)
    for name in pools:
        if shard == 0 and not any(each["pool"] == name and each["arm"] == "untrained" for each in read_results()):
            add_result(Job(name, "untrained", 0, 0), measure(loaded(name), loaded(name).model_dir))
    todo = [job for job in jobs(n_seeds, pools) if job.is_in_shard(shard, n_shards)]
    for number, job in enumerate(todo):
        done = read_results()
        if any((job.pool, job.arm, job.budget, job.seed) == _key(result) for result in done):
            continue
        chosen = picks.of(job, loaded(job.pool))
        training = name_of(job.pool, job.seed, chosen)
        progress(f"training {job.key}", number, len(todo))
        same = next((result for result in done if result.get("training") == training), None)
        if same:
            kept = {name: same[name] for name in ("training", "mean_of_8", "greedy", "by_family", "rewards")}
            add_result(job, {**kept, "same_as": same["arm"]})
            continue
        questions = [loaded(job.pool).by_uid[uid] for uid in chosen]
        result = train_and_measure(loaded(job.pool), questions, seed=job.seed, recipe=Recipe())
        add_result(job, {"training": training, **result})


def _key(result: Mapping[str, Any]) -> tuple[str, str, int, int]:
    return result["pool"], result["arm"], result["budget"], result["seed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="train what has no result yet")
    parser.add_argument("--shard", default="0/1", help="which share of the trainings, such as 1/2")
    parser.add_argument("--pools", nargs="+", choices=list(POOLS), default=list(POOLS))
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--table", action="store_true", help="print the tables and rewrite them in docs/lottery.md")
    options = parser.parse_args()
    if options.run:
        shard, n_shards = map(int, options.shard.split("/"))
        with StageProgress() as progress:
            run(shard, n_shards, progress, n_seeds=options.seeds, pools=tuple(options.pools))
    if options.table:
        found = tables(read_results(), shares_right())
        print("\n\n".join(found.values()))
        rewrite(DOCUMENT, found)
    if not (options.run or options.table):
        parser.error("say --run, --table, or both")


if __name__ == "__main__":
    main()
