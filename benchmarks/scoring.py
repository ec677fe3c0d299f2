"""Score 1,000,000 questions of 40 integer-coded answers: our arrays against a loop over questions.

Prints one JSON line. Both sides run in this process, on one thread, over the same data; the loop runs over the first
20,000 questions and is extrapolated. It is written as the published code is: numpy's unique and scipy's entropy for
each question, then a count for each answer. A second loop, of Counter and math alone, is timed beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from math import log

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from numpy.typing import NDArray
from scipy.stats import entropy

from selector.config import SelectionConfig
from selector.pipeline import score
from selector.votes import VoteTable

Q_HAT, LAM = -0.1234567, 0.02


def make_codes(n: int, seed: int) -> NDArray[np.int16]:
    """Return codes [n, 40] of easy, medium and hard questions (7 to 8 distinct answers on average), some unread."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 4, 10, 30], size=n, p=[0.2, 0.25, 0.2, 0.2, 0.15])
    codes = np.empty((n, 40), np.int16)
    for start in range(0, n, 100_000):
        rows = slice(start, start + 100_000)
        draws = rng.random((len(sizes[rows]), 40))
        codes[rows] = (draws**2 * sizes[rows, None]).astype(np.int16)
        codes[rows][rng.random(draws.shape) < 0.08] = -1
    return codes


def published_loop(codes: NDArray[np.int16]) -> list[int]:
    """Return the set sizes, one question after another, as the published code computes them."""
    sizes = []
    for row in codes:
        answers = [code for code in row.tolist() if code >= 0]
        if not answers:
            sizes.append(0)
            continue
        _, counts = np.unique(answers, return_counts=True)
        spread = entropy(counts, base=len(answers)) if len(counts) > 1 else 0.0
        size = 0
        for answer in np.unique(answers):
            if -answers.count(answer) / len(answers) + LAM * spread <= Q_HAT:
                size += 1
        sizes.append(size)
    return sizes


def counter_loop(codes: NDArray[np.int16]) -> list[int]:
    """Return the same by the plainest fast Python."""
    sizes = []
    for row in codes.tolist():
        counts = Counter(row)
        counts.pop(-1, None)
        n = sum(counts.values())
        if not n:
            sizes.append(0)
            continue
        spread = -sum(c / n * log(c / n) for c in counts.values()) / log(n) if len(counts) > 1 else 0.0
        sizes.append(sum(-c / n + LAM * spread <= Q_HAT for c in counts.values()))
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1_000_000)
    parser.add_argument("--loop-questions", type=int, default=20_000)
    options = parser.parse_args()
    n, n_loop = options.questions, min(options.loop_questions, options.questions)

    codes = make_codes(n, seed=0)
    names = tuple(map(str, range(n)))
    table = VoteTable(names, codes, np.full(n, -1, np.int16), ((),) * n, n_probes=0)
    config = SelectionConfig.preset("paper", budget=1, lam=LAM, n_probes=0, n_outcomes=40)
    score(table.rows(range(1000)), Q_HAT, config)  # warm up

    seconds, sizes = [], np.zeros(0)
    for _ in range(3):
        started = time.process_time()
        sizes = score(table, Q_HAT, config).set_size
        seconds.append(time.process_time() - started)
    ours = sorted(seconds)[1]
    loops = {}
    for name, loop in (("published", published_loop), ("counter", counter_loop)):
        started = time.process_time()
        found = loop(codes[:n_loop])
        loops[name] = (time.process_time() - started) * n / n_loop
        if found != sizes[:n_loop].tolist():
            raise SystemExit(f"the {name} loop and the arrays disagree")

    print(
        json.dumps(
            {
                "benchmark": "scoring",
                "questions": n,
                "answers": 40,
                "seconds": round(ours, 3),
                "loop_seconds_extrapolated": round(loops["published"], 1),
                "times_faster_than_loop": round(loops["published"] / ours, 1),
                "counter_loop_seconds_extrapolated": round(loops["counter"], 1),
                "times_faster_than_counter_loop": round(loops["counter"] / ours, 1),
                "loop_measured_on": n_loop,
                "set_sizes_equal": True,
            }
        )
    )


if __name__ == "__main__":
    main()
