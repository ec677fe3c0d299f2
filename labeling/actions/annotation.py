"""Annotating: claim a question, answer it, or say that it cannot be answered."""

from uuid import UUID

from django.db import transaction
from django.db.models import UUIDField
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions import claiming
from labeling.actions.answers import check_answer, check_note, check_reason
from labeling.actions.claiming import extend_lease, release_slot, skip_slot
from labeling.actions.drafts import save_draft
from labeling.actions.practice import check_practised, next_practice
from labeling.actions.settling import settle_slot
from labeling.audit import record_event
from labeling.errors import Conflict, LabelingError
from labeling.models import Annotation, Pool, Round, Slot, User
from labeling.prepared import Parameter, Prepared, PreparedInsert, PreparedUpdate
from labeling.queries.own_answers import own_annotation

__all__ = [
    "claim_slot",
    "extend_lease",
    "mark_unanswerable",
    "release_slot",
    "save_draft",
    "skip_slot",
    "submit_annotation",
]


_WITH_KEY = Prepared(
    lambda: Annotation.objects.filter(
        annotator=Parameter("by"), idempotency_key=Parameter("key", UUIDField())
    ).select_related("slot")
)
_DONE = PreparedUpdate(
    lambda: (
        (Slot.objects.held_by(Parameter("by")) | Slot.objects.filter(state=Slot.State.OPEN)).filter(
            pk=Parameter("slot")
        ),
        {"state": Slot.State.DONE, "holder": Parameter("by"), "lease_until": None},
    )
)
_ANNOTATIONS = PreparedInsert(Annotation)
_VERSIONS = Prepared(lambda: Annotation.objects.filter(slot=Parameter("slot")).order_by().values_list("pk"))


def claim_slot(*, user: User, round: Round | None = None, pool: Pool | None = None) -> Slot | None:
    """Return the next question for the annotator, in a round or in any live round of a pool; None if there is none.

    Somebody who holds one gets the same again. ``queries.rounds.empty_queue`` says why there is none. Raises Conflict
    practice_due where the round begins with practice that the person has not done; of a pool, such rounds are left out.
    """
    if round is not None:
        check_practised(round=round, user=user)
        not_in = set()
    else:
        practising = Round.objects.in_pool(pool).filter(n_practice__gt=0)
        not_in = {each.pk for each in practising if next_practice(round=each, user=user)}
    return claiming.claim(round=round, pool=pool, not_in=not_in, purpose=Slot.Purpose.LABEL, user=user)


def submit_annotation(
    *,
    slot: Slot,
    answer: str,
    idempotency_key: UUID,
    by: User,
    confirm_unreadable: bool = False,
    confident: bool = True,
    note: str = "",
    seconds_spent: float | None = None,
) -> Annotation:
    """Record the annotator's final answer; submitting it again changes nothing.

    Accepted late as long as nobody else has claimed the slot; after that kept as surplus, which does not count.
    Raises LabelingError answer_empty, and answer_unreadable unless the annotator has confirmed an answer that no
    trainer's grader can read; Conflict already_answered for another answer to the same question, and key_used for a key
    of another question. What was typed is then kept as the draft.
    """
    check_is_asked(slot)
    try:
        read = check_answer(slot.asked, slot.pool, answer, confirm_unreadable=confirm_unreadable)
    except LabelingError:
        if earlier := _earlier(slot, by, idempotency_key, answer=answer.strip(), note=note):
            return earlier
        raise
    return _record(
        slot,
        Annotation(
            annotator=by,
            idempotency_key=idempotency_key,
            answer=answer.strip(),
            answer_kind=read.kind,
            read_as=read.text if read.readable else "",
            confident=confident,
            note=check_note(note),
            seconds_spent=seconds_spent,
        ),
    )


