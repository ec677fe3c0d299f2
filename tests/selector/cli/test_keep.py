"""What `assay rank` keeps of answers, clusters and vectors, and what it says of tokens and money."""

import json

import numpy as np
import pytest

from selector.cli import main
from tests.selector.cli.stored import completions_in


@pytest.fixture
def folder(tmp_path):
    pool = [{"problem": f"What is {row} and {row}?"} for row in range(30)]
    calibration = [{"problem": f"And what of {row}?", "answer": str(1 + row % 4)} for row in range(20)]
    for name, rows in (("pool", pool), ("calibration", calibration)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32))
    return tmp_path


def rank(folder, *options, out):
    return main(
        [
            "rank", str(folder / "pool.jsonl"), "--calibration", str(folder / "calibration.jsonl"), "--budget", "4",
            "--engine", "scripted", "--model", "any", "--outcomes", "4", "--probes", "3", "--alpha", "0.6",
            "--embeddings", str(folder / "x.npy"), "--out", str(folder / out), *options,
        ]
    )  # fmt: skip


def test_answers_alone_give_the_same_picks(folder):
    assert rank(folder, out="whole.jsonl") == 0
    assert rank(folder, "--keep", "answers", out="answers.jsonl") == 0

    whole, answers = (completions_in(folder / f"{name}.jsonl.state") for name in ("whole", "answers"))
    assert (folder / "answers.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert any("step" in row["text"] for row in whole if row["kind"] == "outcome")
    assert all(row["text"].startswith("\\boxed{") for row in answers if row["kind"] == "outcome")
    assert [row for row in answers if row["kind"] != "outcome"] == [row for row in whole if row["kind"] != "outcome"]


def test_clusters_are_kept_and_used_again(folder, monkeypatch):
    rank(folder, out="picks.jsonl")
    first = (folder / "picks.jsonl").read_bytes()
    assert len(list((folder / "picks.jsonl.state").glob("clusters-*.npz"))) == 1
    monkeypatch.setattr("sklearn.cluster.KMeans.fit", None)

    assert rank(folder, out="picks.jsonl") == 0
    assert (folder / "picks.jsonl").read_bytes() == first


def test_tokens_and_money_are_said_at_the_end(folder, capsys):
    rank(folder, "--gpu-price", "2.5", "--gpus", "2", out="picks.jsonl")

    said = capsys.readouterr().err
    n_tokens = sum(row["n_tokens"] for row in completions_in(folder / "picks.jsonl.state"))
    assert f"The model generated {n_tokens:,} tokens in" in said
    assert ", for 0.0" in said

    rank(folder, "--gpu-price", "2.5", out="picks.jsonl")

    assert "The model generated" not in capsys.readouterr().err


def test_what_a_crash_tore_is_told(folder, capsys):
    rank(folder, "--race", "off", out="picks.jsonl")
    shard = folder / "picks.jsonl.state" / "completions" / "00000.jsonl.gz"
    whole = completions_in(folder / "picks.jsonl.state")
    shard.write_bytes(shard.read_bytes()[:-7])
    capsys.readouterr()

    assert rank(folder, "--race", "off", out="picks.jsonl") == 0
    assert "were torn; they are made again" in capsys.readouterr().err
    made_again = completions_in(folder / "picks.jsonl.state")
    assert {(row["uid"], row["kind"], row["index"]) for row in made_again} == {
        (row["uid"], row["kind"], row["index"]) for row in whole
    }
