"""TRL's GRPOTrainer: conversational prompts; every other column reaches the reward function as a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import pyarrow as pa

from labeling.exports.contract import CanonicalRow, ExportSettings
from labeling.exports.parquet import MESSAGES, PROVENANCE, columns_of, parquet_bytes

SCHEMA = pa.schema(
    [
        pa.field("prompt", MESSAGES),
        pa.field("solution", pa.string()),  # in dollars: TRL's own accuracy_reward reads nothing else as LaTeX
        pa.field("answer", pa.string()),
        pa.field("answer_kind", pa.string()),
        pa.field("uid", pa.string()),
        *PROVENANCE,
    ]
)
COLUMNS: Mapping[str, str] = columns_of(SCHEMA)
USAGE = (
    "rows = datasets.load_dataset('parquet', data_files='train.parquet', split='train'); "
    "GRPOTrainer(model=…, reward_funcs=rewards.accuracy_reward, train_dataset=rows). "
    "Leave out prompts that are too long for your model yourself: TRL no longer does."
)


def files(rows: Sequence[CanonicalRow], settings: ExportSettings) -> dict[str, bytes]:
    """Return one Parquet file for the rows."""
    table = [
        {
            "prompt": settings.messages(row),
            "solution": f"${row.answer}$",
            "answer": row.answer,
            "answer_kind": row.answer_kind,
            "uid": row.uid,
            **asdict(row.provenance),
        }
        for row in rows
    ]
    return {f"{settings.split}.parquet": parquet_bytes(table, SCHEMA)}
