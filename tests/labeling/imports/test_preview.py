"""In the browser: a file is kept, shown, mapped, and then committed or discarded."""

from datetime import timedelta

import pytest
from django.utils import timezone

from labeling import policies
from labeling.actions.imports import (
    calibration_set_to_fill,
    commit_import,
    discard_import,
    map_import,
    preview_import,
)
from labeling.errors import Conflict, EngineFailure, LabelingError, NotAllowed
from labeling.models import AuditEvent, CalibrationItem, CalibrationSet, ImportBatch, Question
from tests import factories


def kept_files(media_root) -> list:
    return [path for path in media_root.rglob("*") if path.is_file()]


def test_a_preview_shows_everything_and_changes_nothing(pool, manager, upload, media_root):
    file = upload({"question": "What?", "answer": 1}, {"question": "What? "}, "{broken", name="../a/pool.jsonl")

    batch = preview_import(file=file, filename="..\\a\\pool.jsonl", pool=pool, by=manager)

    assert (batch.status, batch.filename) == ("previewed", "pool.jsonl")
    assert batch.counts == {"new": 1, "unchanged": 0, "changed": 0, "duplicates": 1, "rejected": 1, "warnings": 0}
    assert batch.mapping == {
        "columns": {"question": "question", "answer": "answer"},
        "names": ["question", "answer"],
        "repair": False,
    }
    assert batch.sample == [{"line": 1, "uid": batch.sample[0]["uid"], "text": "What?"}]
    assert [row["line"] for row in batch.rejected] == [3]
    assert [(row["line"], row["code"]) for row in batch.warnings] == [(2, "duplicate")]
    assert not Question.objects.exists()
    [kept] = kept_files(media_root)
    assert kept.parent.name == "imports"
    assert "pool" not in kept.name
    assert kept.stat().st_mode & 0o077 == 0


def test_a_commit_brings_in_what_was_previewed_once(pool, manager, upload, media_root):
    batch = preview_import(file=upload({"question": "a"}), filename="pool.jsonl", pool=pool, by=manager)

    committed = commit_import(batch=batch, by=manager)
    again = commit_import(batch=batch, by=manager)

    assert (committed.status, committed.counts["new"], again.counts["new"]) == ("committed", 1, 1)
    assert Question.objects.get(pool=pool).import_batch == batch
    assert AuditEvent.objects.filter(action="import.committed").count() == 1


def test_the_file_is_deleted_after_the_commit(pool, manager, upload, media_root, django_capture_on_commit_callbacks):
    batch = preview_import(file=upload({"question": "a"}), filename="pool.jsonl", pool=pool, by=manager)

    with django_capture_on_commit_callbacks(execute=True):
        commit_import(batch=batch, by=manager)

    assert kept_files(media_root) == []


def test_the_counts_of_a_commit_are_those_of_what_was_done(pool, manager, upload):
    first = preview_import(file=upload({"question": "a"}), filename="a.jsonl", pool=pool, by=manager)
    second = preview_import(
        file=upload({"question": "a"}, {"question": "b"}), filename="b.jsonl", pool=pool, by=manager
    )
    commit_import(batch=first, by=manager)

    counts = commit_import(batch=second, by=manager).counts

    assert (counts["new"], counts["unchanged"]) == (1, 1)


def test_columns_are_mapped_on_the_kept_file_and_the_commit_keeps_to_them(pool, manager, upload):
    file = upload({"wording": "a \\frac{1}{2}".replace("\\f", "\f"), "id": "1", "key": "2"})
    batch = preview_import(file=file, filename="pool.jsonl", pool=pool, by=manager)
    assert batch.rejected[0]["code"] == "missing_question_column"
    assert batch.mapping["names"] == ["wording", "id", "key"]

    map_import(batch=batch, mapping={"question": "wording", "uid": "key"}, repair=True, by=manager)
    commit_import(batch=batch, by=manager)

    question = Question.objects.get()
    assert (question.uid, question.text) == ("2", r"a \frac{1}{2}")


