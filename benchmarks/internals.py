"""Reading a model's internals: equal to a plain forward pass, in bounded memory.

For assay-tiny and SmolLM2: the greedy chains of 40 questions are read, `shift` and `pivot_trace` rank them, and what
was read is compared with a plain forward pass that keeps every hidden state and every attention map (there in several
blocks of rows, as long chains have). Then one chain of 2,000 tokens. Each part runs in a process of its own, so that
its peak memory is its own; one JSON line each.

    python -m benchmarks.internals [--questions 40] [--chain 2000] [--parts tiny,smollm2,chain]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from selector.config import SelectionConfig
from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings
from selector.generation.transformers_local import TransformersEngine
from selector.internals import JsonlInternalsStore, attention
from selector.internals.attention import AttentionReading, reading_attention
from selector.internals.pivots import window_for
from selector.internals.reading import ModelReader, read_internals
from selector.pipeline import run_selection
from selector.tiny.questions import draw_question
from selector.votes import QuestionVotes
from tests.smollm2 import smollm2_dir

ROOT = Path(__file__).resolve().parents[1]
WORD_PROBLEMS = ROOT.parent / "shared" / "data" / "svamp_400.jsonl"
STRATEGIES = ("shift", "pivot_trace")


class KeptMaps(AttentionReading):
    """Also keeps every map, so that it can be compared."""

    def __init__(self, n_tokens: int) -> None:
        super().__init__(0, n_tokens, window_for(n_tokens))
        self.maps: list[torch.Tensor] = []

    def begin_layer(self, n_heads: int, device: torch.device) -> None:
        super().begin_layer(n_heads, device)
        n_tokens = self._far[-1].shape[1]
        self.maps.append(torch.zeros(n_heads, n_tokens, n_tokens))

    def add(self, probabilities: torch.Tensor, row: int) -> None:
        super().add(probabilities, row)
        _, n_rows, n_keys = probabilities.shape
        self.maps[-1][:, row : row + n_rows, :n_keys] = probabilities


def peak_mib() -> float:
    """Return the largest resident size this process ever had."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def questions(model: str, n: int) -> list[Prompt]:
    """Return word problems from a file where it is there, else of the kind assay-tiny was trained on."""
    if model == "smollm2" and WORD_PROBLEMS.exists():
        lines = WORD_PROBLEMS.read_text(encoding="utf-8").splitlines()[:n]
        return [Prompt(f"q{i}", json.loads(line)["question"]) for i, line in enumerate(lines)]
    rng = random.Random(1)
    return [Prompt(f"q{i}", draw_question(rng).text) for i in range(n)]


def differences(
    engine: TransformersEngine, prompts: Sequence[Prompt], chains: dict[str, Completion]
) -> dict[str, float]:
    """Return the largest differences from a plain pass: of what is kept, of every state, and of every map."""
    model, reader = engine.model, ModelReader(engine.model, engine.layout)
    worst: Counter[str] = Counter()

    def note(name: str, found: torch.Tensor, expected: torch.Tensor, *, relative: bool = False) -> None:
        gaps = (found - expected).abs() / (expected.abs().clamp(min=1) if relative else 1)
        worst[name] = max(worst[name], float(gaps.max()))  # type: ignore[assignment]

    for prompt in prompts:
        prompt_ids, chain = engine.layout.prompt_ids(prompt), chains[prompt.uid].token_ids
        ids, n_prompt = torch.tensor([[*prompt_ids, *chain]]), len(prompt_ids)
        attention.BLOCK_ELEMENTS = 10 * ids.shape[1] * model.config.get_text_config().num_attention_heads
        found, kept = reader.pass_over(prompt_ids, chain), KeptMaps(ids.shape[1])
        options: dict[str, Any] = {"input_ids": ids, "use_cache": False, "output_hidden_states": True}
        with torch.inference_mode():
            with reading_attention(model, kept):
                streamed = model(**options)
            model.set_attn_implementation("eager")
            plain = model(**options, output_attentions=True)
            model.set_attn_implementation("sdpa")
        states = torch.stack(plain.hidden_states[1:])[:, 0]
        if chain:
            note("hidden_states", found.start, states[:, n_prompt].mean(0))
            note("hidden_states", found.end, states[:, -1].mean(0))
        note("hidden_states", found.prompt_hidden, states[-1, n_prompt - 1])
        note("every_hidden_state_relative", torch.stack(streamed.hidden_states[1:])[:, 0], states, relative=True)
        for layer, expected in zip(kept.maps, plain.attentions, strict=True):
            note("attention_maps", layer, expected[0])
        note("first_probabilities", found.first_probabilities, plain.logits[0, n_prompt - 1].softmax(-1))
    return {name: float(f"{value:.2e}") for name, value in worst.items()}


