"""Where imported questions go: a pool or a calibration set, and what is there already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from labeling.imports.staging import Candidate
from labeling.models import (
    CalibrationItem,
    CalibrationSet,
    ImportBatch,
    Pool,
    Question,
    RecordedVotes,
    Slot,
    StoredCompletion,
)


class Stored(NamedTuple):
    """What a row is compared with; ``answer`` of calibration items only."""

    pk: int
    uid: str
    fingerprint: str
    answer_kind: str
    metadata: dict[str, Any]
    answer: str = ""


@dataclass(frozen=True)
class Destination:
    """A pool, or a calibration set; either may be None where a preview runs before it exists."""

    model: type[Question] | type[CalibrationItem]
    owner: Pool | CalibrationSet | None
    pool: Pool | None  # whose questions and whose calibration items are compared; None: those of all pools

    @classmethod
    def of_pool(cls, pool: Pool | None) -> Destination:
        return cls(Question, pool, pool)

    @classmethod
    def of_calibration_set(cls, calibration_set: CalibrationSet | None, pool: Pool | None) -> Destination:
        return cls(CalibrationItem, calibration_set, pool)

    @property
    def has_answers(self) -> bool:
        return self.model is CalibrationItem

    @property
    def noun(self) -> str:
        return _("calibration set") if self.has_answers else _("pool")

    def stored(self) -> QuerySet[Any]:
        """The questions that are there already."""
        if self.owner is None:
            return self.model.objects.none()
        return self.model.objects.filter(**{"calibration_set" if self.has_answers else "pool": self.owner})

    def by_uid(self, uids: Iterable[str]) -> dict[str, Stored]:
        """Return what is stored under those ids."""
        return {each.uid: each for each in self._rows(self.stored().filter(uid__in=list(uids)))}

    def by_fingerprint(self, fingerprints: Iterable[str]) -> dict[str, Stored]:
        """Return the stored questions with those texts and choices."""
        return {each.fingerprint: each for each in self._rows(self.stored().filter(fingerprint__in=list(fingerprints)))}

    def _rows(self, questions: QuerySet[Any]) -> Iterable[Stored]:
        fields = [*Stored._fields[:-1], *(["answer"] if self.has_answers else [])]
        return (Stored(*values) for values in questions.values_list(*fields))

    def counterparts(self, fingerprints: Sequence[str]) -> dict[str, str]:
        """Name, by fingerprint, where the same question stands on the other side: in a calibration set, or a pool."""
        found: QuerySet[Any]
        if self.has_answers:
            found = Question.objects.filter(fingerprint__in=fingerprints).select_related("pool")
            found = found if self.pool is None else found.filter(pool=self.pool)
            return {each.fingerprint: _("the pool “%(name)s”") % {"name": each.pool} for each in found}
        found = CalibrationItem.objects.filter(fingerprint__in=fingerprints).select_related("calibration_set")
        found = found.filter(Q(calibration_set__pool=self.pool) | Q(calibration_set__pool=None))
        return {
            each.fingerprint: _("the calibration set “%(name)s”") % {"name": each.calibration_set} for each in found
        }

    def in_use(self, questions: Sequence[Stored]) -> set[int]:
        """Return the ids of those questions that have votes or slots, whose text must stay as it is."""
        if not questions:
            return set()
        voted: set[str] = set()
        fingerprints = [question.fingerprint for question in questions]
        for model in (StoredCompletion, RecordedVotes):
            for generation in _generation_fingerprints(model):
                voted.update(
                    model.objects.filter(generation_fingerprint=generation, question_fingerprint__in=fingerprints)
                    .values_list("question_fingerprint", flat=True)
                    .distinct()
                )
        used = {question.pk for question in questions if question.fingerprint in voted}
        if not self.has_answers:
            ids = [question.pk for question in questions]
            slots = Slot.objects.filter(question=OuterRef("pk"))
            used.update(Question.objects.filter(Exists(slots), pk__in=ids).values_list("pk", flat=True))
        return used

    def create(self, rows: Sequence[Candidate], batch: ImportBatch | None) -> None:
        """Store new rows."""
        if isinstance(self.owner, CalibrationSet):
            items = [
                CalibrationItem(calibration_set=self.owner, answer=row.answer, import_batch=batch, **_fields(row))
                for row in rows
            ]
            CalibrationItem.objects.bulk_create(items)
        elif self.owner is not None:
            questions = [Question(pool=self.owner, import_batch=batch, **_fields(row)) for row in rows]
            Question.objects.bulk_create(questions)

    def update(self, rows: Mapping[int, Candidate]) -> None:
        """Give stored questions, by id, the content of their rows. Metadata that a row has not is kept."""
        if not rows:
            return
        questions = list(self.stored().filter(pk__in=rows))
        for question in questions:
            row = rows[question.pk]
            if question.fingerprint != row.fingerprint:
                question.text, question.fingerprint, question.choices = row.text, row.fingerprint, row.choices
            question.answer_kind = row.answer_kind or question.answer_kind
            question.metadata = {**question.metadata, **row.metadata}
            if self.has_answers:
                question.answer = row.answer
        changing = ["text", "fingerprint", "choices", "answer_kind", "metadata"] + ["answer"] * self.has_answers
        self.model.objects.bulk_update(questions, changing)


def _fields(row: Candidate) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("uid", "fingerprint", "text", "answer_kind", "choices", "metadata")}


def _generation_fingerprints(model: type[StoredCompletion] | type[RecordedVotes]) -> Iterable[str]:
    """Walk the distinct generation fingerprints through the index, in as many short queries as there are of them."""
    names = model.objects.order_by("generation_fingerprint").values_list("generation_fingerprint", flat=True)
    found = names.first()
    while found is not None:
        yield found
        found = names.filter(generation_fingerprint__gt=found).first()
