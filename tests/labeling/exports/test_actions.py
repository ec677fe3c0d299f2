"""From gold answers in the database to files for a trainer."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from labeling.actions.exports import create_export, create_snapshot, filter_words
from labeling.errors import LabelingError, NotAllowed
from labeling.exports import ExportRefused
from labeling.models import (
    AuditEvent,
    DatasetSnapshot,
    Export,
    GenerationSettings,
    GoldAnswer,
    ModelAnswers,
    Pool,
    RecordedVotes,
    SelectionRun,
    Slot,
    User,
)
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def labeled_run(pool: Pool) -> SelectionRun:
    """A run with three picks that have gold answers; of the first, votes are recorded."""
    run = factories.make_run(pool=pool, n_picks=3, generation_fingerprint="recorded")
    round = factories.make_round(run=run)
    for pick, answer in zip(run.picks.order_by("rank"), ("12", "\\frac{1}{2}", "x+1"), strict=True):
        GoldAnswer.objects.create(
            question=pick.question, round=round, answer=answer, answer_kind="", source=GoldAnswer.Source.SINGLE
        )
    first = run.picks.order_by("rank")[0].question
    RecordedVotes.objects.create(
        question_fingerprint=first.fingerprint,
        question_uid=first.uid,
        generation_fingerprint="recorded",
        votes={"id": first.uid, "probe_answers": ["12"], "outcome_answers": ["12", "12.0", "13", "", "14"]},
    )
    return run


def rows_of(export: Export) -> list[dict]:
    return pq.read_table(Path(export.directory) / "train.parquet").to_pylist()


def test_an_export_holds_the_gold_answers_and_where_they_come_from(
    labeled_run: SelectionRun, pool: Pool, manager: User, tmp_path: Path
) -> None:
    snapshot = create_snapshot(pool=pool, by=manager)
    export = create_export(snapshot=snapshot, format="trl", by=manager, out_dir=tmp_path)

    rows = {row["uid"]: row for row in rows_of(export)}
    first = labeled_run.picks.order_by("rank")[0].question
    assert {row["answer"] for row in rows.values()} == {"12", "\\frac{1}{2}", "x+1"}
    assert (rows[first.uid]["pass_rate"], rows[first.uid]["set_size"]) == (0.5, 2)
    assert all(row["pass_rate"] is None for uid, row in rows.items() if uid != first.uid)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["versions"]["grader"] == snapshot.grader_version
    assert manifest["provenance"]["snapshot_sha256"] == snapshot.sha256
    assert {file["name"] for file in export.files} == {"train.parquet", "rewards.py", "manifest.json"}
    assert AuditEvent.objects.filter(action="export.created", actor=manager, pool=pool).count() == 1


def test_exporting_again_changes_nothing(labeled_run: SelectionRun, pool: Pool, manager: User, tmp_path: Path) -> None:
    first = create_export(snapshot=create_snapshot(pool=pool, by=manager), format="verl", by=manager, out_dir=tmp_path)
    content = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    second = create_export(snapshot=create_snapshot(pool=pool, by=manager), format="verl", by=manager, out_dir=tmp_path)

    assert (second.pk, DatasetSnapshot.objects.count(), Export.objects.count()) == (first.pk, 1, 1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == content


def test_the_prompt_is_the_one_the_model_was_probed_with(
    labeled_run: SelectionRun, pool: Pool, manager: User, tmp_path: Path
) -> None:
    snapshot = create_snapshot(pool=pool, by=manager)
    plain = rows_of(create_export(snapshot=snapshot, format="trl", by=manager, out_dir=tmp_path / "a"))
    assert all("\\boxed{}" in row["prompt"][0]["content"] for row in plain)

    GenerationSettings.objects.create(fingerprint="recorded", parts={"instruction": ""})
    as_asked = rows_of(create_export(snapshot=snapshot, format="trl", by=manager, out_dir=tmp_path / "b"))

    texts = set(pool.questions.values_list("text", flat=True))
    assert {row["prompt"][0]["content"] for row in as_asked} == texts


@pytest.fixture
def judged_run(labeled_run: SelectionRun) -> SelectionRun:
    """The first question is useful; the second always right, the third always wrong."""
    answers = {2: ["1/2", "0.5"], 3: ["7", ""]}
    for rank, given in answers.items():
        question = labeled_run.picks.get(rank=rank).question
        RecordedVotes.objects.create(
            question_fingerprint=question.fingerprint,
            question_uid=question.uid,
            generation_fingerprint="recorded",
            votes={"id": question.uid, "probe_answers": [], "outcome_answers": given},
        )
    return labeled_run


@pytest.mark.parametrize(
    ("keep", "kept", "left_out"),
    [
        ("useful", {"12"}, {2: "always_right", 3: "always_wrong"}),
        ("not_always_right", {"12", "x+1"}, {2: "always_right"}),
        ("all", {"12", "\\frac{1}{2}", "x+1"}, {}),
    ],
)
def test_an_export_may_leave_out_what_teaches_nothing_and_its_manifest_says_what(
    keep: str, kept: set[str], left_out: dict[int, str], judged_run: SelectionRun, pool: Pool, tmp_path: Path
) -> None:
    export = create_export(
        snapshot=create_snapshot(pool=pool, by=None), format="trl", by=None, out_dir=tmp_path, keep=keep
    )

    told = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert {row["answer"] for row in rows_of(export)} == kept
    assert told["n_rows"] == export.n_rows == len(kept)
    assert told["provenance"]["filter"] == export.filter
    of_rank = {rank: judged_run.picks.get(rank=rank).question.uid for rank in left_out}
    assert export.filter["left_out"] == {of_rank[rank]: category for rank, category in left_out.items()}
    assert export.filter.get("n_without_rollouts", 0) == 0


def test_questions_without_stored_rollouts_stay_in_and_are_counted(
    labeled_run: SelectionRun, pool: Pool, tmp_path: Path
) -> None:
    export = create_export(
        snapshot=create_snapshot(pool=pool, by=None), format="jsonl", by=None, out_dir=tmp_path, keep="useful"
    )

    assert (export.n_rows, export.filter["n_without_rollouts"], export.filter["left_out"]) == (3, 2, {})
    assert "2 have no stored rollouts to tell by" in filter_words(export.filter)


def test_one_rollout_decides_nothing(labeled_run: SelectionRun, pool: Pool, tmp_path: Path) -> None:
    RecordedVotes.objects.update(votes={"id": "a", "probe_answers": [], "outcome_answers": ["12"]})

    export = create_export(
        snapshot=create_snapshot(pool=pool, by=None), format="jsonl", by=None, out_dir=tmp_path, keep="useful"
    )

    assert (export.n_rows, export.filter["n_without_rollouts"]) == (3, 3)


def test_an_export_of_nothing_is_refused(judged_run: SelectionRun, pool: Pool, tmp_path: Path) -> None:
    RecordedVotes.objects.filter(question_uid=judged_run.picks.get(rank=1).question.uid).update(
        votes={"id": "a", "probe_answers": [], "outcome_answers": ["12", "12"]}
    )
    snapshot = create_snapshot(pool=pool, by=None)

    with pytest.raises(LabelingError, match="2 always right"):
        create_export(snapshot=snapshot, format="jsonl", by=None, out_dir=tmp_path, keep="useful")
    with pytest.raises(LabelingError, match="One cannot keep"):
        create_export(snapshot=snapshot, format="jsonl", by=None, out_dir=tmp_path, keep="best")

    assert list(tmp_path.iterdir()) == []


def test_annotations_and_decisions_are_counted(pool: Pool, manager: User, annotator: User, tmp_path: Path) -> None:
    round = factories.make_round(pool=pool, overlap=2)
    question = round.slots.first().question
    for person in (annotator, manager):
        slot = factories.make_held_slot(round=round, user=person, slot=round.slots.filter(state="open")[0])
        slot.annotations.create(annotator=person, answer="7")
        Slot.objects.filter(pk=slot.pk).update(state=Slot.State.DONE, lease_until=None)
    GoldAnswer.objects.create(
        question=question, round=round, answer="7", source=GoldAnswer.Source.ADJUDICATION, answer_kind="number"
    )

    row = create_snapshot(pool=pool, by=manager).rows[0]

    assert (row["provenance"]["n_annotations"], row["provenance"]["adjudicated"]) == (2, True)
    assert row["answer_kind"] == "number"


def test_a_gold_that_would_not_train_refuses_the_export_and_is_named(
    labeled_run: SelectionRun, pool: Pool, manager: User, tmp_path: Path
) -> None:
    gold = GoldAnswer.objects.get(answer="x+1")
    GoldAnswer.objects.filter(pk=gold.pk).update(answer="}{")
    snapshot = create_snapshot(pool=pool, by=manager)

    with pytest.raises(ExportRefused, match=gold.question.uid):
        create_export(snapshot=snapshot, format="trl", by=manager, out_dir=tmp_path)

    assert (Export.objects.count(), list(tmp_path.iterdir())) == (0, [])


def test_only_managers_export(labeled_run: SelectionRun, pool: Pool, annotator: User, outsider: User) -> None:
    snapshot = create_snapshot(pool=pool, by=None)
    for person in (annotator, outsider):
        with pytest.raises(NotAllowed):
            create_snapshot(pool=pool, by=person)
        with pytest.raises(NotAllowed):
            create_export(snapshot=snapshot, format="trl", by=person)


def test_a_pool_without_gold_answers_says_so(pool: Pool, manager: User) -> None:
    with pytest.raises(LabelingError, match="No question of Algebra"):
        create_snapshot(pool=pool, by=manager)


def test_the_command_writes_files_or_says_why_not(
    labeled_run: SelectionRun, pool: Pool, tmp_path: Path, capsys
) -> None:
    call_command("export", "--pool", pool.name, "--format", "jsonl", "--out", str(tmp_path))

    assert "3 questions" in capsys.readouterr().out
    assert len((tmp_path / "train.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CommandError, match=r"cannot be written to .*Not a directory"):
        call_command("export", "--pool", pool.name, "--format", "trl", "--out", str(tmp_path / "file" / "folder"))
    with pytest.raises(CommandError, match="no pool named"):
        call_command("export", "--pool", "Nothing", "--format", "trl", "--out", str(tmp_path))


@pytest.mark.parametrize(
    ("blindness", "origin", "has_answers", "said"),
    [
        ("blind", "first", True, "blind"),
        ("reveal_after", "first", True, "blind"),
        ("reveal_after", "after_reveal", True, "after_reveal"),
        ("shown_first", "first", True, "shown_first"),
        ("shown_first", "first", False, "blind"),  # there was nothing to show
    ],
)
def test_every_row_says_what_people_had_seen_of_the_models_answers(
    pool: Pool, annotator: User, tmp_path: Path, blindness: str, origin: str, has_answers: bool, said: str
) -> None:
    round = factories.make_round(pool=pool, blindness=blindness)
    slot = factories.make_held_slot(round=round, user=annotator)
    slot.annotations.create(annotator=annotator, answer="7", origin=origin)
    Slot.objects.filter(pk=slot.pk).update(state=Slot.State.DONE, lease_until=None)
    if has_answers:
        ModelAnswers.objects.create(run=round.run, question_fingerprint=slot.question.fingerprint, answers=["7", "8"])
    GoldAnswer.objects.create(question=slot.question, round=round, answer="7", source=GoldAnswer.Source.SINGLE)

    snapshot = create_snapshot(pool=pool, by=None)

    for format in Export.Format.values:
        create_export(snapshot=snapshot, format=format, by=None, out_dir=tmp_path / format)
    assert rows_in(tmp_path / "trl")[0]["blindness"] == said
    assert rows_in(tmp_path / "verl")[0]["extra_info"]["blindness"] == said
    line = json.loads((tmp_path / "jsonl" / "train.jsonl").read_text(encoding="utf-8"))
    assert line["provenance"]["blindness"] == said


def rows_in(directory: Path) -> list[dict]:
    return pq.read_table(directory / "train.parquet").to_pylist()