def measure_questions(name: str, n_questions: int) -> dict[str, Any]:
    """Generate, read, rank and compare."""
    engine = TransformersEngine(str(smollm2_dir()) if name == "smollm2" else "assay-tiny")
    prompts = questions(name, n_questions)
    settings = SamplingSettings(max_tokens=120)
    started = time.perf_counter()
    requests = [Request(prompt, CompletionKind.TRAJECTORY, 0) for prompt in prompts]
    made = engine.complete(requests, settings, 0)
    chains = {each.uid: each for each in made if isinstance(each, Completion)}
    generated = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        store = JsonlInternalsStore(Path(folder) / "internals.jsonl")
        internals = read_internals(engine, prompts, chains, fingerprint=engine.fingerprint(settings), store=store)
    read = time.perf_counter()
    peak = peak_mib()
    votes = [QuestionVotes(prompt.uid, (), (), text=prompt.text) for prompt in prompts]
    picks = {}
    for strategy in STRATEGIES:
        config = SelectionConfig.preset(budget=8, strategy=strategy)
        picks[strategy] = [pick.uid for pick in run_selection(votes, [], config=config, internals=internals).picks]
    return {
        "model": name,
        "questions": len(prompts),
        "chain_tokens": int(internals.n_response_tokens.sum()),
        "largest_difference_from_a_plain_pass": differences(engine, prompts, chains),
        "peak_memory_mib": peak,
        "seconds": {"chains": round(generated - started, 2), "internals": round(read - generated, 2)},
        "pivots": {str(n): count for n, count in sorted(Counter(internals.n_pivots.tolist()).items())},
        "picks": picks,
    }


def measure_chain(n_tokens: int) -> dict[str, Any]:
    """Read one long chain (a text repeated up to the length: what it says does not matter here)."""
    engine = TransformersEngine(str(smollm2_dir()))
    prompt = questions("smollm2", 1)[0]
    words = engine.layout.tokenizer.encode("First we add the apples, and then we take half of what is left. ")
    chain = tuple((words * n_tokens)[:n_tokens])
    loaded, started = peak_mib(), time.perf_counter()
    completion = Completion(prompt.uid, CompletionKind.TRAJECTORY, 0, "text", n_tokens, 0, "length", chain)
    ModelReader(engine.model, engine.layout).read(prompt, completion, "benchmark")
    return {
        "model": "smollm2",
        "chain_tokens": n_tokens,
        "peak_memory_mib": peak_mib(),
        "peak_memory_before_mib": loaded,
        "seconds": {"internals": round(time.perf_counter() - started, 2)},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--chain", type=int, default=2000, help="tokens")
    parser.add_argument("--parts", default="tiny,smollm2,chain")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if len(parts) > 1:
        for part in parts:
            command = [sys.executable, "-m", "benchmarks.internals", "--parts", part]
            command += ["--questions", str(options.questions), "--chain", str(options.chain)]
            subprocess.run(command, check=True, cwd=ROOT)
        return 0
    found = measure_chain(options.chain) if parts == ["chain"] else measure_questions(parts[0], options.questions)
    print(json.dumps({"benchmark": "internals", "threads": torch.get_num_threads(), **found}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
