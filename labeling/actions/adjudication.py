"""Adjudicating: an expert decides where annotators disagree. The question's gold answer settles with the decision."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from labeling import policies
from labeling.actions import claiming
from labeling.actions.answers import check_answer, check_note, check_reason
from labeling.audit import record_event
from labeling.engine.answers import gold_form, policy_of
from labeling.errors import Conflict, LabelingError
from labeling.models import Adjudication, Draft, GoldAnswer, Pool, Round, Slot, User


def claim_adjudication(*, user: User, round: Round | None = None, pool: Pool | None = None) -> Slot | None:
    """Return the next disagreement for the adjudicator; None if there is none. Never a question they annotated."""
    rounds, pool = claiming.rounds_of(round=round, pool=pool)
    policies.check_can_adjudicate(pool, user)
    return claiming.claim(rounds=rounds, purpose=Slot.Purpose.ADJUDICATION, user=user)


def decide(
    *,
    slot: Slot,
    idempotency_key: UUID,
    by: User,
    answer: str = "",
    unanswerable_reason: str = "",
    note: str = "",
    confirm_unreadable: bool = False,
) -> Adjudication:
    """Record the decision, an answer or a reason why there is none, and the gold answer with it.

    Deciding again changes nothing. Raises LabelingError as submit_annotation does, decision_ambiguous when both are
    given, and Conflict slot_lost when somebody else has claimed the slot since; the typed text is then kept as a draft.
    """
    policies.check_can_adjudicate(slot.pool, by)
    if not slot.is_adjudication:
        raise LabelingError("This is a question to answer, not a disagreement to decide.", code="slot_is_label")
    if earlier := Adjudication.objects.filter(adjudicator=by, idempotency_key=idempotency_key).first():
        return earlier
    adjudication = Adjudication(adjudicator=by, idempotency_key=idempotency_key, note=check_note(note))
    gold = ""
    if unanswerable_reason:
        if answer.strip():
            raise LabelingError(
                "Give an answer or mark the question as unanswerable, not both.", code="decision_ambiguous"
            )
        adjudication.unanswerable_reason = check_reason(unanswerable_reason)
    else:
        read = check_answer(slot.question, slot.pool, answer, confirm_unreadable=confirm_unreadable)
        adjudication.answer, adjudication.answer_kind = answer.strip(), read.kind
        gold = gold_form(adjudication.answer, kind=slot.question.answer_kind, policy=policy_of(slot.pool))
    recorded = _record_once(slot, adjudication, gold)
    if recorded is None:
        Draft.objects.filter(round_id=slot.round_id, question_id=slot.question_id, author=by).update(
            content={"answer": answer, "unanswerable_reason": unanswerable_reason, "note": note},
            saved_at=timezone.now(),
        )
        raise claiming.slot_lost(slot)
    return recorded


@transaction.atomic
def _record_once(slot: Slot, adjudication: Adjudication, gold: str) -> Adjudication | None:
    by = adjudication.adjudicator
    claiming.lock_person(by)
    claiming.check_shown(slot, by)
    if earlier := Adjudication.objects.filter(adjudicator=by, idempotency_key=adjudication.idempotency_key).first():
        return earlier
    if given := Adjudication.objects.filter(adjudicator=by, slot=slot).first():
        if (given.answer, given.unanswerable_reason) == (adjudication.answer, adjudication.unanswerable_reason):
            return given
        raise Conflict("You have decided this question already. The first decision stands.", code="already_answered")
    theirs_or_free = Slot.objects.held_by(by) | Slot.objects.filter(state=Slot.State.OPEN)
    if not theirs_or_free.filter(pk=slot.pk).update(state=Slot.State.DONE, holder=by, lease_until=None):
        return None
    adjudication.slot = slot
    adjudication.save()
    record_event("adjudication.decided", target=adjudication, by=by, pool=slot.pool, slot=slot.pk)
    if gold:
        settled, is_new = GoldAnswer.objects.get_or_create(
            question_id=slot.question_id,
            defaults={
                "round_id": slot.round_id,
                "answer": gold,
                "answer_kind": slot.question.answer_kind or adjudication.answer_kind,
                "source": GoldAnswer.Source.ADJUDICATION,
            },
        )
        if is_new:
            record_event(
                "gold_answer.settled", target=settled, by=by, pool=slot.pool, source=settled.source, answer=gold
            )
    return adjudication
