"""`assay rank` asks what the strategy needs and nothing else, and goes on from what is labeled."""

import json

import numpy as np
import pytest

from selector.cli import main
from tests.selector.cli.stored import completions_in
from tests.selector.internals.simulated import simulate_internals
from tests.selector.simulation import simulate_votes


@pytest.fixture
def folder(tmp_path):
    pool = [{"problem": f"Question {row}", "id": f"p{row}"} for row in range(30)]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pool))
    votes = [{**question.to_json(), "cluster": row % 4} for row, question in enumerate(simulate_votes(40, seed=1))]
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in votes))
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32))
    simulate_internals([f"p{row}" for row in range(30)]).save(tmp_path / "internals.npz")
    return tmp_path


def rank(folder, strategy, *options, source="pool", budget="4", out="picks.jsonl"):
    given = [str(folder / "pool.jsonl")] if source == "pool" else ["--votes", str(folder / "votes.jsonl")]
    budgeted = ["--budget", budget] if budget else []
    return main(
        [
            "rank", *given, *budgeted, "--strategy", strategy, "--out", str(folder / out),
            "--report", str(folder / "report.json"), *options,
        ]
    )  # fmt: skip


def picks_of(folder, name="picks.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def report_of(folder):
    return json.loads((folder / "report.json").read_text())


def stored_kinds(folder):
    return {row["kind"] for row in completions_in(folder / "picks.jsonl.state")}


SCRIPTED = ["--engine", "scripted", "--model", "any", "--outcomes", "4"]


def test_random_asks_no_model(folder, capsys):
    assert rank(folder, "random") == 0

    report = report_of(folder)
    assert len(picks_of(folder)) == 4
    assert (report["q_hat"], report["calibration"], report["tokens"]) == (None, None, {})
    assert stored_kinds(folder) == set()
    told = capsys.readouterr().err
    assert "no model is asked" in told
    assert "No calibration set, so no threshold. Wrote 4 picks" in told


def test_v1_needs_embeddings_alone(folder):
    assert rank(folder, "v1", "--embeddings", str(folder / "x.npy")) == 0

    assert sorted(pick["cluster"] for pick in picks_of(folder)) == [0, 1, 2, 3]
    assert stored_kinds(folder) == set()


def test_full_needs_no_budget(folder):
    assert rank(folder, "full", budget=None) == 0

    assert len(picks_of(folder)) == 30
    assert report_of(folder)["settings"]["budget"] == 30


@pytest.mark.parametrize("strategy", ["entropy", "scf", "ews", "care_proxy"])
def test_strategies_on_sampled_answers_ask_for_nothing_else(folder, strategy):
    assert rank(folder, strategy, *SCRIPTED, "--min-readable", "0") == 0

    assert stored_kinds(folder) == {"outcome"}
    report = report_of(folder)
    assert (report["settings"]["n_outcomes"], report["settings"]["n_probes"]) == (4, 0)
    assert report["calibration"] is None


def test_probes_can_be_asked_for_all_the_same(folder):
    assert rank(folder, "entropy", *SCRIPTED, "--probes", "3", "--min-readable", "0") == 0

    assert stored_kinds(folder) == {"outcome", "probe", "trajectory"}
    assert report_of(folder)["settings"]["n_probes"] == 3


@pytest.mark.parametrize("strategy", ["token_entropy", "shift", "badge"])
def test_internals_from_a_file_need_no_model(folder, strategy):
    assert rank(folder, strategy, "--internals", str(folder / "internals.npz")) == 0

    assert len(picks_of(folder)) == 4
    assert report_of(folder)["fingerprints"]["internals"] == "simulated"


def test_internals_that_an_engine_cannot_show_are_refused_before_it_is_asked(folder, capsys):
    assert rank(folder, "shift", *SCRIPTED) == 1

    told = capsys.readouterr().err
    assert "needs hidden states" in told
    assert "--engine transformers" in told
    assert stored_kinds(folder) == set()


def test_recorded_votes_do_without_calibration_where_no_threshold_is_needed(folder):
    assert rank(folder, "ews", source="votes") == 0

    assert report_of(folder)["calibration"] is None


def test_recorded_votes_without_internals_say_how_to_get_them(folder, capsys):
    assert rank(folder, "shift", source="votes") == 1

    told = capsys.readouterr().err
    assert "'shift' needs hidden states" in told
    assert "--internals FILE, or --engine transformers" in told


@pytest.mark.parametrize(
    ("strategy", "words"),
    [("const", "--calibration is missing"), ("entropy", "--model is missing"), ("shift", "--model is missing")],
)
def test_what_a_strategy_needs_is_asked_for(folder, strategy, words, capsys):
    with pytest.raises(SystemExit) as caught:
        rank(folder, strategy)

    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_a_budget_is_asked_for(folder, capsys):
    with pytest.raises(SystemExit):
        rank(folder, "random", budget=None)

    assert "--budget is missing" in capsys.readouterr().err


def test_a_second_round_goes_on_from_earlier_picks(folder, capsys):
    rank(folder, "random", budget="9", out="both.jsonl")
    rank(folder, "random", out="first.jsonl")
    (folder / "more.txt").write_text("p_elsewhere\n\n")

    status = rank(
        folder, "random", "--labeled", str(folder / "first.jsonl"), "--labeled", str(folder / "more.txt"), budget="5"
    )

    assert status == 0
    first, second, both = (
        [pick["id"] for pick in picks_of(folder, name)] for name in ("first.jsonl", "picks.jsonl", "both.jsonl")
    )
    assert first + second == both
    assert report_of(folder)["labeled"] == {"given": 5, "in_pool": 4}
    assert "1 of the 5 labeled questions are not in the pool" in capsys.readouterr().err


def test_the_picks_do_not_overwrite_what_they_go_on_from(folder, capsys):
    rank(folder, "random")
    before = (folder / "picks.jsonl").read_bytes()

    assert rank(folder, "random", "--labeled", str(folder / "picks.jsonl")) == 1

    assert (folder / "picks.jsonl").read_bytes() == before
    assert "another file than --labeled" in capsys.readouterr().err


def test_a_budget_beyond_what_is_left_is_refused_before_the_model_is_asked(folder, capsys):
    (folder / "ids.txt").write_text("".join(f"p{row}\n" for row in range(28)))

    assert rank(folder, "entropy", *SCRIPTED, "--labeled", str(folder / "ids.txt")) == 1

    assert "30 questions, 2 of them eligible; the budget asks for 4" in capsys.readouterr().err
    assert stored_kinds(folder) == set()


@pytest.mark.parametrize("line", ['{"id": ', '{"rank": 1}', '{"id": true}'])
def test_a_bad_line_of_labels_is_named(folder, line, capsys):
    (folder / "ids.txt").write_text(f"p1\n{line}\n")

    assert rank(folder, "random", "--labeled", str(folder / "ids.txt")) == 1

    assert "ids.txt, line 2: " in capsys.readouterr().err


def test_controls_and_picks_of_each_cluster_are_options(folder):
    options = ["--embeddings", str(folder / "x.npy"), "--per-cluster", "2", "--control-share", "0.25"]

    assert rank(folder, "v1", *options, budget="8") == 0

    picks, report = picks_of(folder), report_of(folder)
    assert [pick["inclusion_probability"] for pick in picks] == [None] * 6 + [2 / 30] * 2
    assert report["controls"]["inclusion_probability"] == 2 / 30
    assert report["clusters"]["n"] == 3