def test_a_column_mapped_to_nothing_stays_unused(pool, manager, upload):
    batch = preview_import(file=upload({"question": "a", "id": "1"}), filename="p.jsonl", pool=pool, by=manager)

    map_import(batch=batch, mapping={"uid": ""}, by=manager)
    commit_import(batch=batch, by=manager)

    assert Question.objects.get().uid != "1"


def test_a_mapping_to_a_column_that_is_not_there_is_refused(pool, manager, upload):
    batch = preview_import(file=upload({"question": "a"}), filename="p.jsonl", pool=pool, by=manager)

    with pytest.raises(EngineFailure, match="there is no column “b”"):
        map_import(batch=batch, mapping={"question": "b"}, by=manager)


def test_a_discarded_import_is_gone(pool, manager, upload, media_root, django_capture_on_commit_callbacks):
    batch = preview_import(file=upload({"question": "a"}), filename="p.jsonl", pool=pool, by=manager)

    with django_capture_on_commit_callbacks(execute=True):
        discard_import(batch=batch, by=manager)
        discarded = discard_import(batch=batch, by=manager)

    assert discarded.status == "discarded"
    assert kept_files(media_root) == []
    for act in (commit_import, lambda **names: map_import(mapping={}, **names)):
        with pytest.raises(Conflict, match="discarded already"):
            act(batch=discarded, by=manager)


def test_a_committed_import_cannot_be_discarded(pool, manager, upload):
    batch = preview_import(file=upload({"question": "a"}), filename="p.jsonl", pool=pool, by=manager)
    commit_import(batch=batch, by=manager)

    with pytest.raises(Conflict, match="committed already"):
        discard_import(batch=batch, by=manager)


def test_a_file_that_is_gone_is_said_to_be(pool, manager, upload, media_root):
    batch = preview_import(file=upload({"question": "a"}), filename="p.jsonl", pool=pool, by=manager)
    kept_files(media_root)[0].unlink()

    with pytest.raises(Conflict, match="Upload it again"):
        commit_import(batch=batch, by=manager)


def test_an_upload_past_the_limit_is_refused_and_not_kept(pool, manager, upload, media_root, settings):
    settings.ASSAY_MAX_UPLOAD_BYTES = 10

    with pytest.raises(LabelingError, match="more than 10 bytes"):
        preview_import(file=upload({"question": "a"}), filename="p.jsonl", pool=pool, by=manager)

    assert kept_files(media_root) == []
    assert not ImportBatch.objects.exists()


def test_abandoned_previews_are_cleared_away(pool, manager, upload, media_root, django_capture_on_commit_callbacks):
    old = preview_import(file=upload({"question": "a"}), filename="p.jsonl", pool=pool, by=manager)
    ImportBatch.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=8))

    with django_capture_on_commit_callbacks(execute=True):
        preview_import(file=upload({"question": "b"}), filename="p.jsonl", pool=pool, by=manager)

    old.refresh_from_db()
    assert (old.status, len(kept_files(media_root))) == ("discarded", 1)


def test_only_managers_import(pool, manager, annotator, outsider, upload):
    for user in (annotator, outsider):
        with pytest.raises(NotAllowed):
            preview_import(file=upload({"question": "a"}), filename="p.jsonl", pool=pool, by=user)
        with pytest.raises(NotAllowed):
            calibration_set_to_fill(name="C", pool=None, by=user)
        with pytest.raises(NotAllowed):
            calibration_set_to_fill(name="C", pool=pool, by=user)
    batch = preview_import(file=upload({"question": "a"}), filename="p.jsonl", pool=pool, by=manager)
    for act in (commit_import, discard_import, lambda **names: map_import(mapping={}, **names)):
        with pytest.raises(NotAllowed):
            act(batch=batch, by=annotator)


def test_a_calibration_set_shows_its_answers_before_they_are_sealed(pool, manager, upload):
    calibration_set = calibration_set_to_fill(name=" My  set ", pool=pool, by=manager)
    batch = preview_import(
        file=upload({"question": "a", "answer": 7, "kind": "number"}), filename="c.jsonl",
        calibration_set=calibration_set, by=manager,
    )  # fmt: skip
    batch = commit_import(batch=batch, by=manager)

    assert batch.sample == [{"line": 1, "uid": batch.sample[0]["uid"], "text": "a", "answer": "7", "kind": "number"}]
    assert batch.calibration_set == calibration_set_to_fill(name="my set", pool=None, by=manager)
    assert CalibrationItem.objects.get(calibration_set__name="My set").answer == "7"


