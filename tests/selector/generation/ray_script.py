"""Ask assay-tiny through Ray, in the environment where Ray and vLLM are, and print what came as JSON.

python -m tests.selector.generation.ray_script contract|killed
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import closing

import psutil

from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside, open_engine

OUTCOME, TRAJECTORY, PROBE = CompletionKind
SETTINGS = SamplingSettings(temperature=1.0, max_tokens=60, probe_max_tokens=16)
PROMPTS = [
    Prompt("bare", "Compute 37+48-12."),
    Prompt("story", "Ann has 12 apples. She buys 7 apples and eats 4 apples. How many apples does Ann have now?"),
    Prompt("choices", "Compute 2+3.", ("4", "5", "6")),
]
LONG = Prompt("long", "Compute " + "+".join(["17"] * 300) + ".")


def shown(results: Iterable[Completion | SetAside]) -> list[dict[str, object]]:
    return [{"type": type(result).__name__, **dataclasses.asdict(result)} for result in results]


def contract() -> dict[str, object]:
    with closing(open_engine("ray", model="assay-tiny", cpus_per_replica=1, batch_size=8)) as engine:
        outcomes = [Request(prompt, OUTCOME, index) for prompt in [*PROMPTS, LONG] for index in range(5)]
        first = list(engine.complete([*outcomes, *(Request(p, TRAJECTORY, 0) for p in PROMPTS)], SETTINGS, 1))
        (chain,) = [c for c in first if isinstance(c, Completion) and c.uid == "story" and c.kind is TRAJECTORY]
        cuts = sorted({1, len(chain.token_ids) // 2, len(chain.token_ids)})
        probes = [Request(PROMPTS[1], PROBE, cut, chain.token_ids) for cut in cuts]
        short = dataclasses.replace(SETTINGS, max_tokens=2)
        return {
            "first": shown(first),
            "short": shown(engine.complete([*probes, *outcomes[5:9]], short, 1)),
            "cuts": cuts,
            "set_aside": [question.uid for question in engine.set_aside([*PROMPTS, LONG], SETTINGS)],
            "fingerprints": [engine.fingerprint(SETTINGS), engine.fingerprint(short)],
        }


def killed() -> dict[str, object]:
    """End the worker that holds the model as soon as the first answers are there."""
    prompts = [Prompt(f"q{i}", f"Compute {i}+{2 * i}.") for i in range(20)]
    requests = [Request(prompt, OUTCOME, index) for prompt in prompts for index in range(8)]
    results: list[Completion | SetAside] = []
    engine = open_engine("ray", model="assay-tiny", cpus_per_replica=1, batch_size=8, batches=2)
    with closing(engine):
        answers = engine.complete(requests, SETTINGS, 1)
        results.append(next(answers))
        (worker,) = vllm_workers()
        os.kill(worker, signal.SIGKILL)
        results += answers
    return {"is_gone": worker not in psutil.pids(), "results": shown(results)}


def vllm_workers() -> list[int]:
    """The processes of Ray workers that hold a model."""
    titles = [(process.pid, "".join(process.info["cmdline"] or [])) for process in psutil.process_iter(["cmdline"])]
    return [pid for pid, title in titles if title.startswith("ray::") and "vLLM" in title]


if __name__ == "__main__":
    print("RESULT " + json.dumps({"contract": contract, "killed": killed}[sys.argv[1]]()))
