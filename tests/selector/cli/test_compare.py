"""`assay compare` and `assay backtest` on small files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from selector.cli import main
from tests.selector.simulation import simulate_votes


@pytest.fixture
def folder(tmp_path):
    pool = simulate_votes(60, seed=2, n_probes=4, n_outcomes=6, text=lambda row: f"Question {row}?")
    calibration = simulate_votes(40, seed=1, prefix="c", n_probes=4, n_outcomes=6)
    untold = [replace(question, truth=None) for question in pool]
    for name, votes in (("told", pool), ("untold", untold), ("calibration", calibration)):
        rows = [question.to_json() for question in votes]
        if name != "untold":
            rows = [{"truth": None, **row} for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = [{"question": q.text, "answer": q.truth} for q in pool if q.truth]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32))
    return tmp_path


def run(folder, command, votes, *options):
    arguments = ["--calibration-votes", str(folder / "calibration.jsonl"), "--budget", "5", "--alpha", "0.3"]
    return main([command, *options, "--votes", str(folder / votes), *arguments, "--out", str(folder / "out.json")])


def result(folder):
    return json.loads((folder / "out.json").read_text())


def test_compare_prints_tables_and_writes_json_and_pictures(folder, capsys):
    plots = folder / "plots"

    code = run(
        folder,
        "compare",
        "told.jsonl",
        "--embeddings",
        str(folder / "x.npy"),
        "--bootstrap",
        "3",
        "--plots",
        str(plots),
    )

    assert code == 0
    printed = capsys.readouterr().out
    for words in ("Overlap of the picks", "Spearman", "Kendall", "Judged by the right answers", "Not run", "shift"):
        assert words in printed
    found = result(folder)
    assert {"const", "random", "cec"} <= {each["key"] for each in found["strategies"]}
    assert {"shift", "badge"} <= {each["key"] for each in found["not_run"]}
    names = {"overlap", "rank_correlation", "profiles", "stability", "backtest"}
    assert {path.name for path in plots.iterdir()} == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert all(path.stat().st_size > 5_000 for path in plots.iterdir())


def test_the_same_command_draws_the_same_pictures(folder):
    for name in ("one", "two"):
        options = ["--strategies", "const,v2", "--embeddings", str(folder / "x.npy"), "--bootstrap", "2"]
        run(folder, "compare", "told.jsonl", *options, "--plots", str(folder / name))

    for path in (folder / "one").glob("*.svg"):
        assert path.read_bytes() == (folder / "two" / path.name).read_bytes()


def test_compare_without_truths_says_nothing_of_right_answers(folder, capsys):
    run(
        folder,
        "compare",
        "untold.jsonl",
        "--strategies",
        "v2,random",
        "--bootstrap",
        "0",
        "--embeddings",
        str(folder / "x.npy"),
    )

    assert "Judged" not in capsys.readouterr().out
    assert result(folder)["backtest"] is None


def test_backtest_takes_truths_from_the_votes_or_from_a_file_with_answers(folder, capsys):
    options = ["--strategies", "v2,entropy,random", "--embeddings", str(folder / "x.npy"), "--seeds", "200"]
    assert run(folder, "backtest", "told.jsonl", *options) == 0
    told = result(folder)["backtest"]

    assert run(folder, "backtest", "untold.jsonl", str(folder / "answers.jsonl"), *options) == 0
    by_file = result(folder)["backtest"]

    assert told["pool"]["n"] == 60
    n_answers = len((folder / "answers.jsonl").read_text().splitlines())
    assert by_file["pool"]["n"] == n_answers < 60
    assert by_file["pool"]["pass_rate"] == pytest.approx(told["pool"]["pass_rate"] * 60 / n_answers)
    printed = capsys.readouterr()
    assert "maj. wrong" in printed.out
    assert f"answers {n_answers} of 60 questions" in printed.err


@pytest.mark.parametrize(
    ("command", "votes", "options", "message"),
    [
        ("backtest", "untold.jsonl", [], "POOL_WITH_ANSWERS"),
        ("backtest", "untold.jsonl", ["calibration.jsonl"], "question"),
        ("compare", "told.jsonl", ["--embeddings", "missing.npy"], "missing.npy"),
        ("compare", "told.jsonl", ["--internals", "missing.npz"], "missing.npz"),
        ("compare", "missing.jsonl", [], "missing.jsonl"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(folder, capsys, command, votes, options, message):
    options = [str(folder / each) if each.endswith(("jsonl", "npy", "npz")) else each for each in options]

    assert run(folder, command, votes, "--strategies", "v2", *options) == 1

    assert message in capsys.readouterr().err
    assert not (folder / "out.json").exists()


def test_strategies_that_read_no_answers_are_compared_on_votes_without_any(folder, capsys):
    rows = [{"id": f"q{number}", "outcome_answers": [], "probe_answers": [], "truth": "1"} for number in range(9)]
    votes = folder / "bare.jsonl"
    votes.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--votes", str(votes), "--budget", "3", "--strategies", "random,full,entropy"]

    assert main(["compare", *options]) == 0
    assert "entropy: Strategy 'entropy' needs complete votes" in capsys.readouterr().out
    assert main(["backtest", *options]) == 1
    assert "a votes file with answers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("compare", ["--strategies", "const,nothing"], "there is no 'nothing'"),
        ("compare", ["--bootstrap", "-1"], "--bootstrap"),
        ("backtest", ["--group-size", "1"], "--group-size"),
        ("backtest", ["--map", "answer"], "FIELD=COLUMN"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_read(folder, capsys, command, options, message):
    with pytest.raises(SystemExit) as stopped:
        run(folder, command, "told.jsonl", *options)

    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
