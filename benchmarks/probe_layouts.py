"""Probing chains with vLLM: our layout, whose prefix is in the cache, the same without a cache, the authors' layout.

For each question a greedy chain is written, and then asked for its answer at each of its cuts. Every way has an engine
of its own and does the same work, in turns, so that what else the machine does falls on all alike. One JSON line.

    .venv-vllm/bin/python -m benchmarks.probe_layouts [--model smollm2|DIR] [--questions 8] [--cuts 20] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from selector.answers import extract_answer, extract_probe_answer
from selector.generation import Completion, CompletionKind, Engine, Prompt, Request, SamplingSettings, open_engine
from selector.volatility import cut_positions
from tests.smollm2 import smollm2_dir

WAYS: Mapping[str, Mapping[str, Any]] = {
    "shared_prefix": {},
    "without_cache": {"engine_args": {"enable_prefix_caching": False}},
    "authors": {"probe_layout": "authors"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2", help="smollm2 or a directory")
    parser.add_argument(
        "--pool", type=Path, default=Path("../shared/data/svamp_400.jsonl"), help="rows with a question"
    )
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3, help="times that every chain is probed by each way")
    parser.add_argument("--max-tokens", type=int, default=256, help="of a chain")
    options = parser.parse_args()

    path = str(smollm2_dir()) if options.model == "smollm2" else options.model
    settings = SamplingSettings(max_tokens=options.max_tokens)
    lines = options.pool.read_text().splitlines()[: options.questions]
    prompts = [Prompt(f"q{number}", json.loads(line)["question"]) for number, line in enumerate(lines)]
    engines: dict[str, Engine] = {}
    try:
        for way, opened in WAYS.items():
            engines[way] = open_engine("vllm", model=path, max_model_len=1024, **opened)
        report = measure(engines, prompts, settings, n_cuts=options.cuts, n_rounds=options.rounds)
    finally:
        for engine in engines.values():
            engine.close()
    print(json.dumps({"benchmark": "probe_layouts", **vars(options), **report}, default=str))
    return 0


def measure(
    engines: Mapping[str, Engine], prompts: Sequence[Prompt], settings: SamplingSettings, *, n_cuts: int, n_rounds: int
) -> dict[str, Any]:
    """Probe every chain by every way in turns; return seconds, ratios, and how many answers differ."""
    chains: dict[str, Completion] = {}
    for prompt in prompts:  # one after the other, as a race meets them; each engine has read the chain it probes
        written = {
            way: _ask(engine, [Request(prompt, CompletionKind.TRAJECTORY, 0)], settings)[0]
            for way, engine in engines.items()
        }
        chains[prompt.uid] = written["shared_prefix"]
    seconds: dict[str, list[float]] = {way: [] for way in engines}
    tokens: dict[str, int] = dict.fromkeys(engines, 0)
    answers: dict[str, dict[tuple[str, int], str]] = {way: {} for way in engines}
    for number in range(n_rounds):
        for prompt in prompts:
            chain = chains[prompt.uid].token_ids
            requests = [
                Request(prompt, CompletionKind.PROBE, cut, chain)
                for cut in sorted(set(cut_positions(len(chain), n_cuts)))
            ]
            ways = list(engines)[number % len(engines) :] + list(engines)[: number % len(engines)]
            for way in ways:
                started = time.perf_counter()
                made = _ask(engines[way], requests, settings)
                seconds[way].append(time.perf_counter() - started)
                tokens[way] += sum(each.n_tokens for each in made)
                read = extract_answer if way == "authors" else extract_probe_answer
                answers[way] |= {(each.uid, each.index): read(each.text) for each in made}
            print({way: round(seconds[way][-1], 2) for way in ways}, file=sys.stderr)
    ours = answers["shared_prefix"]
    totals = {way: sum(each) for way, each in seconds.items()}
    return {
        "chain_tokens": [len(chain.token_ids) for chain in chains.values()],
        "seconds": {way: round(total, 2) for way, total in totals.items()},
        "median_seconds_of_a_chain": {way: round(statistics.median(each), 3) for way, each in seconds.items()},
        "times_as_long_as_ours": {way: round(total / totals["shared_prefix"], 2) for way, total in totals.items()},
        "answer_tokens": tokens,
        "n_answers": len(ours),
        "n_readable": {way: sum(map(bool, found.values())) for way, found in answers.items()},
        "n_that_differ_from_ours": {
            way: sum(found[key] != answer for key, answer in ours.items()) for way, found in answers.items()
        },
        "n_read_by_both_that_differ": {
            way: sum(bool(answer) and bool(found[key]) and found[key] != answer for key, answer in ours.items())
            for way, found in answers.items()
        },
    }


def _ask(engine: Engine, requests: Sequence[Request], settings: SamplingSettings) -> list[Completion]:
    made = list(engine.complete(requests, settings, 1))
    if aside := [each for each in made if not isinstance(each, Completion)]:
        raise RuntimeError(f"set aside: {aside}")
    return made  # type: ignore[return-value]


if __name__ == "__main__":
    sys.exit(main())
