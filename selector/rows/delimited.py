"""CSV into rows of texts: nothing is guessed about values, so ``NA``, ``007`` and ``1e5`` stay as they are."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from selector.rows.columns import recognise_columns
from selector.rows.contract import Limits, RejectedRow, Row
from selector.rows.jsonl import not_utf8, too_long, unstorable
from selector.rows.lines import RawRow
from selector.rows.text import excerpt, unstorable_character

DELIMITERS = (",", ";", "\t", "|")
_SNIFFED_LINES = 20


def read_csv_rows(
    raw_lines: Iterable[RawRow], *, limits: Limits, delimiter: str | None = None
) -> Iterator[Row | RejectedRow]:
    """Yield a Row or a RejectedRow for every record after the header; cells are always texts.

    The delimiter is the one among comma, semicolon, tab and bar that gives the header a question column and the first
    records one length. A record that a stray quote would glue to the next ones is rejected alone.
    """
    source = _Source(raw_lines, limits)
    delimiter = delimiter or sniff_delimiter(source.ahead(_SNIFFED_LINES))
    header: list[str] | None = None
    for line, record in _records(source, delimiter):
        if isinstance(record, RejectedRow):
            yield record
        elif header is None:
            header = [name.strip() for name in record]
            if problem := _bad_header(line, header, limits):
                yield problem
                return
        else:
            yield _read_record(line, header, record, delimiter)


def sniff_delimiter(first_lines: list[str]) -> str:
    """Return the likeliest delimiter of these lines; a comma where there is only one column."""

    def likelihood(delimiter: str) -> tuple[bool, float, int]:
        records: list[list[str]] = []
        with suppress(csv.Error):  # the records before it are enough to guess by; reading will name it
            records.extend(record for record in csv.reader(first_lines, delimiter=delimiter) if record)
        if not records:
            return False, 0.0, 0
        header = records[0]
        alike = sum(len(record) == len(header) for record in records) / len(records)
        return len(header) > 1 and bool(recognise_columns(header).question), alike * (len(header) > 1), len(header)

    return max(DELIMITERS, key=likelihood)


class _Source:
    """Physical lines as texts, with a way back: what csv took for one record can be handed out again."""

    def __init__(self, raw_lines: Iterable[RawRow], limits: Limits) -> None:
        self.raw_lines, self.limits = iter(raw_lines), limits
        self.waiting: deque[RawRow] = deque()
        self.taken: list[RawRow] = []
        self.taken_bytes = 0

    def ahead(self, n: int) -> list[str]:
        self.waiting.extend(islice(self.raw_lines, n - len(self.waiting)))
        return [_text(raw) for raw in self.waiting]

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        raw = self.waiting.popleft() if self.waiting else next(self.raw_lines)
        self.taken.append(raw)
        self.taken_bytes += raw.size
        if raw.too_long or self.taken_bytes > self.limits.max_line_bytes:
            raise csv.Error(f"no end within {self.limits.max_line_bytes:,} bytes")
        return _text(raw) + "\n"

    def take(self) -> list[RawRow]:
        """Return the lines of the record just read."""
        taken, self.taken, self.taken_bytes = self.taken, [], 0
        return taken

    def hand_back(self) -> RawRow:
        """Return the first line of the record that failed, and offer its other lines again."""
        first, *others = self.take()
        self.waiting.extendleft(reversed(others))
        return first


def _text(raw: RawRow) -> str:
    return raw.content.decode("utf-8", errors="surrogateescape")


def _records(source: _Source, delimiter: str) -> Iterator[tuple[int, list[str] | RejectedRow]]:
    csv.field_size_limit(max(csv.field_size_limit(), source.limits.max_line_bytes))
    while True:
        reader = csv.reader(source, delimiter=delimiter, strict=True)
        try:
            for record in reader:
                taken = source.take()
                if any(cell.strip() for cell in record):
                    content = b"\n".join(raw.content for raw in taken)
                    yield taken[0].line, _not_utf8(taken[0].line, content) or record
        except csv.Error as error:
            first = source.hand_back()
            yield first.line, too_long(first, source.limits) if first.too_long else _bad_quotes(first, error)
        else:
            return


def _not_utf8(line: int, content: bytes) -> RejectedRow | None:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return not_utf8(line, content, error)
    return None


def _bad_quotes(raw: RawRow, error: csv.Error) -> RejectedRow:
    if "new-line character" in str(error):
        return RejectedRow(
            raw.line,
            "carriage_return",
            f"A carriage return stands in this record outside quotes: “{excerpt(_text(raw), 60)}”. Quote the cell, or "
            "save the file with Unix line ends.",
            excerpt(_text(raw), 200),
        )
    return RejectedRow(
        raw.line,
        "bad_quotes",
        f"The quotation marks of this record do not pair up ({error}): “{excerpt(_text(raw), 60)}”. A cell with a "
        'delimiter, a quotation mark or a line break is written in quotes, and a quote inside it twice: "say ""so""".',
        excerpt(_text(raw), 200),
    )


def _bad_header(line: int, header: list[str], limits: Limits) -> RejectedRow | None:
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        names = ", ".join(f"“{excerpt(name, 40)}”" for name in repeated[:5])
        return RejectedRow(
            line, "duplicate_column", f"The header names {names} more than once. Give each column its own name.", names
        )
    if len(header) > limits.max_columns:
        return RejectedRow(
            line,
            "too_many_columns",
            f"The header has {len(header):,} columns; at most {limits.max_columns} are read. Leave some out.",
        )
    return None


def _read_record(line: int, header: list[str], record: list[str], delimiter: str) -> Row | RejectedRow:
    if len(record) != len(header):
        shown = {"\t": "tab"}.get(delimiter, delimiter)
        return RejectedRow(
            line,
            "wrong_number_of_cells",
            f"This record has {len(record)} cells and the header {len(header)} (delimiter: {shown}): "
            f"“{excerpt(delimiter.join(record), 60)}”. Quote a cell that contains the delimiter or a line break.",
            excerpt(delimiter.join(record), 200),
        )
    data: dict[str, object] = dict(zip(header, record, strict=True))
    if found := unstorable_character(data):
        return unstorable(line, *found)
    return Row(line, data)
