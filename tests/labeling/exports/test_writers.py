"""The files of an export, without database or engine."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest

from labeling.exports import (
    WRITERS,
    CanonicalRow,
    ExportRefused,
    ExportSettings,
    Manifest,
    Provenance,
    write_export,
)
from selector import rewards

FORMATS = tuple(WRITERS)
HOSTILE_TEXTS = (
    "0", "007", "NA", "null", "None", "2024-01-02", "1e5", "12345678901234567890", "True", "\\frac{1}{2}", '"', "'",
    "\\", "a\nb", "a\r\nb", "<image>", "{x}", "{{item.x}}", "{% x %}", "🙂", "שלום", "\u2028", "\u0085", "x" * 50_000,
)  # fmt: skip


class AllowAll:
    """Checks that have nothing against any gold: the writers alone are under test."""

    def check_golds(self, golds: Sequence[str], kinds: Sequence[str]) -> Mapping[int, str]:
        return {}

    def agree(self, gold: str, other: str, kind: str) -> bool:
        return gold.strip() == other.strip()


class RewardFile(AllowAll):
    """The real checks, of the reward file."""

    def check_golds(self, golds: Sequence[str], kinds: Sequence[str]) -> Mapping[int, str]:
        return rewards.check_golds(golds, kinds)


def export(
    rows: Sequence[CanonicalRow], directory: Path, format: str, checks: AllowAll | None = None, **settings: str
) -> Manifest:
    return write_export(
        rows,
        format=format,
        out_dir=directory,
        settings=ExportSettings(**settings),
        checks=checks or AllowAll(),
        rewards_source=Path(rewards.__file__).read_text(encoding="utf-8"),
        versions={"assay": "0"},
        provenance={"pool": "Algebra"},
    )


def read_back(directory: Path, format: str) -> list[dict[str, Any]]:
    """Return uid, prompt and bare gold of every row, as a trainer would come by them."""
    if format == "jsonl":
        lines = (directory / "train.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return [{"uid": row["uid"], "prompt": row["prompt"], "gold": row["answer"]} for row in rows]
    rows = pq.read_table(directory / "train.parquet").to_pylist()
    if format == "trl":
        assert all(row["solution"] == f"${row['answer']}$" for row in rows)
        return [{"uid": row["uid"], "prompt": row["prompt"][0]["content"], "gold": row["answer"]} for row in rows]
    return [
        {
            "uid": row["extra_info"]["uid"],
            "prompt": row["prompt"][0]["content"],
            "gold": row["reward_model"]["ground_truth"],
        }
        for row in rows
    ]


def some_rows(n: int = 4) -> list[CanonicalRow]:
    return [CanonicalRow(uid=f"q{i}", question=f"What is {i}/7?", answer=f"\\frac{{{i}}}{{7}}") for i in range(n)]


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_texts_come_back_as_they_went(format: str, tmp_path: Path) -> None:
    rows = [
        CanonicalRow(uid=f"u{i}-{text[:9]}", question=f"{i} {text}", answer=text, choices=(text, "b"))
        for i, text in enumerate(HOSTILE_TEXTS)
    ]

    manifest = export(rows, tmp_path, format, instruction="")

    found = {row["uid"]: row for row in read_back(tmp_path, format)}
    assert len(found) == manifest.n_rows == len(HOSTILE_TEXTS)
    for row in rows:
        wanted = {"uid": row.uid, "prompt": f"{row.question}\nA. {row.answer}\nB. b", "gold": row.answer}
        assert found[row.uid] == wanted
    assert any("<image>" in warning for warning in manifest.warnings)


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_rows_in_any_order_give_the_same_bytes(format: str, tmp_path: Path) -> None:
    rows = some_rows(50)
    shuffled = random.Random(1).sample(rows, len(rows))

    first = export(rows, tmp_path / "a", format)
    second = export(shuffled, tmp_path / "b", format)
    again = export(rows, tmp_path / "a", format)

    assert first == second == again
    for name in ("manifest.json", *(file["name"] for file in first.files)):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert [row["uid"] for row in read_back(tmp_path / "a", format)] == sorted(row.uid for row in rows)


@pytest.mark.parametrize("format", FORMATS)
def test_the_manifest_tells_what_the_files_are(format: str, tmp_path: Path) -> None:
    manifest = export(some_rows(), tmp_path, format)

    written = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert written["n_rows"] == 4
    assert written["settings"]["instruction"].endswith("\\boxed{}.")
    assert written["columns"] == dict(WRITERS[format].columns)
    assert written["provenance"] == {"pool": "Algebra"}
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", *(file["name"] for file in written["files"])}
    for file in written["files"]:
        content = (tmp_path / file["name"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert manifest.sha256 == hashlib.sha256((tmp_path / "manifest.json").read_bytes()).hexdigest()


def test_the_instruction_is_part_of_the_prompt(tmp_path: Path) -> None:
    export(some_rows(1), tmp_path, "trl", instruction="Box it.")

    assert read_back(tmp_path, "trl")[0]["prompt"] == "What is 0/7?\n\nBox it."


def test_columns_for_verl_have_verls_names_and_types(tmp_path: Path) -> None:
    export([replace(some_rows(2)[1], provenance=Provenance(3, 0.25, 2, True)), some_rows(1)[0]], tmp_path, "verl")

    rows = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "train.parquet"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert rows.column_names == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    assert rows[0]["reward_model"] == {"style": "rule", "ground_truth": "\\frac{0}{7}"}
    assert rows[1]["prompt"][0]["role"] == "user"
    assert rows[1]["data_source"] == "assay"
    assert rows[1]["extra_info"] == {
        "split": "train",
        "index": 1,
        "uid": "q1",
        "answer_kind": "",
        "set_size": 3,
        "pass_rate": 0.25,
        "n_annotations": 2,
        "adjudicated": True,
        "blindness": "",
    }
    assert "null" not in str(pq.read_schema(tmp_path / "train.parquet").field("extra_info").type)


@pytest.mark.parametrize("format", ["trl", "verl"])
def test_a_gold_earns_its_reward_from_the_file_beside_the_data(format: str, tmp_path: Path) -> None:
    export(some_rows(), tmp_path, format, RewardFile())
    spec = importlib.util.spec_from_file_location("rewards_of_export", tmp_path / "rewards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    for row in pq.read_table(tmp_path / "train.parquet").to_pylist():
        if format == "trl":
            right = [[{"role": "assistant", "content": f"\\boxed{{{row['answer']}}}"}]]
            wrong = [[{"role": "assistant", "content": "\\boxed{8}"}]]
            columns = {name: [value] for name, value in row.items()}
            scores = [module.accuracy_reward(completions=each, **columns) for each in (right, wrong)]
            assert scores == [[1.0], [0.0]]
        else:
            gold, extra = row["reward_model"]["ground_truth"], row["extra_info"]
            assert module.compute_score(row["data_source"], f"\\boxed{{{gold}}}", gold, extra) == 1.0
            assert module.compute_score(row["data_source"], "\\boxed{8}", gold, extra) == 0.0


def test_trls_own_accuracy_reward_reads_the_solutions(tmp_path: Path) -> None:
    from trl.rewards import accuracy_reward

    export(some_rows(), tmp_path, "trl")
    rows = pq.read_table(tmp_path / "train.parquet").to_pylist()

    completions = [[{"role": "assistant", "content": f"\\boxed{{{row['answer']}}}"}] for row in rows]
    assert accuracy_reward(completions, solution=[row["solution"] for row in rows]) == [1.0] * len(rows)


def test_a_gold_that_does_not_earn_its_own_reward_refuses_the_export(tmp_path: Path) -> None:
    rows = [*some_rows(2), CanonicalRow("bad", "What?", "{1"), CanonicalRow("worse", "Why?", "")]

    with pytest.raises(ExportRefused) as refusal:
        export(rows, tmp_path, "trl", RewardFile())

    assert set(refusal.value.details["problems"]) == {"bad", "worse"}
    assert "bad" in refusal.value.message
    assert list(tmp_path.iterdir()) == []


def test_one_question_with_two_golds_blocks_the_export(tmp_path: Path) -> None:
    rows = [CanonicalRow("a", "What is  1+1?", "2"), CanonicalRow("b", "What is 1+1?", "3")]

    with pytest.raises(ExportRefused, match="b: same question as a"):
        export(rows, tmp_path, "verl")

    assert list(tmp_path.iterdir()) == []


def test_one_question_twice_with_one_gold_is_exported_once_and_named(tmp_path: Path) -> None:
    rows = [CanonicalRow("b", "What is 1+1?", "2"), CanonicalRow("a", "What is\n1+1?", "2 "), some_rows(1)[0]]

    manifest = export(rows, tmp_path, "trl")

    assert manifest.duplicates_left_out == {"b": "a"}
    assert [row["uid"] for row in read_back(tmp_path, "trl")] == ["a", "q0"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "no question has a gold answer"),
        ([*some_rows(1), *some_rows(1)], "q0: its id occurs twice"),
        ([CanonicalRow("a", " ", "1")], "a: its text is empty"),
        ([CanonicalRow("a", "half a \ud83d", "1")], "a: its text contains half of a character"),
    ],
)
def test_rows_no_trainer_could_read_are_refused(rows: list[CanonicalRow], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ExportRefused, match=reason):
        export(rows, tmp_path, "jsonl")


def test_a_row_survives_the_snapshot() -> None:
    row = CanonicalRow("a", "What?", "1", "number", ("1", "2"), {"source": "x"}, Provenance(3, 0.5, 2, True))

    assert CanonicalRow.from_json(json.loads(json.dumps(row.to_json()))) == row
