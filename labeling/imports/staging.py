"""Reading a file to its end before anything is written: what is wrong within it, and its questions, once each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import islice
from types import TracebackType
from typing import NamedTuple, Self

from django.utils.translation import gettext as _

from labeling.engine.answers import AnswerPolicy, read_as
from labeling.engine.rows import QuestionFile, QuestionRow, RejectedRow, near_key, question_uid
from labeling.imports.first_seen import FirstSeen
from labeling.imports.report import ImportReport


class Candidate(NamedTuple):
    """A question of the file, to be compared with those that are there already."""

    line: int
    uid: str
    text: str
    choices: list[str]
    answer: str
    answer_kind: str
    metadata: dict[str, object]
    fingerprint: str


class StagedQuestions:
    """The questions of a file, in a temporary file, and what was found while reading it.

    Parsing and comparing rows takes most of an import's time; done here, it holds no lock on the database.
    """

    def __init__(self, file: QuestionFile, *, has_answers: bool) -> None:
        self.has_answers = has_answers
        self.report = ImportReport(columns=file.columns.mapping(), names=file.names)
        for field, others in file.columns.ambiguous.items():
            taken, also = self.report.columns[field], ", ".join(f"“{name}”" for name in others)
            message = _("The %(field)s is taken from “%(taken)s”; %(also)s could be meant too.") % {
                "field": field,
                "taken": taken,
                "also": also,
            }
            self.report.warnings.add(1, "ambiguous_columns", message)
        self._kept = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  # closed by __exit__
        with FirstSeen() as seen:
            for row in file:
                if isinstance(row, RejectedRow):
                    self.report.reject(row)
                elif candidate := self._first(row, seen):
                    self._kept.write(json.dumps(candidate) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._kept.close()

    def chunks(self, size: int) -> Iterator[list[Candidate]]:
        """Yield the questions in the order of the file."""
        self._kept.seek(0)
        candidates = (Candidate(*json.loads(line)) for line in self._kept)
        while chunk := list(islice(candidates, size)):
            yield chunk

    def _first(self, row: QuestionRow, seen: FirstSeen) -> Candidate | None:
        """Return the row where no line before it has its question; otherwise report it."""
        report = self.report
        fingerprint = question_uid(row.text, row.choices) if row.uid_given else row.uid
        earlier = seen.line_of("text", fingerprint)
        if earlier is not None:
            if self.has_answers and seen.line_of(f"answer {row.answer}", fingerprint) is None:
                report.reject(
                    conflict(
                        row.line,
                        row.answer,
                        _("Line %(earlier)s asks the same and has another answer") % {"earlier": earlier},
                    )
                )
            else:
                message = _("Same question as line %(earlier)s.") % {"earlier": earlier}
                report.duplicates.add(row.line, "duplicate", message, duplicate_of_line=earlier)
            return None
        if row.uid_given and (earlier := seen.line_of("uid", row.uid)) is not None:
            message = _(
                "Line %(earlier)s has the same id, “%(uid)s”, and another text. Give each question its own id."
            ) % {"earlier": earlier, "uid": row.uid}
            report.reject(RejectedRow(row.line, "duplicate_id", message, row.uid))
            return None
        seen.add("text", fingerprint, row.line)
        if self.has_answers:
            seen.add(f"answer {row.answer}", fingerprint, row.line)
        if row.uid_given:
            seen.add("uid", row.uid, row.line)
        self._warn(row, seen)
        report.show(row, with_answer=self.has_answers)
        return Candidate(
            row.line, row.uid, row.text, list(row.choices), row.answer, row.answer_kind, row.metadata, fingerprint
        )

    def _warn(self, row: QuestionRow, seen: FirstSeen) -> None:
        for warning in row.warnings:
            self.report.warnings.add(row.line, "row_warning", f"{warning[:1].upper()}{warning[1:]}")
        if self.has_answers:
            self._warn_of_unreadable(row)
        near = "\n".join(map(near_key, (row.text, *row.choices)))
        if (earlier := seen.line_of("near", near)) is not None:
            message = _("Nearly the same question as line %(earlier)s; both are kept.") % {"earlier": earlier}
            self.report.warnings.add(row.line, "nearly_equal", message, nearly_equal_to_line=earlier)
        else:
            seen.add("near", near, row.line)

    def _warn_of_unreadable(self, row: QuestionRow) -> None:
        """Say where a truth can hardly be found among a model's answers, which counts against the model."""
        read = read_as(row.answer, kind=row.answer_kind, policy=AnswerPolicy())
        if read.readable:
            return
        shown = row.answer if len(row.answer) <= 60 else f"{row.answer[:60]}…"
        message = " ".join(
            [
                _("The answer “%(answer)s” cannot be read.") % {"answer": shown},
                *read.warnings,
                _("It is kept and counts, but hardly ever will an answer of the model be found equal to it."),
            ]
        )
        self.report.warnings.add(row.line, "answer_unreadable", message)


def conflict(line: int, answer: str, found: str) -> RejectedRow:
    """Say that two equal questions have different answers."""
    message = _("%(found)s; this row says “%(answer)s”. Correct one of them or leave this row out.") % {
        "found": found,
        "answer": answer[:60],
    }
    return RejectedRow(line, "conflicting_answer", message, answer[:200])
