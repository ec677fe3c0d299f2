"""Changing one's mind: undo right after submitting, or a new version later. What was said before stays on record."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions import claiming
from labeling.actions.annotation import next_version
from labeling.actions.answers import check_answer, check_note, check_reason
from labeling.actions.settling import settle_slot, unsettle_question
from labeling.audit import record_event
from labeling.errors import Conflict, LabelingError
from labeling.models import Annotation, Draft, Reveal, Round, Slot, User, Withdrawal
from labeling.queries.own_answers import own_annotation


def can_undo(annotation: Annotation) -> bool:
    """Whether the time to take back a submission is not over yet, and no answers of a model were shown since."""
    in_time = timezone.now() - annotation.created_at <= timedelta(seconds=settings.ASSAY_UNDO_SECONDS)
    return in_time and not Reveal.objects.filter(annotation=annotation).exists()


def undo(*, slot: Slot, by: User) -> Slot:
    """Take back what the person has just submitted, and return the slot, theirs again with their text as the draft.

    Undoing a revision brings the earlier version back. Raises Conflict undo_too_late, undo_not_counted (surplus),
    round_closed, undo_after_reveal where the model's answers were shown since, and question_decided where an
    adjudicator has the question already.
    """
    policies.check_can_annotate(slot.pool, by)
    with transaction.atomic():
        claiming.lock_person(by)
        annotation = _own(slot, by)
        if Reveal.objects.filter(annotation=annotation).exists():
            raise Conflict(
                _(
                    "You have been shown answers of the model since. Change your answer on that page instead: what you "
                    "said first stays on record as said before."
                ),
                code="undo_after_reveal",
            )
        if not can_undo(annotation):
            raise Conflict(
                _(
                    "This was submitted more than %(n)s seconds ago. Revise it instead: your "
                    "answers are listed on the round's page."
                )
                % {"n": settings.ASSAY_UNDO_SECONDS},
                code="undo_too_late",
            )
        _refuse_closed(slot.round)
        if not slot.is_check and not unsettle_question(round=slot.round, question=slot.asked, by=by):
            raise Conflict(
                _("An adjudicator has this question already. Revise your answer instead."), code="question_decided"
            )
        Withdrawal.objects.create(annotation=annotation)
        record_event(
            "annotation.withdrawn",
            target=annotation,
            by=by,
            pool=slot.pool,
            budget=None if slot.is_check or annotation.version > 1 else slot.round.budget_id,
            units=1,
            slot=annotation.slot_id,
            question=slot.asked.uid,
        )
        if own_annotation(slot, by) is None:
            _take_back(annotation, by)
    settle_slot(slot)
    return Slot.objects.select_related("round__run__pool", "round__guideline", "question", "calibration_item").get(
        pk=annotation.slot_id
    )


def _take_back(annotation: Annotation, by: User) -> None:
    now = timezone.now()
    slot = annotation.slot
    for held in Slot.objects.held_by(by).filter(round=slot.round_id).exclude(purpose=Slot.Purpose.ADJUDICATION):
        claiming.release_slot(slot=held, by=by)  # the next question, taken by submitting this one
    typed = {"answer": annotation.answer, "unsure": not annotation.confident, "note": annotation.note}
    if annotation.unanswerable_reason:
        typed |= {"note": "", "reason": annotation.unanswerable_reason, "problem": annotation.note}
    draft = Draft.objects.about(slot).filter(author=by)
    draft.update(content=typed, saved_at=now)
    Slot.objects.filter(pk=slot.pk, state=Slot.State.DONE, holder=by).update(
        state=Slot.State.LEASED, lease_until=claiming.lease_end(now), claimed_at=now
    )


def revise(
    *,
    slot: Slot,
    idempotency_key: UUID,
    by: User,
    answer: str = "",
    reason: str = "",
    confident: bool = True,
    note: str = "",
    why: str = "",
    confirm_unreadable: bool = False,
    origin: Annotation.Origin = Annotation.Origin.REVISION,
) -> Annotation:
    """Record another answer, or a reason why there is none, as the next version; it counts instead of the earlier.

    Whoever has been shown the model's answers revises after the reveal, whatever ``origin`` says. Revising twice with
    the same key changes nothing. Where an adjudicator has taken the question the new version is kept and shown to
    them. Raises LabelingError as submit_annotation does and answer_ambiguous when both are given;
    Conflict round_closed, revision_not_counted (surplus) and key_used.
    """
    policies.check_can_annotate(slot.pool, by)
    if reason and answer.strip():
        raise LabelingError(_("Give an answer or say why there is none, not both."), code="answer_ambiguous")
    annotation = Annotation(
        annotator=by,
        idempotency_key=idempotency_key,
        confident=confident,
        note=check_note(note),
        why=check_note(why),
        origin=origin,
    )
    if reason:
        annotation.unanswerable_reason = check_reason(reason)
    else:
        read = check_answer(slot.asked, slot.pool, answer, confirm_unreadable=confirm_unreadable)
        annotation.answer, annotation.answer_kind = answer.strip(), read.kind
        annotation.read_as = read.text if read.readable else ""
    with claiming.typed_kept(slot, by, {"answer": answer, "note": note}):
        recorded = _revise_once(slot, annotation)
    settle_slot(slot)
    return recorded


@transaction.atomic
def _revise_once(slot: Slot, annotation: Annotation) -> Annotation:
    by = annotation.annotator
    claiming.lock_person(by)
    with_key = Annotation.objects.filter(annotator=by, idempotency_key=annotation.idempotency_key).first()
    if with_key is not None:
        if not claiming.is_same_question(with_key.slot, slot):
            raise claiming.key_used()
        if (with_key.answer, with_key.unanswerable_reason) != (annotation.answer, annotation.unanswerable_reason):
            raise Conflict(
                _(
                    "This form was sent before, with another answer. What you typed is kept: reload the page and send "
                    "it again."
                ),
                code="key_used",
            )
        return with_key
    earlier = _own(slot, by)
    _refuse_closed(slot.round)
    if Reveal.objects.filter(annotation__slot=earlier.slot_id, annotation__annotator=by).exists():
        annotation.origin = Annotation.Origin.AFTER_REVEAL
    if not slot.is_check:
        unsettle_question(round=slot.round, question=slot.asked, by=by)
    annotation.slot, annotation.version = earlier.slot, next_version(earlier.slot)
    annotation.save()
    record_event(
        "annotation.revised",
        target=annotation,
        by=by,
        pool=slot.pool,
        slot=earlier.slot_id,
        version=annotation.version,
        origin=annotation.origin,
    )
    return annotation


def _own(slot: Slot, by: User) -> Annotation:
    annotation = own_annotation(slot, by)
    if annotation is None:
        raise Conflict(_("You have not answered this question."), code="not_answered")
    if annotation.surplus:
        raise Conflict(
            _("This answer came after your time had run out and does not count, so it cannot be changed."),
            code="revision_not_counted",
        )
    return annotation


def _refuse_closed(round: Round) -> None:
    if Round.objects.filter(pk=round.pk, status=Round.Status.CLOSED).exists():
        raise Conflict(_("The round is closed; its answers stand."), code="round_closed")
