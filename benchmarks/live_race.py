"""A selection with a real model, raced and whole: seconds, tokens and picks side by side in one run.

    python -m benchmarks.live_race [--model assay-tiny] [--engine transformers] [--budget 8] [--alpha 0.1]

Runs `assay rank` on the demo's pool and calibration set twice, each with a state of its own, so that every answer is
made anew: all 20 + 20 answers (`--race off`), then raced (`--race exact`). The calibration is whole in both. An engine
that makes an answer from question and index alone (`transformers` does) must give the same picks; another one samples
other answers, and only the costs can be compared. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from selector.cli import main as assay

DEMO = Path(__file__).resolve().parents[1] / "labeling" / "demo"


def select(directory: Path, race: str, options: argparse.Namespace) -> dict[str, object]:
    """Run one selection; return its report, its picks and how long it took."""
    out = directory / f"{race}.jsonl"
    began = time.perf_counter()
    status = assay(
        [
            "rank", str(DEMO / "pool.jsonl"), "--calibration", str(DEMO / "calibration.jsonl"),
            "--engine", options.engine, "--model", options.model, "--budget", str(options.budget),
            "--alpha", options.alpha, "--temperature", "1.0", "--max-tokens", "80", "--race", race,
            "--state", str(directory / f"{race}.state"), "--out", str(out), "--report", str(directory / f"{race}.json"),
        ]
    )  # fmt: skip
    if status:
        raise SystemExit(status)
    report = json.loads((directory / f"{race}.json").read_text())
    picks = [json.loads(line) for line in out.read_text().splitlines()]
    return {
        "picks": [pick["id"] for pick in picks],
        "sets": [pick["prediction_set"] for pick in picks],
        "seconds": round(time.perf_counter() - began, 1),
        "seconds_by_stage": report["seconds"],
        "tokens": report["tokens"],
        "raced": {name: report[name] for name in ("tokens_used", "tokens_full", "n_undrawn") if name in report},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="assay-tiny")
    parser.add_argument("--engine", default="transformers")
    parser.add_argument("--budget", type=int, default=8)
    parser.add_argument("--alpha", default="0.1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        whole, raced = (select(Path(directory), race, options) for race in ("off", "exact"))
    same = whole["picks"] == raced["picks"] and whole["sets"] == raced["sets"]
    found = {"benchmark": "live_race", "model": options.model, "engine": options.engine, "budget": options.budget}
    print(json.dumps({**found, "same_picks": same, "whole": whole, "raced": raced}))


if __name__ == "__main__":
    main()
