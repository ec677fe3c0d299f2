"""Bringing files of questions in: preview, map the columns, commit or discard; or all at once from the shell.

A commit reads the file again and then writes in one transaction. Killed at any point it has changed nothing, and
running it again is the whole import; a resumable batch would leave half a pool on view in the meantime. The price is
that SQLite lets nobody else write for the seconds of the second part; PostgreSQL does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any

from django.core.files import File
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions.people import create_pool
from labeling.audit import record_event
from labeling.engine.rows import FIELDS, open_questions
from labeling.errors import Conflict, LabelingError
from labeling.imports.destination import Destination
from labeling.imports.files import path_of, remove_stored, sha256_of, store_upload
from labeling.imports.questions import bring_in
from labeling.imports.report import ImportReport
from labeling.imports.staging import StagedQuestions
from labeling.models import CalibrationSet, ImportBatch, Pool, User

PREVIEW_DAYS = 7
MAX_NAME_CHARACTERS = 120


def preview_import(
    *,
    file: File,
    filename: str,
    by: User | None,
    pool: Pool | None = None,
    calibration_set: CalibrationSet | None = None,
    mapping: Mapping[str, str] | None = None,
    repair: bool = False,
) -> ImportBatch:
    """Keep an uploaded file and say what importing it would do; nothing else changes.

    Give a pool or a calibration set; one that is not stored yet is made by the commit. ``mapping`` (field -> column)
    goes before what is recognised. The batch has ``counts`` (new, unchanged, changed, duplicates, rejected, warnings),
    ``rejected`` and ``warnings`` (line, code, message, ...; duplicates are among the warnings), ``sample`` (the first
    rows) and ``mapping``: ``columns`` (field -> column in use), ``names`` (all columns) and ``repair``.
    """
    batch = ImportBatch(pool=pool, created_by=by)
    if calibration_set is not None and calibration_set._state.adding:
        batch.new_set, batch.new_set_pool = calibration_set.name, calibration_set.pool
    else:
        batch.calibration_set = calibration_set
    _check_may_import(batch, by)
    _discard_abandoned_previews()
    batch.filename = PurePath(filename.replace("\\", "/")).name[-255:]
    batch.stored_as, batch.sha256 = store_upload(file.chunks())
    try:
        _preview(batch, mapping or {}, repair)
        batch.save()
    except BaseException:
        remove_stored(batch.stored_as)
        raise
    return batch


def map_import(*, batch: ImportBatch, mapping: Mapping[str, str], by: User | None, repair: bool = False) -> ImportBatch:
    """Preview the same file again with other columns, or with LaTeX that JSON ate repaired."""
    _check_may_import(batch, by)
    _check_previewed(batch)
    _preview(batch, mapping, repair)
    batch.save(update_fields=["mapping", "counts", "rejected", "warnings", "sample"])
    return batch


def commit_import(*, batch: ImportBatch, by: User | None) -> ImportBatch:
    """Bring a previewed file in; committing it again changes nothing. The counts become those of what was done."""
    _check_may_import(batch, by)
    batch.refresh_from_db()
    if batch.status == ImportBatch.Status.COMMITTED:
        return batch
    _check_previewed(batch)
    mapping, repair = _previewed_mapping(batch), batch.mapping["repair"]
    with _staged(path_of(batch.stored_as), batch, mapping, repair) as staged, _one_at_a_time(batch):
        batch = ImportBatch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
        if batch.status == ImportBatch.Status.COMMITTED:
            return batch
        _check_previewed(batch)
        makes_set = bool(batch.new_set)
        if makes_set:
            into = calibration_set_to_fill(name=batch.new_set, pool=batch.new_set_pool, by=by)
            batch.calibration_set = _stored(into, by)
            batch.new_set, batch.new_set_pool = "", None
            batch.save(update_fields=["calibration_set", "new_set", "new_set_pool"])
        report = bring_in(staged, _destination(batch), batch=batch, write=True)
        if not report.accepted:
            raise Conflict(_("No row of the file can be imported. Choose other columns."), code="nothing_to_import")
        stored_as, batch.stored_as = batch.stored_as, ""
        _mark_committed(batch, report, repair, by)
        transaction.on_commit(lambda: remove_stored(stored_as))
    return batch


@transaction.atomic
def discard_import(*, batch: ImportBatch, by: User | None) -> ImportBatch:
    """Drop a previewed file; dropping it again changes nothing."""
    _check_may_import(batch, by)
    batch = ImportBatch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
    if batch.status != ImportBatch.Status.DISCARDED:
        _check_previewed(batch)
        _discard(batch)
    return batch


def import_pool_file(
    path: Path, *, pool_name: str, mapping: Mapping[str, str], repair: bool = False, dry_run: bool = False
) -> ImportReport:
    """Import a file into the pool of that name, from the shell; the pool is created where there is none.

    With ``dry_run``, or where no row is accepted, nothing changes.
    """
    batch = ImportBatch(filename=path.name[-255:], sha256=sha256_of(path))
    name = " ".join(pool_name.split())
    with _opened(path, path.name, mapping, repair, has_answers=False) as staged, transaction.atomic():
        pool = Pool.objects.filter(name__iexact=name).first()
        if dry_run:
            return bring_in(staged, Destination.of_pool(pool), batch=None, write=False)
        batch.pool = pool or create_pool(name=name, by=None)
        return _bring_in_now(staged, batch, repair)


def import_calibration_file(
    path: Path,
    *,
    set_name: str,
    pool_name: str = "",
    mapping: Mapping[str, str],
    repair: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Import a file with answers into the calibration set of that name, from the shell.

    The set is created where there is none; a new one belongs to the pool of that name, or to all pools where none is
    given. With ``dry_run``, or where no row is accepted, nothing changes.
    """
    batch = ImportBatch(filename=path.name[-255:], sha256=sha256_of(path))
    with _opened(path, path.name, mapping, repair, has_answers=True) as staged, transaction.atomic():
        pool = pool_named(pool_name) if pool_name else None
        if dry_run:
            kept = CalibrationSet.objects.filter(name__iexact=" ".join(set_name.split())).first()
            destination = Destination.of_calibration_set(kept, kept.pool if kept else pool)
            return bring_in(staged, destination, batch=None, write=False)
        batch.calibration_set = _stored(calibration_set_to_fill(name=set_name, pool=pool, by=None), None)
        return _bring_in_now(staged, batch, repair)