def test_a_preview_makes_no_calibration_set_and_a_discarded_one_leaves_none(pool, manager, upload):
    def preview(name):
        return preview_import(
            file=upload({"question": "a", "answer": 7}), filename="c.jsonl", by=manager,
            calibration_set=calibration_set_to_fill(name=name, pool=pool, by=manager),
        )  # fmt: skip

    dropped, kept, same = preview("Keys"), preview("Keys"), preview("KEYS")
    assert not CalibrationSet.objects.exists()
    discard_import(batch=dropped, by=manager)
    assert not CalibrationSet.objects.exists()
    assert not AuditEvent.objects.filter(action="calibration_set.created").exists()

    made = commit_import(batch=kept, by=manager).calibration_set
    assert (made.name, made.pool, made.created_by) == ("Keys", pool, manager)
    assert commit_import(batch=same, by=manager).counts["unchanged"] == 1
    assert CalibrationSet.objects.count() == 1


def test_a_file_without_a_usable_row_makes_no_calibration_set(pool, manager, upload):
    batch = preview_import(
        file=upload({"question": "a"}), filename="c.jsonl", by=manager,
        calibration_set=calibration_set_to_fill(name="Keys", pool=pool, by=manager),
    )  # fmt: skip

    with pytest.raises(Conflict, match="can be imported"):
        commit_import(batch=batch, by=manager)

    assert not CalibrationSet.objects.exists()


def test_only_who_made_a_shared_set_and_staff_change_its_truths(pool, manager, upload):
    def corrected(answer, by):
        into = calibration_set_to_fill(name="Shared", pool=None, by=by)
        file = upload({"id": "q", "question": "a", "answer": answer})
        batch = preview_import(file=file, filename="c.jsonl", calibration_set=into, by=by)
        return commit_import(batch=batch, by=by)

    other = factories.make_user()
    factories.make_pool(manager=other)
    batch = corrected(7, manager)

    with pytest.raises(NotAllowed, match="used by every pool"):
        corrected(8, other)
    for act in (map_import, commit_import, discard_import):
        with pytest.raises(NotAllowed):
            act(batch=batch, by=other, **({"mapping": {}} if act is map_import else {}))
    assert CalibrationItem.objects.get().answer == "7"
    assert corrected(9, manager).counts["changed"] == 1
    assert corrected(10, factories.make_user(is_staff=True)).counts["changed"] == 1
    assert policies.can_manage_shared(other)


def test_truths_that_cannot_be_read_are_named_and_count(pool, manager, upload):
    answers = ["7", "I do not know, perhaps seven or so", "9" * 12_000, "1/0", "10^{10^{10}}", "Paris (France)"]
    rows = [{"question": f"q{n}", "answer": answer} for n, answer in enumerate(answers)]

    batch = preview_import(
        file=upload(*rows), filename="c.jsonl", by=manager,
        calibration_set=calibration_set_to_fill(name="Keys", pool=pool, by=manager),
    )  # fmt: skip

    warned = {row["line"]: row["message"] for row in batch.warnings if row["code"] == "answer_unreadable"}
    assert sorted(warned) == [2, 3, 4, 5]
    assert "divides by zero" in warned[4]
    assert batch.counts["new"] == len(answers)


def test_a_question_that_came_in_meanwhile_is_no_crash(pool, manager, upload, monkeypatch):
    batch = preview_import(file=upload({"id": "q", "question": "a"}), filename="p.jsonl", pool=pool, by=manager)
    factories.make_question(pool=pool, uid="q", text="b")
    monkeypatch.setattr("labeling.imports.destination.Destination.by_uid", lambda self, uids: {})

    with pytest.raises(Conflict, match="nothing was changed"):
        commit_import(batch=batch, by=manager)

    assert Question.objects.get().text == "b"
