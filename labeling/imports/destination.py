"""Where imported questions go: a pool or a calibration set, and what is there already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from labeling.engine.rows import QuestionRow
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
        return "calibration set" if self.has_answers else "pool"

    def stored(self) -> QuerySet[Any]:
        """The questions that are there already."""
        if self.owner is None:
            return self.model.objects.none()
        return self.model.objects.filter(**{"calibration_set" if self.has_answers else "pool": self.owner})

    def by_uid(self, rows: Iterable[QuestionRow]) -> dict[str, Any]:
        return {each.uid: each for each in self.stored().filter(uid__in=[row.uid for row in rows])}

    def by_fingerprint(self, fingerprints: Iterable[str]) -> dict[str, Any]:
        return {each.fingerprint: each for each in self.stored().filter(fingerprint__in=list(fingerprints))}

    def counterparts(self, fingerprints: Sequence[str]) -> dict[str, str]:
        """Name, by fingerprint, where the same question stands on the other side: in a calibration set, or a pool."""
        found: QuerySet[Any]
        if self.has_answers:
            found = Question.objects.filter(fingerprint__in=fingerprints).select_related("pool")
            found = found if self.pool is None else found.filter(pool=self.pool)
            return {each.fingerprint: f"the pool “{each.pool}”" for each in found}
        found = CalibrationItem.objects.filter(fingerprint__in=fingerprints).select_related("calibration_set")
        found = found.filter(Q(calibration_set__pool=self.pool) | Q(calibration_set__pool=None))
        return {each.fingerprint: f"the calibration set “{each.calibration_set}”" for each in found}

    def in_use(self, questions: Sequence[Any]) -> set[int]:
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

    def make(self, row: QuestionRow, fingerprint: str, batch: ImportBatch | None) -> Any:
        """Return the row as a new, unsaved question or calibration item."""
        made = self.model(
            uid=row.uid,
            fingerprint=fingerprint,
            text=row.text,
            answer_kind=row.answer_kind,
            choices=list(row.choices),
            metadata=row.metadata,
            import_batch=batch,
        )
        if isinstance(made, CalibrationItem):
            made.calibration_set, made.answer = self.owner, row.answer  # type: ignore[assignment]
        else:
            made.pool = self.owner  # type: ignore[assignment]
        return made


def _generation_fingerprints(model: type[StoredCompletion] | type[RecordedVotes]) -> Iterable[str]:
    """Walk the distinct generation fingerprints through the index, in as many short queries as there are of them."""
    names = model.objects.order_by("generation_fingerprint").values_list("generation_fingerprint", flat=True)
    found = names.first()
    while found is not None:
        yield found
        found = names.filter(generation_fingerprint__gt=found).first()
