"""`assay probe --internals`, ranking from them or with a model on this machine, and the triage along a ranking."""

import json
import random

import numpy as np
import pytest

from selector.cli import main
from selector.internals import Internals
from selector.tiny.questions import draw_question
from tests.selector.cli.stored import completions_in
from tests.selector.internals.simulated import simulate_internals

N_ANSWERS = ["--outcomes", "6", "--probes", "0", "--max-tokens", "60"]
MODEL = ["--engine", "transformers", "--model", "assay-tiny"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("internals"), random.Random(3)
    questions = [draw_question(rng) for _ in range(20)]
    rows = [{"id": f"t{i}", "question": question.text} for i, question in enumerate(questions)]
    (path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels = [{"id": f"t{i}", "answer": str(question.answer)} for i, question in enumerate(questions)]
    (path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels[:12]))
    assert run("probe", path, *MODEL, *N_ANSWERS, "--internals", path / "i.npz", out="votes.jsonl") == 0
    return path


def run(command, folder, *options, out="picks.jsonl"):
    pool = [] if "--votes" in options else [folder / "pool.jsonl"]
    return main([str(part) for part in (command, *pool, *options, "--out", folder / out)])


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("strategy", ["shift", "badge", "pivot_trace", "partial_rollouts"])
def test_recorded_internals_rank_as_the_model_itself(folder, strategy):
    what = ["--strategy", strategy, "--budget", "4"]
    from_file = ["--votes", folder / "votes.jsonl", "--internals", folder / "i.npz", "--outcomes", "0"]
    state = ["--max-tokens", "60", "--state", folder / "votes.jsonl.state"]

    assert run("rank", folder, *from_file, *what) == 0
    assert run("rank", folder, *MODEL, *what, *state, "--report", folder / "r.json", out="direct.jsonl") == 0

    assert rows_of(folder / "picks.jsonl") == rows_of(folder / "direct.jsonl")
    report = json.loads((folder / "r.json").read_text())
    assert report["calibration"] is None
    assert report["strategy"]["cost"] == {"outcomes": 0, "trajectories": 1, "probes": 0, "forward_passes": 1}
    assert "reading internals" in report["seconds"]


def test_only_trajectories_are_asked_for(folder):
    assert run("rank", folder, *MODEL, "--strategy", "shift", "--budget", "2", "--max-tokens", "30", out="t.jsonl") == 0

    kinds = {row["kind"] for row in completions_in(folder / "t.jsonl.state")}
    assert kinds == {"trajectory"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "scripted", "--model", "any"], "needs attention"),
        (["--engine", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "any"], "--engine transformers"),
    ],
)
def test_a_model_elsewhere_is_refused_with_what_to_do(folder, capsys, options, message):
    assert run("rank", folder, *options, "--strategy", "pivot_trace", "--budget", "2", out="no.jsonl") == 1

    assert message in capsys.readouterr().err


def test_votes_alone_do_not_do(folder, capsys):
    votes = ["--votes", folder / "votes.jsonl"]

    assert run("rank", folder, *votes, "--strategy", "shift", "--budget", "2") == 1

    assert "--internals FILE" in capsys.readouterr().err


def test_probe_refuses_internals_of_a_server(folder, capsys):
    options = ["--engine", "scripted", "--model", "any", "--internals", folder / "no.npz"]

    assert run("probe", folder, *options, out="no.jsonl") == 1

    assert "transformers" in capsys.readouterr().err


@pytest.mark.parametrize(("change", "code"), [("rows", "are missing"), ("model", "was generated with settings")])
def test_internals_of_something_else_are_refused(folder, capsys, change, code):
    uids = [row["id"] for row in rows_of(folder / "pool.jsonl")]
    simulate_internals(uids[:-1] if change == "rows" else uids).save(folder / "other.npz")
    options = ["--votes", folder / "votes.jsonl", "--internals", folder / "other.npz"]

    assert run("rank", folder, *options, "--strategy", "shift", "--budget", "2") == 1

    assert code in capsys.readouterr().err


def test_a_question_too_long_for_the_model_keeps_its_place(folder):
    rows = [*rows_of(folder / "pool.jsonl")[:3], {"id": "long", "question": "1+" * 300 + "1"}]
    path = folder / "long"
    path.mkdir()
    (path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert run("probe", path, *MODEL, *N_ANSWERS, "--internals", path / "i.npz", out="v.jsonl") == 0

    internals = Internals.load(path / "i.npz").take([row["id"] for row in rows])
    assert internals.n_response_tokens[3] == 0
    assert np.all(internals.n_response_tokens[:3] > 0)


def test_triage_asks_for_probes_and_then_gives_every_question_a_route(folder):
    what = ["--votes", folder / "votes.jsonl", "--internals", folder / "i.npz", "--strategy", "pivot_trace"]
    assert run("rank", folder, *what, "--budget", "2", "--n-triage-probes", "8", "--triage-probes", folder / "p") == 0
    labels = ["--triage-labels", folder / "labels.jsonl", "--scores", folder / "s", "--report", folder / "r.json"]
    assert run("rank", folder, *what, "--budget", "2", *labels) == 0

    probes, scores = rows_of(folder / "p"), rows_of(folder / "s")
    assert [row["rank"] for row in probes] == [0, 3, 5, 8, 11, 14, 16, 19]
    assert all(row["question"] for row in probes)
    assert [row["acquisition_score"] for row in probes] == sorted(row["acquisition_score"] for row in probes)
    assert {row["route"] for row in scores} <= {"discard", "weakly_supervise", "annotate"}
    assert all(row["majority_answer"] for row in scores if row["route"] == "weakly_supervise")
    triage = json.loads((folder / "r.json").read_text())["triage"]
    assert triage["provenance"] == "reconstruction"
    assert sum(triage["routes"].values()) == len(scores) == 20
    labeled = {row["id"] for row in rows_of(folder / "labels.jsonl")}
    assert not labeled & {row["id"] for row in rows_of(folder / "picks.jsonl")}


def test_triage_needs_rollouts_and_enough_labels(folder, capsys):
    what = ["--internals", folder / "i.npz", "--strategy", "pivot_trace", "--budget", "2"]
    votes = ["--votes", folder / "votes.jsonl", "--triage-labels"]
    (folder / "few.jsonl").write_text('{"id": "t1", "answer": 3}\n')
    (folder / "bad.jsonl").write_text('{"id": "t1"}\n{"id": "t2", "answer": 1}\n{"id": "t2", "answer": 2}\n')

    assert run("rank", folder, *what, *votes, folder / "few.jsonl") == 1
    assert "at least 7" in capsys.readouterr().err
    assert run("rank", folder, *what, *votes, folder / "bad.jsonl") == 1
    told = capsys.readouterr().err
    assert "line 1: answer is missing" in told
    assert "line 3: Question t2 already has the answer" in told
    assert run("rank", folder, *what, *votes, folder / "labels.jsonl", "--outcomes", "0") == 1
    assert "triage" in capsys.readouterr().err