def pool_named(name: str) -> Pool:
    """Return the pool of that name, whatever its case. Raises LabelingError that names those there are."""
    pool = Pool.objects.filter(name__iexact=" ".join(name.split())).first()
    if pool is None:
        names = ", ".join(f"“{known}”" for known in Pool.objects.values_list("name", flat=True)[:10])
        raise LabelingError(
            _("There is no pool named “%(name)s”. There are: %(names)s.") % {"name": name, "names": names or _("none")},
            code="no_such_pool",
        )
    return pool


def calibration_set_named(name: str) -> CalibrationSet:
    """Return the calibration set of that name, whatever its case. Raises LabelingError that names those there are."""
    kept = CalibrationSet.objects.filter(name__iexact=" ".join(name.split())).select_related("pool").first()
    if kept is None:
        names = ", ".join(f"“{known}”" for known in CalibrationSet.objects.values_list("name", flat=True)[:10])
        raise LabelingError(
            _("There is no calibration set “%(name)s”. There are: %(names)s.")
            % {"name": name, "names": names or _("none")},
            code="no_such_set",
        )
    return kept


def calibration_set_to_fill(*, name: str, pool: Pool | None, by: User | None) -> CalibrationSet:
    """Return the calibration set of that name; where there is none a new one, which the import's commit stores.

    ``pool`` None shares a new one. A set that belongs to another pool, or that the person may not change, is refused.
    """
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME_CHARACTERS:
        raise LabelingError(
            _("A calibration set needs a name of at most %(most)s characters.") % {"most": MAX_NAME_CHARACTERS},
            code="bad_name",
        )
    kept = CalibrationSet.objects.filter(name__iexact=name).select_related("pool").first()
    if kept is None:
        new = CalibrationSet(name=name, pool=pool, created_by=by)
        policies.check_can_change_set(new, by)
        return new
    policies.check_can_change_set(kept, by)
    if pool is not None and kept.pool is not None and kept.pool != pool:
        raise Conflict(
            _("The calibration set “%(name)s” belongs to another pool. Choose another name.") % {"name": kept},
            code="name_taken",
        )
    return kept


def _stored(calibration_set: CalibrationSet, by: User | None) -> CalibrationSet:
    if calibration_set._state.adding:
        calibration_set.save()
        name, pool = calibration_set.name, calibration_set.pool
        record_event("calibration_set.created", target=calibration_set, by=by, pool=pool, name=name)
    return calibration_set


