"""What the answers to a pool cost where they are kept: the command's shards and the application's database (SQLite).

Prints one JSON line. 41 completions a question (a chain, 20 probes, 20 outcomes) of invented prose, as long as the
lengths that `benchmarks.simulated_votes` draws, are stored in chunks as a run stores them, and read again into votes.
Bytes and seconds are extrapolated linearly to 100,000 questions. Words are drawn from this project's documents by how
often they occur there, which compresses less than a model's own answers do: those to one question resemble each other.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from benchmarks.simulated_votes import simulate
from selector.generation.contract import Completion, CompletionKind
from selector.generation.store import KEEP, CompletionShards
from selector.volatility import cut_positions, votes_of

ROOT = Path(__file__).resolve().parents[1]
TOKENS_A_WORD = 1.4
CHUNK = 256
WANTED = 100_000


def completions(n: int) -> Iterator[Completion]:
    """Yield the completions of n questions, in the order in which a run asks for them."""
    rng = np.random.default_rng(0)
    counts = Counter(re.findall(r"\S+", "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))))
    words = np.array(list(counts))
    shares = np.array(list(counts.values())) / counts.total()

    def text(n_tokens: int, answer: str) -> str:
        n_words = max(1, round(n_tokens / TOKENS_A_WORD))
        return f"{' '.join(rng.choice(words, n_words, p=shares))} \\boxed{{{answer}}}."

    pool = list(simulate(n, mix="mid", seed=0))
    for question in pool:
        length = question.trajectory_tokens or 1
        chain = text(length, "1")
        ids = tuple(rng.integers(0, 150_000, length - 1).tolist())
        yield Completion(question.uid, CompletionKind.TRAJECTORY, 0, chain, length, 150, "stop", ids)
    for question in pool:
        cuts = cut_positions((question.trajectory_tokens or 1) - 1, len(question.probe_answers))
        for cut, answer in dict(zip(cuts, question.probe_answers, strict=True)).items():
            text_of_probe = f"{answer}}}$ is the answer"
            yield Completion(question.uid, CompletionKind.PROBE, cut, text_of_probe, 9, 150 + cut, "stop")
    for question in pool:
        for index, length in enumerate(question.outcome_tokens or ()):
            answer = question.outcome_answers[index]
            yield Completion(question.uid, CompletionKind.OUTCOME, index, text(length, answer), length, 150, "stop")


def measure(store: object, made: list[Completion], uids: list[str]) -> dict[str, float]:
    """Store the completions chunk by chunk, and read the votes again."""
    started = time.process_time()
    remaining = iter(made)
    while chunk := list(islice(remaining, CHUNK)):
        store.add(chunk)  # type: ignore[attr-defined]
    stored = time.process_time()
    for start in range(0, len(uids), 500):
        block = uids[start : start + 500]
        of_question: dict[str, list[Completion]] = {uid: [] for uid in block}
        for completion in store.load(block):  # type: ignore[attr-defined]
            of_question[completion.uid].append(completion)
        for uid in block:
            votes_of(uid, of_question[uid], 20, 20)
    return {"store_seconds": stored - started, "read_seconds": time.process_time() - stored}


def in_shards(folder: Path, keep: str, made: list[Completion], uids: list[str]) -> dict[str, float]:
    path = folder / keep
    found = measure(CompletionShards(path, keep=keep), made, uids)
    started = time.process_time()
    CompletionShards(path)
    found["open_seconds"] = time.process_time() - started
    return {**found, "bytes": sum(file.stat().st_size for file in path.iterdir())}


def in_database(folder: Path, keep: str, made: list[Completion], uids: list[str]) -> dict[str, float]:
    """Store them in an SQLite database of the application's own, made for this."""
    from contextlib import nullcontext

    import django
    from django.core.management import call_command
    from django.db import connection

    os.environ.update({"ASSAY_VAR": str(folder), "DJANGO_SETTINGS_MODULE": "labeling.settings"})
    os.environ.pop("DATABASE_URL", None)
    django.setup()
    call_command("migrate", verbosity=0)
    from labeling.engine.evidence import DatabaseCompletionStore

    def size() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT (SELECT page_count FROM pragma_page_count) * page_size FROM pragma_page_size")
            return int(cursor.fetchone()[0])

    empty = size()
    found = measure(DatabaseCompletionStore("f" * 16 + keep, nullcontext, keep=keep), made, uids)
    return {**found, "bytes": size() - empty}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=1000)
    n = parser.parse_args().questions
    made = list(completions(n))
    uids = sorted({completion.uid for completion in made})
    told: dict[str, object] = {
        "benchmark": "evidence",
        "questions": n,
        "completions": len(made),
        "extrapolated_to": WANTED,
        "text_gb": round(sum(len(completion.text) for completion in made) * WANTED / n / 1e9, 2),
    }
    with tempfile.TemporaryDirectory() as folder:
        for where, run in (("shards", in_shards), ("database", in_database)):
            for keep in KEEP:
                found = run(Path(folder), keep, made, uids)
                told[f"{where}_{keep}_gb"] = round(found.pop("bytes") * WANTED / n / 1e9, 2)
                told |= {f"{where}_{keep}_{name}": round(value * WANTED / n) for name, value in found.items()}
                print(where, keep, found, file=sys.stderr)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
