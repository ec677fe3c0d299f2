"""Staged questions into a pool or a calibration set, in chunks; a preview is the same without the writing."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import reset_queries
from django.utils.translation import gettext as _

from labeling.engine.rows import RejectedRow
from labeling.imports.destination import Destination, Stored
from labeling.imports.report import ImportReport
from labeling.imports.staging import Candidate, StagedQuestions, conflict
from labeling.models import ImportBatch

ROWS_AT_ONCE = 500


def bring_in(
    staged: StagedQuestions, destination: Destination, *, batch: ImportBatch | None, write: bool
) -> ImportReport:
    """Account for every question of the file and, with ``write``, bring in the new and the changed ones.

    A row is new, unchanged, changed (same id, other content), a duplicate (same text as a line before it, or as a
    question that is there under another id) or rejected. White space and Unicode normal form are no difference. The
    text of a question with votes or slots cannot change: such a row is rejected as ``question_in_use``.
    Time is linear in the rows and memory bounded. The caller holds the transaction. To be called once.
    """
    for chunk in staged.chunks(ROWS_AT_ONCE):
        _place(chunk, destination, staged.report, batch, write)
        reset_queries()  # with DEBUG Django remembers every statement
    return staged.report


def _place(
    chunk: Sequence[Candidate], destination: Destination, report: ImportReport, batch: ImportBatch | None, write: bool
) -> None:
    """Compare a chunk with what is there, and bring it in."""
    by_uid = destination.by_uid(row.uid for row in chunk)
    elsewhere = destination.by_fingerprint(
        row.fingerprint for row in chunk if (kept := by_uid.get(row.uid)) is None or kept.fingerprint != row.fingerprint
    )
    counterparts = destination.counterparts([row.fingerprint for row in chunk])
    asked_otherwise = [
        kept for row in chunk if (kept := by_uid.get(row.uid)) is not None and _is_asked_otherwise(kept, row)
    ]
    in_use = destination.in_use(asked_otherwise)
    new: list[Candidate] = []
    changed: dict[int, Candidate] = {}
    for row in chunk:
        kept = by_uid.get(row.uid)
        if same := elsewhere.get(row.fingerprint):
            _report_duplicate(row, same, destination, report)
            continue
        if kept is None:
            report.new += 1
            new.append(row)
        elif not _differs(kept, row, destination):
            report.unchanged += 1
        elif kept.pk in in_use:
            message = _(
                "Question “%(uid)s” has votes or slots, so its text, choices and kind must stay. Give the new "
                "wording an id of its own."
            ) % {"uid": kept.uid}
            report.reject(RejectedRow(row.line, "question_in_use", message, row.text[:200]))
            continue
        else:
            report.changed += 1
            changed[kept.pk] = row
        if row.fingerprint in counterparts:
            where = counterparts[row.fingerprint]
            message = _("The same question is in %(where)s; it is not picked, since its answer is known.") % {
                "where": where
            }
            report.warnings.add(row.line, "in_pool_and_calibration", message)
    if write:
        destination.create(new, batch)
        destination.update(changed)


def _report_duplicate(row: Candidate, same: Stored, destination: Destination, report: ImportReport) -> None:
    if destination.has_answers and same.answer != row.answer:
        found = _("The calibration set has this question with another answer, as “%(uid)s”") % {"uid": same.uid}
        report.reject(conflict(row.line, row.answer, found))
    else:
        message = _("The %(noun)s has this question already, as “%(uid)s”.") % {
            "noun": destination.noun,
            "uid": same.uid,
        }
        report.duplicates.add(row.line, "duplicate", message, duplicate_of=same.uid)


def _is_asked_otherwise(kept: Stored, row: Candidate) -> bool:
    return kept.fingerprint != row.fingerprint or bool(row.answer_kind and row.answer_kind != kept.answer_kind)


def _differs(kept: Stored, row: Candidate, destination: Destination) -> bool:
    return (
        _is_asked_otherwise(kept, row)
        or {**kept.metadata, **row.metadata} != kept.metadata
        or (destination.has_answers and kept.answer != row.answer)
    )
