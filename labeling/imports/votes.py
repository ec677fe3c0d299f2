"""Votes files, made where the model is, into recorded evidence. What is recorded is never replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from django.utils.translation import gettext as _

from labeling.engine.rows import FileSource, QuestionVotes, RejectedRow, open_rows, question_uid
from labeling.imports.destination import Destination, Stored
from labeling.imports.first_seen import FirstSeen
from labeling.imports.report import ImportReport
from labeling.models import RecordedVotes

ROWS_AT_ONCE = 500
UNNAMED_SETTINGS = "unnamed settings"
MAX_FINGERPRINT_CHARACTERS = 64


class _Votes(NamedTuple):
    line: int
    votes: QuestionVotes
    generation: str


def record_votes(source: FileSource, *, name: str, destination: Destination, fingerprint: str = "") -> ImportReport:
    """Record the votes of a file for the questions of a pool or of a calibration set. The caller holds the transaction.

    A row belongs to the question with its id, else to the one with its text. ``fingerprint`` names the generation
    settings where the rows do not. Votes recorded already are unchanged where equal and rejected where not.
    """
    report = ImportReport()
    generations: dict[str, None] = {}
    with FirstSeen() as seen:
        rows = _read(source, name, fingerprint, report)
        while chunk := list(islice(rows, ROWS_AT_ONCE)):
            generations |= dict.fromkeys(each.generation for each in chunk)
            _record(chunk, destination, seen, report)
    report.details["generation_fingerprints"] = list(generations)
    if len(generations) > 1:
        message = _("The rows were sampled under %(n_generations)s different settings; a run uses those of one.") % {
            "n_generations": len(generations)
        }
        report.warnings.add(1, "several_settings", message)
    return report


def _read(source: FileSource, name: str, fingerprint: str, report: ImportReport) -> Iterator[_Votes]:
    first: QuestionVotes | None = None
    for row in open_rows(source, name=name):
        if isinstance(row, RejectedRow):
            report.reject(row)
            continue
        try:
            votes = QuestionVotes.from_json(row.data)
            first = first or votes
            _check_counts(votes, first)
            generation = votes.fingerprint or fingerprint or UNNAMED_SETTINGS
            if len(generation) > MAX_FINGERPRINT_CHARACTERS:
                raise ValueError(
                    _("fingerprint has more than %(most)s characters") % {"most": MAX_FINGERPRINT_CHARACTERS}
                )
        except ValueError as error:
            report.reject(RejectedRow(row.line, "invalid_votes", f"{error}."))
            continue
        yield _Votes(row.line, votes, generation)


def _check_counts(votes: QuestionVotes, first: QuestionVotes) -> None:
    for kind in ("probe_answers", "outcome_answers"):
        n, n_first = len(getattr(votes, kind)), len(getattr(first, kind))
        if n != n_first:
            raise ValueError(
                _("%(kind)s has %(n)s answers and the first row %(n_first)s; each row needs as many")
                % {"kind": kind, "n": n, "n_first": n_first}
            )


def _record(chunk: Sequence[_Votes], destination: Destination, seen: FirstSeen, report: ImportReport) -> None:
    questions = _questions(chunk, destination)
    fingerprints = {question.fingerprint for question in questions.values()}
    recorded = {
        (each.generation_fingerprint, each.question_fingerprint): each.votes
        for each in RecordedVotes.objects.filter(
            generation_fingerprint__in={each.generation for each in chunk}, question_fingerprint__in=fingerprints
        )
    }
    new = []
    for line, votes, generation in chunk:
        question = questions.get(line)
        if question is None:
            message = _("The %(noun)s has no question “%(uid)s”. Import the questions first.") % {
                "noun": destination.noun,
                "uid": votes.uid,
            }
            report.reject(RejectedRow(line, "unknown_question", message, votes.uid))
            continue
        if votes.text and _fingerprint(votes) != question.fingerprint:
            message = _("Question “%(uid)s” has another text here; these votes answer “%(text)s”.") % {
                "uid": votes.uid,
                "text": votes.text[:80],
            }
            report.reject(RejectedRow(line, "question_differs", message, votes.uid))
            continue
        key = (generation, question.fingerprint)
        if (earlier := seen.line_of("votes", "\n".join(key))) is not None:
            message = _("Line %(earlier)s has the votes of the same question.") % {"earlier": earlier}
            report.duplicates.add(line, "duplicate", message, duplicate_of_line=earlier)
            continue
        seen.add("votes", "\n".join(key), line)
        kept = _to_keep(votes, question.uid)
        if key not in recorded:
            report.new += 1
            new.append(
                RecordedVotes(
                    generation_fingerprint=generation,
                    question_fingerprint=question.fingerprint,
                    question_uid=question.uid,
                    votes=kept,
                )
            )
        elif {**recorded[key], "id": question.uid} == kept:
            report.unchanged += 1
        else:
            message = _(
                "Other votes of this question are recorded under “%(generation)s”. Evidence is never replaced: "
                "record these under another --fingerprint."
            ) % {"generation": generation}
            report.reject(RejectedRow(line, "votes_differ", message, votes.uid))
    RecordedVotes.objects.bulk_create(new)


def _questions(chunk: Sequence[_Votes], destination: Destination) -> dict[int, Stored]:
    """Return the question of each line that has one: by id, else by text."""
    by_uid = destination.by_uid(row.votes.uid for row in chunk)
    by_text = destination.by_fingerprint(filter(None, (_fingerprint(row.votes) for row in chunk)))
    found = {row.line: by_uid.get(row.votes.uid) or by_text.get(_fingerprint(row.votes)) for row in chunk}
    return {line: question for line, question in found.items() if question is not None}


def _fingerprint(votes: QuestionVotes) -> str:
    return question_uid(votes.text, votes.choices) if votes.text else ""


def _to_keep(votes: QuestionVotes, uid: str) -> Mapping[str, object]:
    """What the question does not know itself; never the truth, which stays sealed in its calibration set."""
    return replace(votes, uid=uid, text=None, kind=None, truth=None, choices=(), fingerprint=None).to_json()
