"""Runs on votes that were recorded on another machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from labeling.actions.runs import create_run
from labeling.errors import EngineFailure, LabelingError
from labeling.models import CalibrationSet, GenerationSettings, Pool, RecordedVotes, SelectionRun
from tests import factories
from tests.labeling.runs.conftest import run_to_its_end

FINGERPRINT = "recorded-settings"


def record(row: Any, probes: list[str], outcomes: list[str], fingerprint: str = FINGERPRINT, **more: object) -> None:
    RecordedVotes.objects.create(
        question_fingerprint=row.fingerprint,
        question_uid=row.uid,
        generation_fingerprint=fingerprint,
        votes={"id": row.uid, "probe_answers": probes, "outcome_answers": outcomes, **more},
    )


@pytest.fixture
def recorded(filled_pool, calibration_set) -> tuple[Pool, CalibrationSet]:
    """Every question has two probes and three outcomes, with as many distinct answers as its number modulo 4."""
    for number, question in enumerate(filled_pool.questions.all()):
        answers = [str(i % (1 + number % 4)) for i in range(5)]
        record(question, answers[:2], answers[2:], trajectory_tokens=10, outcome_tokens=[5, 6, 7])
    for item in calibration_set.items.all():
        record(item, [item.answer, item.answer], [item.answer, "9", "8"])
    return filled_pool, calibration_set


def test_recorded_votes_give_picks_without_a_model(recorded):
    pool, calibration_set = recorded

    run = run_to_its_end(
        create_run(
            pool=pool,
            calibration_set=calibration_set,
            generation_fingerprint=FINGERPRINT,
            budget=3,
            embedder="",
            by=None,
        )
    )

    assert run.status == SelectionRun.Status.FINISHED, run.error
    assert run.picks.count() == 3
    assert (run.config["n_probes"], run.config["n_outcomes"]) == (2, 3)
    assert run.report["tokens"] == {"pool: trajectories": 120, "pool: outcomes": 216}
    assert [stage["name"] for stage in run.stages] == ["scoring"]


def test_questions_without_votes_are_set_aside_by_name(recorded):
    pool, calibration_set = recorded
    factories.make_question(pool=pool, uid="without")

    run = run_to_its_end(
        create_run(
            pool=pool,
            calibration_set=calibration_set,
            generation_fingerprint=FINGERPRINT,
            budget=3,
            embedder="",
            by=None,
        )
    )

    assert run.status == SelectionRun.Status.FINISHED
    assert [(each["id"], each["code"]) for each in run.report["set_aside"]] == [("without", "no_recorded_votes")]


def test_votes_that_differ_in_number_are_refused(recorded):
    pool, calibration_set = recorded
    record(factories.make_question(pool=pool, uid="uneven", metadata={"cluster": 0}), ["1"], ["1", "2"])

    run = run_to_its_end(
        create_run(
            pool=pool,
            calibration_set=calibration_set,
            generation_fingerprint=FINGERPRINT,
            budget=3,
            embedder="",
            by=None,
        )
    )

    assert (run.status, run.error_code) == (SelectionRun.Status.FAILED, "uneven_votes")
    assert "“uneven” has 1 probes and 2 outcomes" in run.error


def test_a_calibration_set_sampled_with_other_settings_is_refused_and_says_what_differs(recorded):
    pool, calibration_set = recorded
    RecordedVotes.objects.filter(question_uid__in=calibration_set.items.values("uid")).update(
        generation_fingerprint="other-settings"
    )
    GenerationSettings.objects.create(fingerprint=FINGERPRINT, parts={"model": "m", "temperature": 0.6})
    GenerationSettings.objects.create(fingerprint="other-settings", parts={"model": "m", "temperature": 1.0})

    with pytest.raises(EngineFailure) as refused:
        create_run(
            pool=pool,
            calibration_set=calibration_set,
            generation_fingerprint=FINGERPRINT,
            budget=3,
            embedder="",
            by=None,
        )

    assert refused.value.code == "fingerprint_mismatch"
    assert "temperature: 0.6 against 1.0" in refused.value.message
    assert "model:" not in refused.value.message


def test_votes_that_were_never_recorded_are_asked_for_before_anything_is_queued(recorded, filled_pool):
    pool, calibration_set = recorded
    without_votes = factories.make_calibration_set(n_items=12)

    for chosen, fingerprint in ((calibration_set, "unknown"), (without_votes, FINGERPRINT)):
        with pytest.raises(LabelingError, match="Import a votes file") as refused:
            create_run(pool=pool, calibration_set=chosen, generation_fingerprint=fingerprint, budget=3, by=None)
        assert refused.value.code == "no_recorded_votes"
    assert not SelectionRun.objects.exists()


def test_the_published_selection_comes_out_of_the_application_too(pool, calibration_set, shared_data: Path):
    calibration_set.items.all().delete()
    expected = json.loads((shared_data / "parity" / "1_expected.json").read_text())
    for line in (shared_data / "parity" / "1_pool.jsonl").read_text().splitlines():
        row = json.loads(line)
        record(
            factories.make_question(pool=pool, uid=row["id"], answer_kind=""),
            row["probe_answers"],
            row["outcome_answers"],
            cluster=row["cluster"],
        )
    for line in (shared_data / "parity" / "1_calibration.jsonl").read_text().splitlines():
        row = json.loads(line)
        item = factories.make_calibration_item(
            calibration_set=calibration_set, uid=row["id"], answer=row["truth"] or "never generated", answer_kind=""
        )
        record(item, row["probe_answers"], row["outcome_answers"])

    run = run_to_its_end(
        create_run(
            pool=pool,
            calibration_set=calibration_set,
            generation_fingerprint=FINGERPRINT,
            budget=expected["budget"],
            alpha=str(expected["alpha"]),
            lam=expected["lam"],
            preset="reference",
            embedder="",
            by=None,
        )
    )

    assert run.q_hat == pytest.approx(expected["reference"]["threshold"], abs=1e-12)
    assert list(run.picks.values_list("question__uid", flat=True)) == expected["reference"]["selected"]
    set_sizes = run.scores.order_by("question__id").values_list("set_size", flat=True)
    assert list(set_sizes) == expected["reference"]["set_size"]
