"""Picks made on another machine become a finished run, whole or not at all."""

import json

import pytest

from labeling.actions.evidence_imports import import_picks
from labeling.errors import NotAllowed
from labeling.models import SelectionRun
from labeling.queries.run_results import picks_of
from tests import factories


def pick(uid: str, rank: int, **fields) -> dict:
    return {
        "id": uid, "rank": rank, "cluster": 1, "set_size": 2, "acquisition_score": 2.0,
        "prediction_set": [{"answer": "7", "frequency": 0.5}], "tied_with": 3, **fields,
    }  # fmt: skip


@pytest.fixture
def questions(pool):
    return [factories.make_question(pool=pool, uid=uid) for uid in ("q1", "q2", "q3")]


def test_picks_become_a_finished_run(command, write, pool, questions):
    path = write(
        pick("q2", 1, tie_break_reason="sha256_of_id", taken_by="global_order"), pick("q1", 2), name="picks.jsonl"
    )

    outcome = command("import_picks", path, "--pool", "Algebra", "--json")

    run = SelectionRun.objects.get()
    assert (outcome.status, outcome.json["new"], outcome.json["run"]) == (0, 2, run.pk)
    assert (run.status, run.report, run.config["budget"]) == ("finished", None, 2)
    first = run.picks.get(rank=1)
    assert (first.question.uid, first.set_size, first.tied_with, first.taken_by) == ("q2", 2, 3, "global_order")
    assert first.prediction_set == [{"answer": "7", "frequency": 0.5}]


def test_controls_keep_their_chance_of_being_drawn(command, write, pool, questions):
    path = write(
        pick("q1", 1, taken_by="joint", inclusion_probability=None),
        pick("q2", 2, taken_by="control", inclusion_probability=0.25),
        pick("q3", 3, taken_by=["odd"], inclusion_probability=7),
    )

    command("import_picks", path, "--pool", "Algebra")

    taken = SelectionRun.objects.get().picks.order_by("rank").values_list("taken_by", "inclusion_probability")
    assert list(taken) == [("joint", None), ("control", 0.25), ("cluster", None)]


def test_the_report_gives_the_threshold_and_the_settings(command, write, pool, questions, tmp_path):
    report = tmp_path / "report.json"
    settings = {"preset_name": "paper", "budget": 1, "alpha": "0.2"}
    report.write_text(
        json.dumps(
            {"q_hat": -0.3, "q_hat_infinite": False, "settings": settings, "calibration": {}, "set_size_histogram": {}}
        )
    )

    command("import_picks", write(pick("q1", 1)), "--pool", "Algebra", "--report", report)

    run = SelectionRun.objects.get()
    assert (run.q_hat, run.config["alpha"], run.config["absent_truth"]) == (-0.3, "0.2", "infinite")
    assert run.report["settings"] == settings


def test_the_same_picks_again_change_nothing(command, write, pool, questions):
    path = write(pick("q1", 1))
    command("import_picks", path, "--pool", "Algebra")

    again = command("import_picks", path, "--pool", "Algebra", "--json")

    assert (again.status, again.json["unchanged"], SelectionRun.objects.count()) == (0, 1, 1)


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (pick("q9", 2), "unknown_question"),
        (pick("q2", 1), "duplicate_rank"),
        (pick("q1", 2), "duplicate_id"),
        (pick("q2", 0), "invalid_pick"),
        (pick("q2", 2, prediction_set=[7]), "invalid_pick"),
        (pick("q2", 2, set_size="2"), "invalid_pick"),
        ({"id": "q2"}, "invalid_pick"),
        ("{broken", "invalid_json"),
    ],
)
def test_one_bad_row_and_nothing_is_taken(command, write, pool, questions, row, code):
    outcome = command("import_picks", write(pick("q1", 1), row), "--pool", "Algebra", "--json")

    assert (outcome.status, outcome.json["new"]) == (1, 0)
    assert [(row["line"], row["code"]) for row in outcome.json["rejected"]] == [(2, code)]
    assert not SelectionRun.objects.exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"q_hat": 1}'])
def test_a_report_that_is_none_is_refused(command, write, pool, questions, tmp_path, content):
    report = tmp_path / "report.json"
    report.write_text(content)

    outcome = command("import_picks", write(pick("q1", 1)), "--pool", "Algebra", "--report", report, "--json")

    assert (outcome.status, outcome.json["error"]["code"]) == (1, "invalid_report")


def test_in_the_browser_managers_alone_upload_picks(pool, manager, annotator, questions, upload):
    report = import_picks(file=upload(pick("q1", 1)), filename="picks.jsonl", pool=pool, by=manager)
    with pytest.raises(NotAllowed):
        import_picks(file=upload(pick("q2", 1)), filename="picks.jsonl", pool=pool, by=annotator)

    assert SelectionRun.objects.get(pk=report.details["run"]).created_by == manager


def test_with_how_many_a_pick_of_a_race_ties_is_not_known(command, write, pool, questions):
    outcome = command("import_picks", write(pick("q1", 1, tied_with=None)), "--pool", "Algebra", "--json")

    run = SelectionRun.objects.get(pk=outcome.json["run"])
    (line,) = picks_of(run)
    assert line.pick.tied_with is None
    assert "is not known" in line.why[-1]
