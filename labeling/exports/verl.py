"""verl: its five columns, the gold bare, and a data_source of our own that only the shipped reward function serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import pyarrow as pa

from labeling.exports.contract import CanonicalRow, ExportSettings
from labeling.exports.parquet import MESSAGES, PROVENANCE, columns_of, parquet_bytes

SCHEMA = pa.schema(
    [
        pa.field("data_source", pa.string()),
        pa.field("prompt", MESSAGES),
        pa.field("ability", pa.string()),
        pa.field("reward_model", pa.struct([pa.field("style", pa.string()), pa.field("ground_truth", pa.string())])),
        pa.field(
            "extra_info",
            pa.struct(
                [
                    pa.field("split", pa.string()),
                    pa.field("index", pa.int64()),
                    pa.field("uid", pa.string()),
                    pa.field("answer_kind", pa.string()),
                    *PROVENANCE,
                ]
            ),
        ),
    ]
)
COLUMNS: Mapping[str, str] = columns_of(SCHEMA)
USAGE = (
    "data.train_files=train.parquet data.filter_overlong_prompts=True "
    "reward.custom_reward_function.path=rewards.py reward.custom_reward_function.name=compute_score"
)


def files(rows: Sequence[CanonicalRow], settings: ExportSettings) -> dict[str, bytes]:
    """Return one Parquet file for the rows; extra_info.index is the row's position."""
    table = [
        {
            "data_source": settings.data_source,
            "prompt": settings.messages(row),
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": row.answer},
            "extra_info": {
                "split": settings.split,
                "index": index,
                "uid": row.uid,
                "answer_kind": row.answer_kind,
            }
            | asdict(row.provenance),
        }
        for index, row in enumerate(rows)
    ]
    return {f"{settings.split}.parquet": parquet_bytes(table, SCHEMA)}
