"""Parquet files that come out the same every time: explicit types, fixed row groups, no time inside."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS_PER_GROUP = 1000
MESSAGES = pa.list_(pa.struct([pa.field("role", pa.string()), pa.field("content", pa.string())]))
PROVENANCE = (  # the fields of contract.Provenance
    pa.field("set_size", pa.int64()),
    pa.field("pass_rate", pa.float64()),
    pa.field("n_annotations", pa.int64()),
    pa.field("adjudicated", pa.bool_()),
    pa.field("blindness", pa.string()),
)


def parquet_bytes(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> bytes:
    """Return the file. Raises ArrowInvalid or ArrowTypeError for a value that is not of its column's type."""
    written = io.BytesIO()
    table = pa.Table.from_pylist(list(rows), schema=schema)
    pq.write_table(table, written, row_group_size=ROWS_PER_GROUP, compression="zstd", version="2.6")
    return written.getvalue()


def columns_of(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}
