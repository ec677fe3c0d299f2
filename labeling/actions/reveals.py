"""Blind first, reveal after: once a person has answered they are shown what the model answers, and may change theirs.

The page of a reveal is made when an answer is stored, and never before. From then on the answer cannot be undone as if
nothing had been seen; what is said later is recorded as said after the reveal.
"""

import hashlib
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import CharField
from django.utils.translation import gettext as _

from labeling.actions.revising import revise
from labeling.audit import record_event
from labeling.engine import model_answers as engine
from labeling.engine.answers import policy_of
from labeling.errors import Conflict, LabelingError
from labeling.models import (
    Annotation,
    CalibrationItem,
    ModelAnswers,
    Question,
    Reveal,
    RevealDecision,
    Round,
    SelectionRun,
    Slot,
    User,
)
from labeling.prepared import Parameter, Prepared

Outcome = RevealDecision.Outcome
_REVEALS = Prepared(lambda: Reveal.objects.filter(annotation=Parameter("annotation")))
_MODEL_ANSWERS = Prepared(
    lambda: ModelAnswers.objects.filter(
        run=Parameter("run"), question_fingerprint=Parameter("fingerprint", CharField())
    )
)


def stored_model_answers(run: SelectionRun, asked: Question | CalibrationItem) -> list[str]:
    """Return what people may be shown of the model's answers to a question; the first time they are worked out.

    [] where the run has no model answers to it, or none that can be read. Not to be called inside a transaction:
    comparing answers may take seconds.
    """
    found = _MODEL_ANSWERS.first(run=run.pk, fingerprint=asked.fingerprint)
    if found is None and (answers := engine.model_answers(run, asked)):
        found, _is_new = ModelAnswers.objects.get_or_create(
            run=run, question_fingerprint=asked.fingerprint, defaults={"answers": answers}
        )
    return list(found.answers) if found is not None else []


def answers_shown_first(slot: Slot) -> list[str]:
    """Return the model's answers that stand beside the slot's question from the start; [] in every other round."""
    if slot.round.blindness != Round.Blindness.SHOWN_FIRST:
        return []
    return shuffled(stored_model_answers(slot.round.run, slot.asked), slot)


def shuffled(answers: list[str], slot: Slot) -> list[str]:
    """Return the answers in an order that says nothing of them, always the same for one slot."""
    return sorted(answers, key=lambda answer: hashlib.sha256(f"{slot.pk}:{answer}".encode()).digest())


def reveal_after(annotation: Annotation) -> Reveal | None:
    """Record that the person is shown the model's answers now that theirs is stored; None where they are not.

    They are not in a blind round, for a control, for an answer that does not count, for one that says there is none,
    and where there is nothing to show. Again it gives the reveal there is. Not to be called inside a transaction.
    """
    slot = annotation.slot
    round, asked = slot.round, slot.asked
    if found := _REVEALS.first(annotation=annotation.pk):
        return found
    if (
        round.blindness != Round.Blindness.REVEAL_AFTER
        or annotation.surplus
        or not annotation.answer
        or annotation.origin != Annotation.Origin.FIRST
        or round.is_control(asked.uid)
    ):
        return None
    answers = shuffled(stored_model_answers(round.run, asked), slot)
    if not answers:
        return None
    own = engine.position_among(annotation.answer, answers, kind=asked.answer_kind, policy=policy_of(round.pool))
    with transaction.atomic():
        reveal, is_new = Reveal.objects.get_or_create(annotation=annotation, defaults={"answers": answers, "own": own})
        if is_new:
            record_event("answer.revealed", target=reveal, by=annotation.annotator, pool=round.pool, slot=slot.pk)
    return reveal


def keep_answer(*, reveal: Reveal, by: User) -> RevealDecision:
    """Record that the answer stands after the reveal; again it changes nothing."""
    _check_own(reveal, by)
    if decided := _decided(reveal):
        if decided.outcome != Outcome.KEPT:
            raise already_decided()
        return decided
    return _decide(RevealDecision(reveal=reveal, outcome=Outcome.KEPT, chosen=reveal.own), by)


def change_answer(
    *,
    reveal: Reveal,
    idempotency_key: UUID,
    by: User,
    chosen: int | None = None,
    answer: str = "",
    why: str = "",
    confident: bool = True,
    confirm_unreadable: bool = False,
) -> RevealDecision:
    """Record another answer after the reveal, one of those shown or one of the person's own, and why.

    It is the next version of their answer and counts instead of the first. Whoever picks the shown answer that means
    the same as theirs keeps theirs. A typed answer that means the same as a shown one counts as a switch to that.
    Raises LabelingError reveal_reason_missing, reveal_choice_unknown and as ``revise`` does; Conflict already_decided.
    """
    _check_own(reveal, by)
    if chosen is not None and not 0 <= chosen < len(reveal.answers):
        raise LabelingError(_("Choose one of the answers that are shown."), code="reveal_choice_unknown")
    if chosen is not None and chosen == reveal.own:
        return keep_answer(reveal=reveal, by=by)
    if not why.strip():
        raise LabelingError(_("Say in a few words why you change your answer."), code="reveal_reason_missing")
    decided = _decided(reveal)
    if decided and (decided.annotation is None or decided.annotation.idempotency_key != idempotency_key):
        raise already_decided()
    first, given = reveal.annotation, reveal.answers[chosen] if chosen is not None else answer
    annotation = revise(
        slot=first.slot,
        answer=given,
        why=why,
        confident=confident,
        note=first.note,
        confirm_unreadable=confirm_unreadable,
        origin=Annotation.Origin.AFTER_REVEAL,
        idempotency_key=idempotency_key,
        by=by,
    )
    return decided or _decide(_switch(reveal, annotation, chosen), by)


def _switch(reveal: Reveal, annotation: Annotation, chosen: int | None) -> RevealDecision:
    """What a new answer is, compared with the first and with those that were shown."""
    slot = annotation.slot
    if chosen is None:
        known = [reveal.annotation.answer, *reveal.answers]
        kind, policy = slot.asked.answer_kind, policy_of(slot.pool)
        position = engine.position_among(annotation.answer, known, kind=kind, policy=policy)
        if position == 0:
            return RevealDecision(reveal=reveal, outcome=Outcome.SAME, annotation=annotation, chosen=reveal.own)
        chosen = None if position is None else position - 1
    outcome = Outcome.OTHER if chosen is None else Outcome.MODEL
    return RevealDecision(reveal=reveal, outcome=outcome, annotation=annotation, chosen=chosen)


def _decide(decision: RevealDecision, by: User) -> RevealDecision:
    try:
        with transaction.atomic():
            decision.save()
            pool = decision.reveal.annotation.slot.pool
            record_event("reveal.decided", target=decision, by=by, pool=pool, outcome=decision.outcome)
    except IntegrityError as error:  # another window was quicker
        raise already_decided() from error
    return decision


def _decided(reveal: Reveal) -> RevealDecision | None:
    return RevealDecision.objects.filter(reveal=reveal).select_related("annotation").first()


def _check_own(reveal: Reveal, by: User) -> None:
    if reveal.annotation.annotator_id != by.pk:
        raise LabelingError(_("This is somebody else's answer."), code="reveal_not_yours")


def already_decided() -> Conflict:
    """Return why a decision cannot be taken again."""
    return Conflict(
        _(
            "You have decided this already. If your answer is wrong, revise it: your answers are listed on the round's "
            "page."
        ),
        code="already_decided",
    )
