"""A pool of 100,000 questions through everything but the model: minutes, memory and disk, stage by stage.

Prints one JSON line, and each stage on standard error as it ends. Simulated answers (40 a question) and embeddings from
a synthetic topic tree are given. Every stage is a process of its own, whose peak memory is that of the process:

  application   the files into an SQLite database (questions, votes, vectors), and a run by a worker: vectors, clusters,
                scores, picks
  command       `assay rank --votes`, and the same with an exact race
  asked         `assay rank POOL` with the scripted engine and no race: 41 completions of every question are asked for,
                kept compressed, and read again; killed half way and started again
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

from benchmarks.clustering import write_embeddings
from benchmarks.simulated_votes import simulate

ROOT = Path(__file__).resolve().parents[1]
N_CALIBRATION = 1000
N_DIMENSIONS = 384
ASSAY = ("-c", "from selector.cli import main; raise SystemExit(main())")
PARTS = ("application", "command", "asked")


class Stages:
    """Runs one process after another and keeps what each took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: dict[str, dict[str, float]] = {}
        self._environment = {**os.environ, "ASSAY_VAR": str(folder / "var"), "PYTHONPATH": str(ROOT)}
        self._environment.pop("DATABASE_URL", None)

    def run(
        self, name: str, command: Sequence[object], *, kill_when: Callable[[], bool] | None = None
    ) -> dict[str, float]:
        """Run a command; with ``kill_when``, end it by SIGKILL once that says so. Exits where the command fails."""
        started = time.monotonic()
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *map(str, command)], stdout=log, stderr=log, env=self._environment, cwd=self.folder
            )
        while kill_when and process.poll() is None:
            if kill_when():
                process.kill()
                break
            time.sleep(0.05)
        _, status, usage = os.wait4(process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code not in ((-signal.SIGKILL,) if kill_when else (0,)):
            raise SystemExit(f"{name} ended with {code}:\n{(self.folder / 'log').read_text()[-4000:]}")
        took = {
            "minutes": round((time.monotonic() - started) / 60, 2),
            "cpu_minutes": round((usage.ru_utime + usage.ru_stime) / 60, 2),
            "peak_gib": round(usage.ru_maxrss / 2**20, 2),
        }
        self.found[name] = took
        print(name, took, file=sys.stderr, flush=True)
        return took


def write_files(folder: Path, n: int) -> None:
    """Write pool.jsonl, calibration.jsonl, their votes, and x.npy with a row for each question of the pool."""
    for name, size, seed in (("pool", n, 1), ("calibration", N_CALIBRATION, 2)):
        with (folder / f"{name}.jsonl").open("w") as questions, (folder / f"{name}_votes.jsonl").open("w") as votes:
            for number, question in enumerate(simulate(size, mix="mid", seed=seed)):
                uid = f"{name}-{number}"
                text = (
                    f"Of {number} {name} items, {number % 97} are red and {number % 89} blue. " * 3 + "How many more?"
                )
                row = {"id": uid, "question": text}
                if name == "calibration":
                    row["answer"] = question.truth or "a1000"
                questions.write(json.dumps(row) + "\n")
                answers = {**question.to_json(), "id": uid, "fingerprint": "simulated"}
                answers.pop("truth", None)
                if name == "calibration":
                    answers["truth"] = question.truth
                votes.write(json.dumps(answers) + "\n")
    write_embeddings(folder / "x.npy", n, N_DIMENSIONS)


def give_vectors(folder: Path) -> None:
    """Store the vectors of x.npy in the application's database, as the embedder `minilm` would have; in a child."""
    import django
    import numpy as np

    os.environ["DJANGO_SETTINGS_MODULE"] = "labeling.settings"
    django.setup()
    from labeling.engine.embeddings import embedder_fingerprint
    from labeling.models import Embedding, Question

    rows, fingerprint = np.load(folder / "x.npy", mmap_mode="r"), embedder_fingerprint("minilm")
    fingerprints = list(Question.objects.order_by("pk").values_list("fingerprint", flat=True))
    for start in range(0, len(rows), 5000):
        chunk = zip(fingerprints[start : start + 5000], rows[start : start + 5000], strict=True)
        Embedding.objects.bulk_create(
            [
                Embedding(question_fingerprint=each, embedder_fingerprint=fingerprint, vector=row.tobytes())
                for each, row in chunk
            ],
            batch_size=500,
        )


def application(stages: Stages, budget: int) -> dict[str, object]:
    folder, manage = stages.folder, ROOT / "manage.py"
    stages.run("migrate", [manage, "migrate", "--verbosity", 0])
    stages.run("import questions", [manage, "import_questions", folder / "pool.jsonl", "--pool", "Large"])
    calibration = [manage, "import_calibration", folder / "calibration.jsonl", "--pool", "Large", "--set", "Known"]
    stages.run("import calibration set", calibration)
    stages.run("import votes", [manage, "import_votes", folder / "pool_votes.jsonl", "--pool", "Large"])
    stages.run("import its votes", [manage, "import_votes", folder / "calibration_votes.jsonl", "--set", "Known"])
    stages.run("give vectors", ["-m", "benchmarks.scale", "--give-vectors", folder])
    what = ["--pool", "Large", "--calibration", "Known", "--recorded", "simulated", "--budget", budget]
    stages.run("queue the run", [manage, "select", *what, "--alpha", "0.4"])
    stages.run("worker", [manage, "worker", "--once"])
    told = subprocess.run(
        [sys.executable, "-c", TELL], cwd=ROOT, env=stages._environment, check=True, capture_output=True, text=True
    )
    files = [file for file in (folder / "var").glob("*.sqlite3*") if file.is_file()]
    return {**json.loads(told.stdout), "database_gb": round(sum(file.stat().st_size for file in files) / 1e9, 2)}


TELL = """
import json, os, django
os.environ["DJANGO_SETTINGS_MODULE"] = "labeling.settings"
django.setup()
from labeling.models import SelectionRun
run = SelectionRun.objects.get()
if run.status != "finished":
    raise SystemExit(f"the run is {run.status}: {run.error} {run.traceback}")
print(json.dumps({"run_seconds": run.report["seconds"], "picks": run.picks.count(), "scores": run.scores.count()}))
"""


def command(stages: Stages, budget: int) -> dict[str, object]:
    folder = stages.folder
    votes = ["--votes", folder / "pool_votes.jsonl", "--calibration-votes", folder / "calibration_votes.jsonl"]
    rank = [*ASSAY, "rank", *votes, "--embeddings", folder / "x.npy", "--budget", budget, "--alpha", "0.4"]
    stages.run("rank recorded votes", [*rank, "--out", folder / "picks.jsonl"])
    raced = ["--race", "exact", "--out", folder / "raced.jsonl", "--report", folder / "raced.json"]
    stages.run("rank with a race", [*rank, *raced])
    picks, raced_picks = (_uids(folder / name) for name in ("picks.jsonl", "raced.jsonl"))
    report = json.loads((folder / "raced.json").read_text())
    return {"raced_picks_equal": picks == raced_picks, "raced_tokens": report["tokens_used"] / report["tokens_full"]}


def asked(stages: Stages, budget: int) -> dict[str, object]:
    folder = stages.folder
    files = [folder / "pool.jsonl", "--calibration", folder / "calibration.jsonl", "--embeddings", folder / "x.npy"]
    model = ["--engine", "scripted", "--model", "scripted", "--race", "off", "--keep", "answers"]
    state = folder / "state"
    out = ["--budget", budget, "--alpha", "0.4", "--state", state, "--out", folder / "asked.jsonl"]
    rank = [*ASSAY, "rank", *files, *model, *out, "--report", folder / "asked.json"]
    shards = state / "completions"
    n_questions = sum(1 for _ in (folder / "pool.jsonl").open())

    def is_under_way() -> bool:
        return shards.exists() and _size(shards) > 200 * n_questions

    stages.run("ask, until killed", rank, kill_when=is_under_way)
    stages.run("ask the rest and rank", rank)
    first = (folder / "asked.jsonl").read_bytes()
    stages.run("rank again", rank)
    return {
        "state_gb": round(_size(state) / 1e9, 2),
        "asked_picks": first.count(b"\n"),
        "same_picks_again": (folder / "asked.jsonl").read_bytes() == first,
    }


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _uids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--budget", type=int, default=512)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--give-vectors", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.give_vectors:
        give_vectors(options.give_vectors)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), options.questions)
        stages = Stages(Path(folder))
        told: dict[str, object] = {"benchmark": "scale", "questions": options.questions, "picks_wanted": options.budget}
        for part, run in (("application", application), ("command", command), ("asked", asked)):
            if part in options.parts:
                told[part] = run(stages, options.budget)
        peak = max(took["peak_gib"] for took in stages.found.values())
    print(json.dumps({**told, "peak_gib": peak, "stages": stages.found}))


if __name__ == "__main__":
    main()
