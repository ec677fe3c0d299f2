"""What `assay grade` and `assay read` do."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from selector.answers.contract import KINDS
from selector.answers.grading import Grader
from selector.errors import InvalidRow


def grade_file(path: str | Path, out: TextIO) -> int:
    """Write each row of a cases file (``gold``, ``answer``, optional ``kind``) to ``out`` with its ``verdict`` added.

    A line that cannot be graded is named on standard error; where it is a JSON object it is still written, with
    ``verdict`` "undecided" and the reason as ``error``. Returns 1 when there was one, else 0; 2 without the file.
    """
    n_rows = n_bad = 0
    try:
        file = Path(path).open("rb")  # noqa: SIM115  closed below; a missing file is the only error expected here
    except OSError as error:
        print(f"{path} cannot be opened: {error.strerror}.", file=sys.stderr)
        return 2
    with file, Grader() as grader:
        for number, line in enumerate(file, 1):
            if not line.strip(b"\xef\xbb\xbf \t\r\n"):
                continue
            n_rows += 1
            row: object = None
            try:
                row = _parsed(str(path), number, line)
                gold, answer = (_text(str(path), number, row, name) for name in ("gold", "answer"))
                graded = {**row, "verdict": str(grader.compare(gold, answer, _kind(str(path), number, row)))}
            except InvalidRow as error:
                n_bad += 1
                print(error, file=sys.stderr)
                graded = {**row, "verdict": "undecided", "error": error.message} if isinstance(row, dict) else {}
            if graded:
                out.write(json.dumps(graded) + "\n")
                out.flush()
    if n_rows == 0:
        print(f"{path} has no rows.", file=sys.stderr)
    return 1 if n_bad or n_rows == 0 else 0


def read_answer(text: str, kind: str | None, out: TextIO) -> int:
    """Write what a trainer's grader reads in an answer, its kind and warnings. Returns 1 when it reads nothing."""
    if kind is not None and kind not in KINDS:
        print(f"There is no kind {kind!r}. Kinds: {', '.join(KINDS)}.", file=sys.stderr)
        return 2
    with Grader() as grader:
        reading = grader.read_as(text, kind)
    lines = [f"read as: {reading.text}" if reading.readable else f"unreadable: {reading.text}", f"kind: {reading.kind}"]
    lines += [f"warning: {warning}" for warning in reading.warnings]
    out.write("".join(_printable(line) + "\n" for line in lines))
    return 0 if reading.readable else 1


def _parsed(path: str, number: int, line: bytes) -> dict[str, object]:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        message = f"not UTF-8 at byte {error.start + 1}; save the file as UTF-8."
        raise InvalidRow(path=path, line=number, row_code="not_utf8", message=message) from error
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "nested too deep or a number too long")
        message = f"not JSON: {reason}."
        raise InvalidRow(path=path, line=number, row_code="not_json", message=message) from error
    if not isinstance(row, dict):
        raise InvalidRow(path=path, line=number, row_code="not_an_object", message="not a JSON object.")
    return row


def _text(path: str, number: int, row: Mapping[str, object], name: str) -> str:
    if name not in row:
        raise InvalidRow(path=path, line=number, row_code="missing", message=f"there is no {name!r}.")
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        message = f"{name!r} is {json.dumps(value)[:60]}; it must be text."
        raise InvalidRow(path=path, line=number, row_code="not_text", message=message)
    return str(value)


def _kind(path: str, number: int, row: Mapping[str, object]) -> str | None:
    kind = row.get("kind") or None
    if kind is not None and kind not in KINDS:
        message = f"there is no kind {kind!r}; kinds are {', '.join(KINDS)}."
        raise InvalidRow(path=path, line=number, row_code="unknown_kind", message=message)
    return None if kind is None else str(kind)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
