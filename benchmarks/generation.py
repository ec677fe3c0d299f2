"""Throughput of the engines against a plain batched `generate` loop: same model, same work, side by side in one run.

The work is what a selection run asks of a model: for each question one greedy trajectory, probes at its cuts, and
sampled outcomes. Prints one JSON line; a ratio above 1 means faster than the plain loop.

    python -m benchmarks.generation [--model assay-tiny|smollm2|DIR] [--questions 40] [--engines plain,openai]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings, open_engine
from selector.generation.models import resolve_model
from selector.generation.prompts import TokenLayout, trajectory_length
from selector.tiny.questions import draw_question
from selector.volatility import STAGES, cut_positions
from tests.engines import vllm_server
from tests.smollm2 import smollm2_dir

BATCH_SIZE = 64
Answer = Callable[[Sequence[Request]], list[Completion]]


def plain_loop(path: str, instruction: str, settings: SamplingSettings) -> Answer:
    """Return what people write first: batches in the order they come, padded on the left, given to `generate`."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    layout = TokenLayout(tokenizer, instruction)

    def answer(requests: Sequence[Request]) -> list[Completion]:
        made = []
        for start in range(0, len(requests), BATCH_SIZE):
            batch = requests[start : start + BATCH_SIZE]
            rows = [layout.prompt_ids(request.prompt) for request in batch]
            kind = batch[0].kind
            options: dict[str, Any] = {"max_new_tokens": settings.max_tokens, "do_sample": False}
            if kind is CompletionKind.OUTCOME:
                options |= {"do_sample": True, "temperature": settings.temperature, "top_p": settings.top_p, "top_k": 0}
            if kind is CompletionKind.PROBE:
                pairs = zip(batch, rows, strict=True)
                rows = [layout.probe_ids(row, request.trajectory_ids, request.index) for request, row in pairs]
                options |= {
                    "max_new_tokens": settings.probe_max_tokens,
                    "stop_strings": ["\n"],
                    "tokenizer": tokenizer,
                }
            padded = tokenizer.pad({"input_ids": rows}, return_tensors="pt")
            with torch.inference_mode():
                written = model.generate(**padded, pad_token_id=tokenizer.pad_token_id, **options)
            for request, row in zip(batch, written[:, padded["input_ids"].shape[1] :].tolist(), strict=True):
                ids = row[: row.index(tokenizer.eos_token_id) + 1] if tokenizer.eos_token_id in row else row
                made.append(
                    Completion(
                        request.prompt.uid,
                        kind,
                        request.index,
                        text=tokenizer.decode(ids, skip_special_tokens=True),
                        n_tokens=sum(i != tokenizer.pad_token_id for i in ids),
                        n_prompt_tokens=0,
                        finish_reason="stop",
                        token_ids=layout.without_end(ids),
                    )
                )
        return made

    return answer


@contextmanager
def opened(name: str, path: str, instruction: str, settings: SamplingSettings) -> Iterator[Answer]:
    """Open one way of generating; yield what answers requests of one kind."""
    if name == "plain":
        yield plain_loop(path, instruction, settings)
    elif name == "transformers":
        engine = open_engine(name, model=path, instruction=instruction)
        yield lambda requests: list(engine.complete(requests, settings, 1))  # type: ignore[arg-type]
        engine.close()
    else:
        with vllm_server(Path(path), name="served") as url:
            engine = open_engine("openai", model="served", base_url=url, instruction=instruction)
            yield lambda requests: list(engine.complete(requests, settings, 1))  # type: ignore[arg-type]
            engine.close()


def measure(answer: Answer, prompts: Sequence[Prompt], n_outcomes: int, n_probes: int) -> dict[str, Any]:
    """Do the work once, after a small warm-up; return seconds, tokens and tokens per second, per stage and in all."""
    answer([Request(prompt, CompletionKind.TRAJECTORY, 0) for prompt in prompts[:2]])
    seconds, tokens, n_completions = {}, {}, 0
    trajectories: dict[str, Completion] = {}
    for stage, kind in STAGES.items():
        if kind is CompletionKind.PROBE:
            requests = [
                Request(prompt, kind, cut, chain.token_ids, chain.text)
                for prompt in prompts
                for chain in [trajectories[prompt.uid]]
                for cut in sorted(set(cut_positions(trajectory_length(chain), n_probes)))
            ]
        else:
            n_each = n_outcomes if kind is CompletionKind.OUTCOME else 1
            requests = [Request(prompt, kind, index) for prompt in prompts for index in range(n_each)]
        started = time.perf_counter()
        made = answer(requests)
        seconds[stage] = round(time.perf_counter() - started, 3)
        tokens[stage] = sum(completion.n_tokens for completion in made)
        n_completions += len(made)
        if kind is CompletionKind.TRAJECTORY:
            trajectories = {completion.uid: completion for completion in made}
    total = sum(seconds.values())
    return {
        "seconds": {**seconds, "all": round(total, 3)},
        "tokens": {**tokens, "all": sum(tokens.values())},
        "tokens_per_second": round(sum(tokens.values()) / total, 1),
        "completions_per_second": round(n_completions / total, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="assay-tiny", help="assay-tiny, smollm2 or a directory")
    parser.add_argument("--engines", default="plain,transformers,openai")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--outcomes", type=int, default=20)
    parser.add_argument("--probes", type=int, default=20)
    parser.add_argument("--max-tokens", type=int, default=80)
    parser.add_argument("--probe-max-tokens", type=int, default=16)
    options = parser.parse_args()

    path, instruction = resolve_model(str(smollm2_dir()) if options.model == "smollm2" else options.model)
    settings = SamplingSettings(
        temperature=1.0, max_tokens=options.max_tokens, probe_max_tokens=options.probe_max_tokens
    )
    rng = random.Random(1)
    prompts = [Prompt(uid=f"q{i}", text=draw_question(rng).text) for i in range(options.questions)]
    torch.manual_seed(1)

    results = {}
    for name in options.engines.split(","):
        with opened(name, path, instruction, settings) as answer:
            results[name] = measure(answer, prompts, options.outcomes, options.probes)
        print(f"{name}: {results[name]}", file=sys.stderr)
    report: dict[str, Any] = {"benchmark": "generation", **vars(options), "threads": torch.get_num_threads(), **results}
    if "plain" in results:
        report["ratio_to_plain"] = {
            name: {
                "tokens_per_second": round(result["tokens_per_second"] / results["plain"]["tokens_per_second"], 2),
                "completions_per_second": round(
                    result["completions_per_second"] / results["plain"]["completions_per_second"], 2
                ),
            }
            for name, result in results.items()
            if name != "plain"
        }
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
