"""What `assay grade` and `assay read` do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TextIO

from selector.answers.grading import Grader


def grade_file(path: str | Path, out: TextIO) -> int:
    """Write each row of a cases file (``gold``, ``answer``, optional ``kind``) to ``out`` with its ``verdict`` added.

    A row that cannot be graded is named by line on standard error. Returns 1 when there was one, else 0.
    """
    n_bad = 0
    with Grader() as grader, Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                verdict = grader.compare(row["gold"], row["answer"], row.get("kind"))
            except (ValueError, KeyError, AttributeError, TypeError) as error:
                n_bad += 1
                print(f"{path}, line {number}: {error}", file=sys.stderr)
                continue
            out.write(json.dumps({**row, "verdict": str(verdict)}, ensure_ascii=False) + "\n")
    return 1 if n_bad else 0


def read_answer(text: str, kind: str | None, out: TextIO) -> int:
    """Write what a trainer's grader would read in an answer. Returns 1 when it would read nothing."""
    with Grader() as grader:
        reading = grader.read_as(text, kind)
    out.write(f"read as: {reading.text}\nkind: {reading.kind}\n")
    for warning in reading.warnings:
        out.write(f"warning: {warning}\n")
    return 0 if reading.readable else 1