def _preview(batch: ImportBatch, mapping: Mapping[str, str], repair: bool) -> None:
    with _staged(path_of(batch.stored_as), batch, mapping, repair) as staged:
        _record(batch, bring_in(staged, _destination(batch), batch=None, write=False), repair)


def _previewed_mapping(batch: ImportBatch) -> dict[str, str]:
    """The columns that were previewed, and no others that might be recognised."""
    return {field: batch.mapping["columns"].get(field, "") for field in FIELDS}


def _staged(path: Path, batch: ImportBatch, mapping: Mapping[str, str], repair: bool) -> StagedQuestions:
    return _opened(path, batch.filename, mapping, repair, has_answers=batch.target_set is not None)


def _opened(path: Path, name: str, mapping: Mapping[str, str], repair: bool, *, has_answers: bool) -> StagedQuestions:
    file = open_questions(path, name=name, mapping=dict(mapping), need_answer=has_answers, repair=repair)
    return StagedQuestions(file, has_answers=has_answers)


def _destination(batch: ImportBatch) -> Destination:
    if batch.target_set is not None:
        return Destination.of_calibration_set(batch.calibration_set, batch.target_set.pool)
    return Destination.of_pool(batch.pool)


def _bring_in_now(staged: StagedQuestions, batch: ImportBatch, repair: bool) -> ImportReport:
    """Preview and commit in one. The caller's transaction is undone where nothing is accepted."""
    batch.save()
    with _one_at_a_time(batch):
        report = bring_in(staged, _destination(batch), batch=batch, write=True)
        _mark_committed(batch, report, repair, None)
    if not report.accepted:
        transaction.set_rollback(True)
    return report


@contextmanager
def _one_at_a_time(batch: ImportBatch) -> Iterator[None]:
    """A transaction in which no other import changes the same pool or calibration set."""
    try:
        with transaction.atomic():
            if batch.pool is not None:
                Pool.objects.select_for_update(no_key=True).get(pk=batch.pool.pk)
            elif batch.calibration_set is not None:
                CalibrationSet.objects.select_for_update(no_key=True).get(pk=batch.calibration_set.pk)
            yield
    except IntegrityError as error:
        raise Conflict(
            _("Something else brought in some of these questions just now. Run the import again; nothing was changed.")
        ) from error


def _record(batch: ImportBatch, report: ImportReport, repair: bool) -> None:
    batch.mapping = {"columns": report.columns, "names": report.names, "repair": repair}
    batch.counts, batch.rejected, batch.sample = report.counts(), report.rejected.listed, report.sample
    batch.warnings = report.duplicates.listed + report.warnings.listed


def _mark_committed(batch: ImportBatch, report: ImportReport, repair: bool, by: User | None) -> None:
    _record(batch, report, repair)
    batch.status, batch.committed_at = ImportBatch.Status.COMMITTED, timezone.now()
    batch.save()
    about: dict[str, Any] = {"filename": batch.filename, "sha256": batch.sha256, **report.counts()}
    record_event("import.committed", target=batch, by=by, pool=_pool_of(batch), **about)


def _pool_of(batch: ImportBatch) -> Pool | None:
    return batch.pool if batch.target_set is None else batch.target_set.pool


def _check_may_import(batch: ImportBatch, by: User | None) -> None:
    if batch.target_set is not None:
        policies.check_can_change_set(batch.target_set, by)
    elif batch.pool is not None:
        policies.check_can_manage(batch.pool, by)


def _check_previewed(batch: ImportBatch) -> None:
    if batch.status != ImportBatch.Status.PREVIEWED:
        raise Conflict(
            _("This import was %(status)s already. Upload the file again.")
            % {"status": batch.get_status_display().lower()}
        )
    if not path_of(batch.stored_as).exists():
        raise Conflict(_("The uploaded file is no longer kept. Upload it again."))


def _discard(batch: ImportBatch) -> None:
    stored_as = batch.stored_as
    batch.status, batch.stored_as = ImportBatch.Status.DISCARDED, ""
    batch.save(update_fields=["status", "stored_as"])
    transaction.on_commit(lambda: remove_stored(stored_as))


@transaction.atomic
def _discard_abandoned_previews() -> None:
    before = timezone.now() - timedelta(days=PREVIEW_DAYS)
    for batch in ImportBatch.objects.filter(status=ImportBatch.Status.PREVIEWED, created_at__lt=before):
        _discard(batch)
