"""Adjudicating: an expert decides where annotators disagree. The question's gold answer settles with the decision."""

from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions import claiming
from labeling.actions.answers import check_answer, check_note, check_reason
from labeling.actions.replacing import replace_question
from labeling.actions.settling import lock_round
from labeling.audit import record_event
from labeling.engine.answers import gold_form, policy_of
from labeling.errors import Conflict, LabelingError
from labeling.models import Adjudication, GoldAnswer, Pool, Round, Slot, User


def claim_adjudication(*, user: User, round: Round | None = None, pool: Pool | None = None) -> Slot | None:
    """Return the next disagreement for the adjudicator; None if there is none. Never a question they annotated."""
    return claiming.claim(round=round, pool=pool, purpose=Slot.Purpose.ADJUDICATION, user=user)


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
        raise LabelingError(_("This is a question to answer, not a disagreement to decide."), code="slot_is_label")
    typed = {"answer": answer, "unanswerable_reason": unanswerable_reason, "note": note}
    with claiming.typed_kept(slot, by, typed):
        if earlier := _given(slot, by, idempotency_key, said=(answer.strip(), unanswerable_reason)):
            return earlier
    adjudication = Adjudication(adjudicator=by, idempotency_key=idempotency_key, note=check_note(note))
    gold = ""
    if unanswerable_reason:
        if answer.strip():
            raise LabelingError(
                _("Give an answer or mark the question as unanswerable, not both."), code="decision_ambiguous"
            )
        adjudication.unanswerable_reason = check_reason(unanswerable_reason)
    else:
        read = check_answer(slot.asked, slot.pool, answer, confirm_unreadable=confirm_unreadable)
        adjudication.answer, adjudication.answer_kind = answer.strip(), read.kind
        gold = gold_form(adjudication.answer, kind=slot.asked.answer_kind, policy=policy_of(slot.pool))
    with claiming.typed_kept(slot, by, typed):
        return _record_once(slot, adjudication, gold)


def _given(slot: Slot, by: User, idempotency_key: UUID, *, said: tuple[str, str]) -> Adjudication | None:
    """Return the person's decision on the slot if it says the same, None if there is none; else raise Conflict."""
    mine = Adjudication.objects.filter(adjudicator=by)
    with_key = mine.filter(idempotency_key=idempotency_key).first()
    if with_key is not None and with_key.slot_id != slot.pk:
        raise claiming.key_used()
    given = with_key or mine.filter(slot=slot).first()
    if given is None or (given.answer, given.unanswerable_reason) == said:
        return given
    raise Conflict(_("You have decided this question already. The first decision stands."), code="already_answered")


@transaction.atomic
def _record_once(slot: Slot, adjudication: Adjudication, gold: str) -> Adjudication:
    by = adjudication.adjudicator
    claiming.lock_person(by)
    claiming.check_shown(slot, by)
    said = (adjudication.answer, adjudication.unanswerable_reason)
    if given := _given(slot, by, adjudication.idempotency_key, said=said):
        return given
    theirs_or_free = Slot.objects.held_by(by) | Slot.objects.filter(state=Slot.State.OPEN)
    if not theirs_or_free.filter(pk=slot.pk).update(state=Slot.State.DONE, holder=by, lease_until=None):
        raise claiming.slot_lost(slot)
    adjudication.slot = slot
    adjudication.save()
    record_event(
        "adjudication.decided",
        target=adjudication,
        by=by,
        pool=slot.pool,
        budget=slot.round.budget_id,
        units=1,
        slot=slot.pk,
        question=slot.asked.uid,
    )
    if not gold:
        replace_question(lock_round(slot.round), slot.asked)
    if gold:
        settled, is_new = GoldAnswer.objects.get_or_create(
            question_id=slot.asked.pk,
            defaults={
                "round_id": slot.round_id,
                "answer": gold,
                "answer_kind": slot.asked.answer_kind or adjudication.answer_kind,
                "source": GoldAnswer.Source.ADJUDICATION,
            },
        )
        if is_new:
            record_event(
                "gold_answer.settled", target=settled, by=by, pool=slot.pool, source=settled.source, answer=gold
            )
    return adjudication