def mark_unanswerable(
    *,
    slot: Slot,
    reason: str,
    idempotency_key: UUID,
    by: User,
    confident: bool = True,
    note: str = "",
    seconds_spent: float | None = None,
) -> Annotation:
    """Record that the question has no single verifiable answer, and why; it counts like an answer."""
    if earlier := _earlier(slot, by, idempotency_key, reason=reason, note=note):
        return earlier
    return _record(
        slot,
        Annotation(
            annotator=by,
            idempotency_key=idempotency_key,
            unanswerable_reason=check_reason(reason),
            confident=confident,
            note=check_note(note),
            seconds_spent=seconds_spent,
        ),
    )


def check_is_asked(slot: Slot) -> None:
    """Refuse to answer what is there to be decided."""
    if slot.is_adjudication:
        raise LabelingError(
            _("This is a disagreement to decide, not a question to answer."), code="slot_is_adjudication"
        )


def _earlier(
    slot: Slot, by: User, idempotency_key: UUID, *, answer: str = "", reason: str = "", note: str = ""
) -> Annotation | None:
    """Return what was submitted under the key before, settled; refuse who may not annotate."""
    policies.check_can_annotate(slot.pool, by)
    check_is_asked(slot)
    with claiming.typed_kept(slot, by, {"answer": answer, "note": note}):
        earlier = _given(slot, by, idempotency_key, said=(answer, reason))
    if earlier is not None and not earlier.surplus:
        settle_slot(slot)
    return earlier


def _given(slot: Slot, by: User, idempotency_key: UUID, *, said: tuple[str, str]) -> Annotation | None:
    """Return the person's annotation of the question if it says the same, None if there is none.

    Raises Conflict already_answered where it says something else, key_used where the key is of another question.
    """
    with_key = _WITH_KEY.first(by=by.pk, key=idempotency_key)
    if with_key is not None and not claiming.is_same_question(with_key.slot, slot):
        raise claiming.key_used()
    given = with_key or own_annotation(slot, by)
    if given is None or (given.answer, given.unanswerable_reason) == said:
        return given
    stands = given.answer or given.get_unanswerable_reason_display().lower()
    raise Conflict(
        _("You have answered this question already: %(stands)s. The first answer stands.") % {"stands": stands},
        code="already_answered",
    )


def _record(slot: Slot, annotation: Annotation) -> Annotation:
    with claiming.typed_kept(slot, annotation.annotator, {"answer": annotation.answer, "note": annotation.note}):
        recorded = _record_once(slot, annotation)
    if not recorded.surplus:
        settle_slot(slot)
    return recorded


def next_version(slot: Slot) -> int:
    """Return the number that the next answer to the slot gets."""
    return 1 + len(_VERSIONS.rows(slot=slot.pk))


@transaction.atomic
def _record_once(slot: Slot, annotation: Annotation) -> Annotation:
    by = annotation.annotator
    claiming.lock_person(by)
    claiming.check_shown(slot, by)
    said = (annotation.answer, annotation.unanswerable_reason)
    if given := _given(slot, by, annotation.idempotency_key, said=said):
        return given
    same = (held for held in claiming.held_by(by) if claiming.is_same_question(held, slot))
    mine = next((held for held in same if held.purpose == slot.purpose), slot)
    mine.round, mine.question, mine.calibration_item = slot.round, slot.question, slot.calibration_item  # as loaded
    counted = _DONE.run(slot=mine.pk, by=by.pk)
    if annotation.seconds_spent is None and counted and mine.claimed_at is not None:
        annotation.seconds_spent = (timezone.now() - mine.claimed_at).total_seconds()
    annotation.slot, annotation.surplus = mine, not counted
    annotation.version = next_version(mine)
    _ANNOTATIONS.add(annotation)
    record_event(
        "annotation.submitted",
        target=annotation,
        by=by,
        pool=slot.pool,
        budget=slot.round.budget_id if counted and not slot.is_check else None,
        units=1,
        slot=mine.pk,
        question=slot.asked.uid,
        surplus=annotation.surplus,
    )
    return annotation
