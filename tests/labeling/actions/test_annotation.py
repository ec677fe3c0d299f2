from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from labeling.actions.annotation import claim_slot, mark_unanswerable, release_slot, submit_annotation
from labeling.actions.rounds import close_round
from labeling.errors import Conflict, LabelingError, NotAllowed
from labeling.models import Annotation, AuditEvent, GoldAnswer, Slot
from labeling.queries.own_answers import own_draft
from tests import factories


@pytest.fixture
def slot(pool, annotator):
    factories.make_round(pool=pool, n_questions=1)
    return claim_slot(user=annotator, pool=pool)


def lose(slot, to):
    Slot.objects.filter(pk=slot.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    return claim_slot(user=to, pool=slot.pool)


def submit(slot, by, answer="1/2", key=None, **fields):
    return submit_annotation(slot=slot, answer=answer, idempotency_key=key or uuid4(), by=by, **fields)


def test_a_submission_is_stored_as_typed_and_as_read(slot, annotator):
    annotation = submit(slot, annotator, " 0.50 ", confident=False, note="half", seconds_spent=3.5)

    annotation.refresh_from_db()
    assert (annotation.answer, annotation.answer_kind) == ("0.50", "number")
    assert annotation.read_as
    assert (annotation.confident, annotation.note, annotation.seconds_spent) == (False, "half", 3.5)
    assert not annotation.surplus
    slot.refresh_from_db()
    assert (slot.state, slot.holder, slot.lease_until) == (Slot.State.DONE, annotator, None)
    event = AuditEvent.objects.get(action="annotation.submitted")
    assert (event.actor, event.pool, event.details["surplus"]) == (annotator, slot.pool, False)


def test_the_time_spent_is_measured_when_the_page_does_not_say(slot, annotator):
    Slot.objects.filter(pk=slot.pk).update(claimed_at=timezone.now() - timedelta(seconds=90))

    assert submit(slot, annotator).seconds_spent == pytest.approx(90, abs=5)


def test_a_second_submit_changes_nothing(slot, annotator):
    key = uuid4()

    first = submit(slot, annotator, key=key)

    assert submit(slot, annotator, key=key) == first
    assert submit(slot, annotator) == first  # the other tab, with a key of its own
    assert Annotation.objects.count() == 1
    assert AuditEvent.objects.filter(action="annotation.submitted").count() == 1


def test_another_answer_to_an_answered_question_is_refused_and_says_which_stands(slot, annotator):
    submit(slot, annotator, "5")

    with pytest.raises(Conflict) as refused:
        submit(slot, annotator, "6")

    assert refused.value.code == "already_answered"
    assert "5" in refused.value.message
    assert Annotation.objects.get().answer == "5"


def test_a_key_sent_again_with_another_answer_is_refused_and_what_was_typed_is_kept(slot, annotator):
    key = uuid4()
    submit(slot, annotator, key=key)

    with pytest.raises(Conflict) as refused:
        submit(slot, annotator, "something else", key=key, confirm_unreadable=True)
    with pytest.raises(Conflict):
        mark_unanswerable(slot=slot, reason="ill_posed", idempotency_key=key, by=annotator)

    assert refused.value.code == "already_answered"
    assert Annotation.objects.get().answer == "1/2"


def test_a_key_of_another_question_is_refused_and_what_was_typed_becomes_the_draft(slot, pool, annotator):
    key = submit(slot, annotator).idempotency_key
    other = claim_slot(user=annotator, round=factories.make_round(pool=pool))

    with pytest.raises(Conflict) as refused:
        submit(other, annotator, "7", key=key)

    assert refused.value.code == "key_used"
    assert own_draft(other, annotator).content["answer"] == "7"
    assert submit(other, annotator, "7").answer == "7"


def test_a_late_answer_counts_while_nobody_else_has_the_slot(slot, annotator):
    Slot.objects.filter(pk=slot.pk).update(lease_until=timezone.now() - timedelta(hours=9))

    assert not submit(slot, annotator).surplus


def test_a_late_answer_to_a_slot_given_back_counts_while_it_is_free(slot, annotator):
    release_slot(slot=slot, by=annotator)

    assert not submit(slot, annotator).surplus


def test_an_answer_after_the_slot_is_lost_is_kept_and_not_counted(slot, annotator, other_annotator):
    theirs = lose(slot, to=other_annotator)

    late = submit(slot, annotator, "5")
    counted = submit(theirs, other_annotator, "6")

    assert (late.surplus, counted.surplus) == (True, False)
    assert late.slot == counted.slot == slot
    assert GoldAnswer.objects.get().answer == "6"


def test_an_answer_after_the_round_was_closed_is_kept_and_not_counted(slot, annotator, manager):
    close_round(round=slot.round, by=manager)

    assert submit(slot, annotator).surplus
    assert not GoldAnswer.objects.exists()


def test_a_question_that_was_never_given_to_the_person_is_refused(slot, other_annotator, outsider):
    for user in (other_annotator, outsider):
        with pytest.raises(NotAllowed):
            submit(slot, user)
        with pytest.raises(NotAllowed):
            mark_unanswerable(slot=slot, reason="ill_posed", idempotency_key=uuid4(), by=user)

    assert not Annotation.objects.exists()


def test_work_finds_the_slot_the_person_holds_of_the_same_question(pool, annotator, other_annotator):
    factories.make_round(pool=pool, overlap=2)
    old = claim_slot(user=annotator, pool=pool)
    release_slot(slot=old, by=annotator)
    assert claim_slot(user=other_annotator, pool=pool) == old
    new = claim_slot(user=annotator, pool=pool)
    assert new != old

    annotation = submit(old, annotator)  # from the page of the first slot

    assert (annotation.slot, annotation.surplus) == (new, False)


@pytest.mark.parametrize("empty", ["", "   ", "\n\t", "\u200b\u00a0"])
def test_an_empty_answer_is_refused(slot, annotator, empty):
    with pytest.raises(LabelingError) as refused:
        submit(slot, annotator, empty, confirm_unreadable=True)

    assert refused.value.code == "answer_empty"
    slot.refresh_from_db()
    assert slot.state == Slot.State.LEASED


@pytest.mark.parametrize(
    ("text", "code"), [("1" * 10_001, "answer_too_long"), ("a\x00b", "text_invalid"), ("a\ud800b", "text_invalid")]
)
def test_what_cannot_be_stored_is_refused(slot, annotator, text, code):
    with pytest.raises(LabelingError) as refused:
        submit(slot, annotator, text)
    assert refused.value.code == code
    with pytest.raises(LabelingError):
        submit(slot, annotator, note=text * 3)


def test_an_answer_that_no_grader_can_read_needs_to_be_confirmed(slot, annotator):
    unreadable = "about a dozen"

    with pytest.raises(LabelingError) as refused:
        submit(slot, annotator, unreadable)
    annotation = submit(slot, annotator, unreadable, confirm_unreadable=True)

    assert refused.value.code == "answer_unreadable"
    assert (annotation.answer, annotation.read_as) == (unreadable, "")


def test_unanswerable_is_a_label_with_a_reason(slot, annotator):
    key = uuid4()

    with pytest.raises(LabelingError) as refused:
        mark_unanswerable(slot=slot, reason="", idempotency_key=key, by=annotator)
    annotation = mark_unanswerable(slot=slot, reason="missing_data", idempotency_key=key, by=annotator)

    assert refused.value.code == "unanswerable_reason_invalid"
    assert mark_unanswerable(slot=slot, reason="missing_data", idempotency_key=key, by=annotator) == annotation
    assert (annotation.answer, annotation.unanswerable_reason) == ("", "missing_data")
    assert not GoldAnswer.objects.exists()


def test_annotations_are_never_edited(slot, annotator):
    annotation = submit(slot, annotator)

    for change in (annotation.save, annotation.delete, Annotation.objects.all().delete):
        with pytest.raises(TypeError):
            change()
    with pytest.raises(TypeError):
        Annotation.objects.update(answer="7")


@pytest.mark.parametrize(
    "broken",
    [
        {"answer": "2", "unanswerable_reason": "ill_posed"},  # both
        {"answer": "", "unanswerable_reason": ""},  # neither
        {"answer": "2"},  # a second that counts for the slot
    ],
)
def test_the_database_refuses_an_impossible_annotation(slot, annotator, other_annotator, broken):
    submit(slot, annotator)

    with pytest.raises(IntegrityError), transaction.atomic():
        Annotation.objects.create(slot=slot, annotator=other_annotator, **broken)


def test_the_database_refuses_a_key_used_twice_by_one_person(slot, annotator):
    key = submit(slot, annotator).idempotency_key

    with pytest.raises(IntegrityError), transaction.atomic():
        Annotation.objects.create(slot=slot, annotator=annotator, idempotency_key=key, answer="2", surplus=True)
