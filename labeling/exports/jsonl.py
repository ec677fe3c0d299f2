"""JSONL: the canonical rows, for any trainer and any script. UTF-8 without a byte order mark, one row a line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from labeling.exports.contract import CanonicalRow, ExportSettings

COLUMNS: Mapping[str, str] = {
    "uid": "string",
    "question": "string",
    "prompt": "string (question, choices and instruction as the model is asked)",
    "answer": "string",
    "answer_kind": "string",
    "choices": "list of strings",
    "metadata": "object",
    "provenance": "object: set_size, pass_rate, n_annotations, adjudicated, blindness",
}
USAGE = "One JSON object a line; rewards.py grades a completion against answer."
LINE_BREAKS = re.compile("[\u0085\u2028\u2029]")  # which some readers take for the end of a line


def files(rows: Sequence[CanonicalRow], settings: ExportSettings) -> dict[str, bytes]:
    """Return one JSONL file for the rows."""
    lines = (json.dumps({**row.to_json(), "prompt": settings.prompt(row)}, ensure_ascii=False) for row in rows)
    escaped = (LINE_BREAKS.sub(lambda match: f"\\u{ord(match.group()):04x}", line) for line in lines)
    return {f"{settings.split}.jsonl": "".join(line + "\n" for line in escaped).encode()}
