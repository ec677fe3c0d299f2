"""What `assay rank` writes: picks, scores and the report."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from selector.pipeline import SelectionResult
from selector.progress import StageProgress
from selector.state import write_atomically


def write_ranking(
    result: SelectionResult,
    report: dict[str, Any],
    told_of: Mapping[str, Mapping[str, object]],
    options: Namespace,
    progress: StageProgress,
) -> None:
    """Write the files that the options name, and say what matters most. ``told_of``: more about questions, by uid."""
    if options.scores:
        rows = _score_rows(result)
        write_atomically(options.scores, (line({**row, **told_of.get(str(row["id"]), {})}) for row in rows))
    if options.report:
        write_atomically(options.report, [json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False), "\n"])
    write_atomically(options.out, (line(pick.to_json()) for pick in result.picks))
    for warning in report["warnings"]:
        progress.say(f"Warning: {warning['message']}")
    threshold = "No calibration set, so no threshold"
    if result.calibration is not None:
        q_hat = "infinite" if report["q_hat_infinite"] else f"{report['q_hat']:.4f}"
        threshold = f"Threshold {q_hat} at alpha {report['alpha']:g}"
    progress.say(f"{threshold}. Wrote {len(result.picks)} picks to {options.out}.")


def _score_rows(result: SelectionResult) -> list[dict[str, object]]:
    rows = range(len(result.scores.table))
    return [{**_score_row(result, row), **_raced_columns(result, row)} for row in rows]


def _score_row(result: SelectionResult, row: int) -> dict[str, object]:
    scores = result.scores
    return {
        "id": scores.table.uids[row],
        "cluster": int(result.labels[row]),
        "set_size": int(scores.set_size[row]),
        "acquisition_score": float(result.acquisition_scores[row]),
        "set_size_from_probes": int(scores.set_size_from_probes[row]),
        "n_distinct": int(scores.n_distinct[row]),
        "n_readable": int(scores.n_readable[row]),
        "entropy": float(scores.entropy[row]),
        "ineligible": result.ineligible[row] or None,
    }


def _raced_columns(result: SelectionResult, row: int) -> dict[str, object]:
    """Say how far a race went with a question; its set size is known only where all answers were drawn."""
    raced = result.raced
    if raced is None:
        return {}
    bounds: dict[str, object] = {
        "outcomes_drawn": int(raced.n_drawn[row]),
        "set_size_at_least": max(0, int(raced.lower[row])),
        "set_size_at_most": max(0, int(raced.upper[row])),
    }
    return bounds if raced.is_complete[row] else {"set_size": None, "acquisition_score": None, **bounds}


def line(row: object) -> str:
    """Return one line of a JSONL file."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
