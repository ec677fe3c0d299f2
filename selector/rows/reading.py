"""From a file to its rows and questions: which format it is, what is wrong with the whole of it, then row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from selector.errors import SelectorError
from selector.rows.columns import FIELDS, Columns, column_names, recognise_columns
from selector.rows.contract import Limits, QuestionRow, RejectedRow, Row
from selector.rows.delimited import read_csv_rows
from selector.rows.jsonl import read_json_rows
from selector.rows.lines import elements, lines
from selector.rows.questions import question_from_row
from selector.rows.text import excerpt

FORMATS = ("jsonl", "csv", "parquet")
_SUFFIXES = {
    ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet",
    ".pq": "parquet",
}  # fmt: skip
DEFAULT_LIMITS = Limits()
_HEAD_BYTES = 4096
_UTF8_BOM = b"\xef\xbb\xbf"
_OTHER_FILES = {
    b"\x1f\x8b": ("compressed", "It is compressed (gzip). Unpack it first."),
    b"PK\x03\x04": ("zip_file", "It is a zip or Excel file. Save the sheet as CSV, or unpack it."),
    b"ARROW1": ("arrow_file", "It is an Arrow file. Write it as Parquet."),
    b"\xff\xfe": ("utf16", "It is in UTF-16 (“Unicode” in some programs). Save it as UTF-8."),
    b"\xfe\xff": ("utf16", "It is in UTF-16 (“Unicode” in some programs). Save it as UTF-8."),
}
_ROWS_FOR_COLUMNS = 100


class UnreadableFile(SelectorError):
    """A file cannot be opened."""

    code = "unreadable_file"

    def __init__(self, *, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path} cannot be opened: {reason}.")


def read_rows(
    source: str | Path | BinaryIO,
    *,
    format: str | None = None,
    name: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    delimiter: str | None = None,
    repair: bool = False,
) -> Iterator[Row | RejectedRow]:
    """Yield a Row or a RejectedRow for every row of a file, one at a time, in memory bounded by ``limits``.

    ``format`` is jsonl (also a JSON list), csv or parquet; else the content and the suffix of ``name`` or of the path
    decide. ``delimiter`` (CSV) is sniffed. ``repair`` accepts backslashes that JSON does not know. What is wrong with
    the whole file (empty, UTF-16, compressed) is one RejectedRow of line 1. Raises UnreadableFile.
    """
    with ExitStack() as stack:
        if isinstance(source, str | Path):
            name = name or str(source)
            try:
                stream: BinaryIO = stack.enter_context(open(source, "rb"))
            except OSError as error:
                raise UnreadableFile(path=str(source), reason=error.strerror or str(error)) from error
        else:
            stream, name = source, name or getattr(source, "name", "") or ""
        yield from _rows(stream, format, str(name), limits, delimiter, repair)


def _rows(
    stream: BinaryIO, format: str | None, name: str, limits: Limits, delimiter: str | None, repair: bool
) -> Iterator[Row | RejectedRow]:
    start = stream.tell()
    head = stream.read(_HEAD_BYTES)
    stream.seek(start)
    if problem := _whole_file_problem(head):
        yield problem
        return
    if format == "parquet" or head.startswith(b"PAR1"):
        yield from _parquet_rows(stream, limits)
        return
    if head.startswith(_UTF8_BOM):
        head = head.removeprefix(_UTF8_BOM)
        stream.seek(start + len(_UTF8_BOM))
    n_rows = 0
    for row in _text_rows(stream, format or _guess_format(head, name), head, limits, delimiter, repair):
        n_rows += 1
        yield row
    if not n_rows:
        yield RejectedRow(1, "empty_file", "There is no row in the file. One question a row is wanted.")


def _text_rows(
    stream: BinaryIO, format: str, head: bytes, limits: Limits, delimiter: str | None, repair: bool
) -> Iterator[Row | RejectedRow]:
    if format == "csv":
        return read_csv_rows(lines(stream, limits.max_line_bytes), limits=limits, delimiter=delimiter)
    if format == "parquet":
        return _parquet_rows(stream, limits)
    split = elements if _is_spread_over_lines(head) else lines
    rows = read_json_rows(split(stream, limits.max_line_bytes), limits=limits, repair=repair)
    is_on_one_line = _first_line(head).startswith(b"[{") and b"\n" not in head.strip()
    return _by_item(rows) if is_on_one_line else rows


def _by_item(rows: Iterator[Row | RejectedRow]) -> Iterator[Row | RejectedRow]:
    """Number the rows of a JSON list that is written on one line by its items: the line would tell nothing."""
    for number, row in enumerate(rows, 1):
        numbered = replace(row, line=number)
        yield replace(numbered, is_item=True) if isinstance(numbered, Row) else numbered.as_item()


def _parquet_rows(stream: BinaryIO, limits: Limits) -> Iterator[Row | RejectedRow]:
    from selector.rows.parquet import read_parquet_rows  # pyarrow takes a while to load; most files are JSONL

    return read_parquet_rows(stream, limits=limits)


def _first_line(head: bytes) -> bytes:
    return head.lstrip().partition(b"\n")[0].replace(b" ", b"").strip()


def _is_spread_over_lines(head: bytes) -> bool:
    """Whether a JSON file is one list, or objects written over several lines, rather than one object a line."""
    compact = _first_line(head)
    return compact in (b"[", b"{", b"[]") or compact.startswith(b"[{")


def _guess_format(head: bytes, name: str) -> str:
    if by_suffix := _SUFFIXES.get(Path(name).suffix.lower()):
        return by_suffix
    return "jsonl" if head.lstrip()[:1] in (b"{", b"[") else "csv"


def _whole_file_problem(head: bytes) -> RejectedRow | None:
    if not head.removeprefix(_UTF8_BOM).strip():
        return RejectedRow(1, "empty_file", "The file is empty. One question a row is wanted, for instance in JSONL.")
    for magic, (code, message) in _OTHER_FILES.items():
        if head.startswith(magic):
            return RejectedRow(1, code, f"This file cannot be read. {message}", excerpt(head[:16]))
    if head.startswith(b"PAR1"):
        return None
    if head[:200].count(b"\x00") * 3 > len(head[:200]):
        code, message = _OTHER_FILES[b"\xff\xfe"]  # UTF-16 without its mark
        return RejectedRow(1, code, f"This file cannot be read. {message}", excerpt(head[:16]))
    if b"\r" in head and b"\n" not in head and head.count(b"\r") > 1:
        return RejectedRow(
            1, "line_ends", "The lines end in a carriage return alone (old Mac). Save the file with Unix line ends."
        )
    return None


@dataclass
class QuestionFile:
    """A file being read: its columns, and the questions and rejected rows as they come. Iterate once."""

    names: list[str]
    columns: Columns
    rows: Iterator[QuestionRow | RejectedRow]

    def __iter__(self) -> Iterator[QuestionRow | RejectedRow]:
        return self.rows


def read_questions(
    source: str | Path | BinaryIO,
    *,
    mapping: Mapping[str, str] | None = None,
    need_answer: bool = False,
    repair: bool = False,
    format: str | None = None,
    name: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> QuestionFile:
    """Open a file of questions: its first 100 rows say which columns there are, then every row is read as it comes.

    Arguments are those of ``read_rows``, ``recognise_columns`` and ``question_from_row``. A file in which no column
    holds questions gives one RejectedRow that says what was found and how to map it. Raises UnreadableFile and, for a
    wrong mapping, UnknownColumn.
    """
    rows = read_rows(source, format=format, name=name, limits=limits, repair=repair)
    first = list(islice(rows, _ROWS_FOR_COLUMNS))
    while first and not any(isinstance(row, Row) for row in first[-_ROWS_FOR_COLUMNS:]) and (more := next(rows, None)):
        first.append(more)
    names = list(dict.fromkeys(name for row in first if isinstance(row, Row) for name in column_names(row.data)))
    if not names:
        return QuestionFile([], Columns(), (row for row in chain(first, rows) if isinstance(row, RejectedRow)))
    columns = recognise_columns(names, mapping)
    if not columns.question:
        return QuestionFile(names, columns, iter([_no_question_column(names, first)]))
    return QuestionFile(
        names,
        columns,
        (
            question_from_row(row, columns, need_answer=need_answer, repair=repair) if isinstance(row, Row) else row
            for row in chain(first, rows)
        ),
    )


def _no_question_column(names: list[str], first: list[Row | RejectedRow]) -> RejectedRow:
    shown = ", ".join(excerpt(name, 40) for name in names[:20]) + (" …" if len(names) > 20 else "")
    line = next(row.line for row in first if isinstance(row, Row))
    return RejectedRow(
        line,
        "missing_question_column",
        f"No column holds the question. Found: {shown}. Wanted: one of {', '.join(FIELDS['question'])}. "
        "Say which column it is (on the command line: --map question=COLUMN).",
        shown,
    )
