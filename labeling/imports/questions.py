"""Rows of a file into a pool or a calibration set, in chunks; a preview is the same without the writing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from labeling.engine.rows import QuestionFile, QuestionRow, RejectedRow, near_key, question_uid
from labeling.imports.destination import Destination
from labeling.imports.first_seen import FirstSeen
from labeling.imports.report import ImportReport
from labeling.models import ImportBatch

ROWS_AT_ONCE = 500


class _Candidate(NamedTuple):
    row: QuestionRow
    fingerprint: str


def import_questions(
    file: QuestionFile, destination: Destination, *, batch: ImportBatch | None = None, write: bool
) -> ImportReport:
    """Account for every row of the file and, with ``write``, bring in the new and the changed ones.

    A row is new, unchanged, changed (same id, other content), a duplicate (same text as a line before it, or as a
    question that is there under another id) or rejected. White space and Unicode normal form are no difference. The
    text of a question with votes or slots cannot change: such a row is rejected as ``question_in_use``.
    Time is linear in the rows and memory bounded. The caller holds the transaction.
    """
    report = ImportReport(columns=file.columns.mapping(), names=file.names)
    for field, others in file.columns.ambiguous.items():
        taken = report.columns[field]
        message = (
            f"The {field} is taken from “{taken}”; {', '.join(f'“{name}”' for name in others)} could be meant too."
        )
        report.warnings.add(1, "ambiguous_columns", message)
    with FirstSeen() as seen:
        candidates = _first_in_file(file, destination, seen, report)
        while chunk := list(islice(candidates, ROWS_AT_ONCE)):
            _place(chunk, destination, report, batch, write)
    return report


def _first_in_file(
    file: QuestionFile, destination: Destination, seen: FirstSeen, report: ImportReport
) -> Iterator[_Candidate]:
    """Yield the rows whose question no line before them has; report on all others."""
    for row in file:
        if isinstance(row, RejectedRow):
            report.reject(row)
            continue
        fingerprint = question_uid(row.text, row.choices) if row.uid_given else row.uid
        earlier = seen.line_of("text", fingerprint)
        if earlier is not None:
            if destination.has_answers and seen.line_of(f"answer {row.answer}", fingerprint) is None:
                report.reject(_conflict(row, f"Line {earlier} asks the same question and has another answer"))
            else:
                report.duplicates.add(
                    row.line, "duplicate", f"Same question as line {earlier}.", duplicate_of_line=earlier
                )
            continue
        if row.uid_given and (earlier := seen.line_of("uid", row.uid)) is not None:
            message = f"Line {earlier} has the same id, “{row.uid}”, and another text. Give each question its own id."
            report.reject(RejectedRow(row.line, "duplicate_id", message, row.uid))
            continue
        seen.add("text", fingerprint, row.line)
        if destination.has_answers:
            seen.add(f"answer {row.answer}", fingerprint, row.line)
        if row.uid_given:
            seen.add("uid", row.uid, row.line)
        for warning in row.warnings:
            report.warnings.add(row.line, "row_warning", f"{warning[:1].upper()}{warning[1:]}")
        near = "\n".join(map(near_key, (row.text, *row.choices)))
        if (earlier := seen.line_of("near", near)) is not None:
            message = f"Nearly the same question as line {earlier}; both are kept."
            report.warnings.add(row.line, "nearly_equal", message, nearly_equal_to_line=earlier)
        seen.add("near", near, row.line)
        report.show(row, with_answer=destination.has_answers)
        yield _Candidate(row, fingerprint)


def _place(
    chunk: Sequence[_Candidate], destination: Destination, report: ImportReport, batch: ImportBatch | None, write: bool
) -> None:
    """Compare a chunk with what is there, and bring it in."""
    by_uid = destination.by_uid(row for row, _ in chunk)
    by_fingerprint = destination.by_fingerprint(fingerprint for _, fingerprint in chunk)
    counterparts = destination.counterparts([fingerprint for _, fingerprint in chunk])
    in_use = destination.in_use(
        [
            kept
            for row, fingerprint in chunk
            if (kept := by_uid.get(row.uid)) and _is_asked_otherwise(kept, row, fingerprint)
        ]
    )
    new, changed = [], []
    for row, fingerprint in chunk:
        kept = by_uid.get(row.uid)
        same = by_fingerprint.get(fingerprint)
        if same is not None and same.uid != row.uid:
            if destination.has_answers and same.answer != row.answer:
                report.reject(_conflict(row, f"The set has this question with another answer, as “{same.uid}”"))
            else:
                message = f"The {destination.noun} has this question already, as “{same.uid}”."
                report.duplicates.add(row.line, "duplicate", message, duplicate_of=same.uid)
            continue
        if kept is None:
            report.new += 1
            new.append(destination.make(row, fingerprint, batch))
        elif not _differs(kept, row, fingerprint):
            report.unchanged += 1
        elif kept.pk in in_use:
            message = (
                f"Question “{kept.uid}” has votes or slots, so its text, choices and kind must stay. "
                "Give the new wording an id of its own."
            )
            report.reject(RejectedRow(row.line, "question_in_use", message, row.text[:200]))
            continue
        else:
            report.changed += 1
            changed.append(_updated(kept, row, fingerprint))
        if fingerprint in counterparts:
            where = counterparts[fingerprint]
            message = f"The same question is in {where}; it will never be picked, since its answer is known."
            report.warnings.add(row.line, "in_pool_and_calibration", message)
    if write:
        fields = ["text", "fingerprint", "choices", "answer_kind", "metadata"] + ["answer"] * destination.has_answers
        destination.model.objects.bulk_create(new)
        destination.model.objects.bulk_update(changed, fields)


def _is_asked_otherwise(kept: Any, row: QuestionRow, fingerprint: str) -> bool:
    return kept.fingerprint != fingerprint or bool(row.answer_kind and row.answer_kind != kept.answer_kind)


def _differs(kept: Any, row: QuestionRow, fingerprint: str) -> bool:
    return (
        _is_asked_otherwise(kept, row, fingerprint)
        or {**kept.metadata, **row.metadata} != kept.metadata
        or getattr(kept, "answer", row.answer) != row.answer
    )


def _updated(kept: Any, row: QuestionRow, fingerprint: str) -> Any:
    if kept.fingerprint != fingerprint:
        kept.text, kept.fingerprint, kept.choices = row.text, fingerprint, list(row.choices)
    kept.answer_kind = row.answer_kind or kept.answer_kind
    kept.metadata = {**kept.metadata, **row.metadata}
    if hasattr(kept, "answer"):
        kept.answer = row.answer
    return kept


def _conflict(row: QuestionRow, found: str) -> RejectedRow:
    message = f"{found}; this row says “{row.answer[:60]}”. Correct one of them or leave this row out."
    return RejectedRow(row.line, "conflicting_answer", message, row.answer[:200])
