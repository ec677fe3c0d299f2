"""What an adjudicator sees of a disagreement: the answers in groups, without names."""

import hashlib
from dataclasses import dataclass

from labeling.engine.answers import answer_clusters, policy_of
from labeling.models import Annotation, Question, Slot


@dataclass(frozen=True)
class AnswerGroup:
    """Answers that mean the same, or all the statements that there is none (``is_unanswerable``)."""

    letter: str
    answers: tuple[str, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    n_answers: int
    n_surplus: int
    is_unanswerable: bool


@dataclass(frozen=True)
class Disagreement:
    """A question and what people answered."""

    question: Question
    groups: tuple[AnswerGroup, ...]


def disagreement(*, slot: Slot) -> Disagreement:
    """Return the answers to the slot's question, surplus ones included, grouped by equivalence as A, B, C.

    The order says nothing about who answered first. Comparing may take seconds where a verdict is not stored yet.
    """
    annotations = list(
        Annotation.objects.standing()
        .filter(slot__round=slot.round_id, slot__question=slot.question_id)
        .order_by("surplus", "id")
    )
    answered = [annotation for annotation in annotations if annotation.answer]
    classes = answer_clusters(
        [annotation.answer for annotation in answered], kind=slot.asked.answer_kind, policy=policy_of(slot.pool)
    )
    members: dict[int, list[Annotation]] = {}
    for annotation, number in zip(answered, classes, strict=True):
        members.setdefault(number, []).append(annotation)
    if unanswerable := [annotation for annotation in annotations if not annotation.answer]:
        members[-1] = unanswerable
    shuffled = sorted(members.values(), key=lambda group: _order(slot, group))
    return Disagreement(
        question=slot.asked,
        groups=tuple(_group(chr(ord("A") + i % 26), group) for i, group in enumerate(shuffled)),
    )


def _order(slot: Slot, group: list[Annotation]) -> bytes:
    return hashlib.sha256(f"{slot.asked.uid}\n{group[0].answer}".encode()).digest()


def _group(letter: str, annotations: list[Annotation]) -> AnswerGroup:
    return AnswerGroup(
        letter=letter,
        answers=tuple(dict.fromkeys(annotation.answer for annotation in annotations if annotation.answer)),
        reasons=tuple(
            dict.fromkeys(
                annotation.get_unanswerable_reason_display()
                for annotation in annotations
                if annotation.unanswerable_reason
            )
        ),
        notes=tuple(annotation.note for annotation in annotations if annotation.note),
        n_answers=len(annotations),
        n_surplus=sum(annotation.surplus for annotation in annotations),
        is_unanswerable=not annotations[0].answer,
    )
