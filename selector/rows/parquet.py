"""Parquet into rows, a few at a time, after its declared sizes have been checked."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from selector.rows.contract import Limits, RejectedRow, Row
from selector.rows.jsonl import too_long, unstorable
from selector.rows.lines import RawRow
from selector.rows.text import depth, excerpt, unstorable_character

_BATCH_BYTES = 1 << 27  # rows at once x largest row: bounds what a dictionary-encoded column can unfold to
_ROWS_AT_ONCE = 128


def read_parquet_rows(stream: BinaryIO, *, limits: Limits) -> Iterator[Row | RejectedRow]:
    """Yield a Row or a RejectedRow for every row; nested columns come as lists and dicts, null as None.

    A file that declares more bytes than the limits is refused before anything of it is unpacked.
    """
    try:
        file = pq.ParquetFile(stream, buffer_size=1 << 20)
    except (pa.ArrowException, OSError, ValueError) as error:
        message = f"Not a readable Parquet file: {excerpt(str(error), 200)}. Write it again, or as JSONL or CSV."
        yield RejectedRow(1, "parquet_unreadable", message)
        return
    if problem := _too_large(file, limits):
        yield problem
        return
    start = 0
    for group in range(file.num_row_groups):
        yield from _row_group(file, group, start, limits)
        start += file.metadata.row_group(group).num_rows


def _row_group(file: pq.ParquetFile, group: int, start: int, limits: Limits) -> Iterator[Row | RejectedRow]:
    rows_at_once = max(1, min(_ROWS_AT_ONCE, _BATCH_BYTES // limits.max_line_bytes))
    number, end = start, start + file.metadata.row_group(group).num_rows
    try:
        for batch in file.iter_batches(batch_size=rows_at_once, row_groups=[group]):
            columns = list(zip(batch.schema.names, batch.columns, strict=True))
            for index in range(batch.num_rows):
                number += 1
                yield _read_row(number, index, columns, limits)
    except (pa.ArrowException, OSError) as error:
        message = f"Rows {number + 1:,} to {end:,} cannot be read: {excerpt(str(error), 200)}. Write the file anew."
        yield RejectedRow(number + 1, "parquet_unreadable", message)


def _too_large(file: pq.ParquetFile, limits: Limits) -> RejectedRow | None:
    metadata = file.metadata
    groups = [metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)]
    if sum(groups) > limits.max_uncompressed_bytes or max(groups, default=0) > limits.max_row_group_bytes:
        return RejectedRow(
            1,
            "parquet_too_large",
            f"The file declares {sum(groups):,} bytes unpacked, {max(groups):,} in its largest row group; at most "
            f"{limits.max_uncompressed_bytes:,} and {limits.max_row_group_bytes:,} are read. Split it.",
        )
    if metadata.num_columns > limits.max_columns:
        return RejectedRow(
            1,
            "too_many_columns",
            f"The file has {metadata.num_columns:,} columns; at most {limits.max_columns} are read. Leave some out.",
        )
    names = file.schema_arrow.names
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        return RejectedRow(1, "duplicate_column", f"The column “{excerpt(repeated[0])}” appears more than once.")
    return None


def _read_row(number: int, index: int, columns: list[tuple[str, pa.Array]], limits: Limits) -> Row | RejectedRow:
    data: dict[str, object] = {}
    size = 0
    for name, column in columns:
        try:
            value = _plain(column[index].as_py())
        except UnicodeDecodeError as error:
            message = f"Column “{excerpt(name)}” holds text that is not UTF-8 ({error.reason}). Write it as UTF-8."
            return RejectedRow(number, "not_utf8", message)
        if value is not None:
            data[name] = value
        size += _size(value)
        if size > limits.max_line_bytes:
            return too_long(RawRow(number, b"", size, True), limits)
    if depth(data) > limits.max_depth:
        return RejectedRow(number, "too_deep", f"Columns are nested more than {limits.max_depth} deep. Flatten them.")
    if found := unstorable_character(data):
        return unstorable(number, *found)
    return Row(number, data)


def _plain(value: object) -> object:
    """Return the value as JSON could hold it; a missing number (NaN) is missing."""
    match value:
        case float():
            return None if math.isnan(value) else value if math.isfinite(value) else str(value)
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case bytes():
            return _decoded(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal() | datetime.timedelta():
            return str(value)
        case _:
            return value


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:  # an image or the like: no text, and no reason to refuse the question beside it
        return None


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(name) + _size(item) for name, item in value.items())
    if isinstance(value, list):
        return sum(_size(item) for item in value)
    return 8
