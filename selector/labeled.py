"""Which questions already have labels: ids, one a line, or the picks of an earlier round."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from selector.errors import InvalidRow, UnusableFile


def read_labeled(paths: Iterable[str | Path]) -> list[str]:
    """Read ids from files, each once, in their order.

    A line is an id, or a JSON object with ``id`` (or ``uid``) such as a line of a picks file; blank lines count for
    nothing. Raises UnusableFile, naming every line that is neither.
    """
    uids: dict[str, None] = {}
    rejected: list[InvalidRow] = []
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"The file is not UTF-8 text ({error.reason})."
            raise UnusableFile([InvalidRow(path=str(path), line=1, row_code="not_utf8", message=message)]) from error
        for number, line in enumerate(text.split("\n"), 1):
            try:
                if uid := _uid_of(line.strip()):
                    uids[uid] = None
            except ValueError as error:
                row = InvalidRow(path=str(path), line=number, row_code="invalid_id", message=str(error))
                rejected.append(row)
    if rejected:
        raise UnusableFile(rejected)
    return list(uids)


def _uid_of(line: str) -> str:
    if not line.startswith("{"):
        return line
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"The line is not whole JSON ({error}); an id or an object with id is wanted.") from error
    uid = row.get("id", row.get("uid"))
    if isinstance(uid, bool) or not isinstance(uid, str | int) or uid == "":
        raise ValueError(f"id is {json.dumps(uid)}; a text is wanted.")
    return str(uid)
