"""Undo and revisions: what counts changes, what was said stays on record."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from labeling.actions.adjudication import claim_adjudication, decide
from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.revising import revise, undo
from labeling.actions.rounds import close_round
from labeling.errors import Conflict, LabelingError
from labeling.models import Annotation, AuditEvent, Draft, GoldAnswer, Slot
from labeling.queries import own_answers
from labeling.queries.rounds import round_progress
from tests import factories


def answer(user, pool, text="1/2", **fields):
    slot = claim_slot(user=user, pool=pool)
    submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user, **fields)
    return slot


def again(slot, user, text, **fields):
    return revise(slot=slot, idempotency_key=uuid4(), by=user, answer=text, **fields)


@pytest.fixture
def single(pool):
    return factories.make_round(pool=pool, n_questions=2, units=3)


@pytest.fixture
def double(pool):
    return factories.make_round(pool=pool, overlap=2, units=3)


def test_undo_gives_the_question_back_with_what_was_typed(single, pool, annotator):
    slot = answer(annotator, pool, "1/2", confident=False, note="checked twice")

    back = undo(slot=slot, by=annotator)

    assert (back.state, back.holder) == (Slot.State.LEASED, annotator)
    assert Draft.objects.get(question=slot.question).content == {
        "answer": "1/2",
        "unsure": True,
        "note": "checked twice",
    }
    assert not GoldAnswer.objects.exists()
    assert own_answers.state_for(back, annotator) == "held"
    assert Annotation.objects.count() == 1
    assert not Annotation.objects.counting().exists()


def test_after_undo_another_answer_counts_as_the_next_version(single, pool, annotator):
    slot = answer(annotator, pool, "1/2")
    undo(slot=slot, by=annotator)

    submit_annotation(slot=slot, answer="1/3", idempotency_key=uuid4(), by=annotator)

    assert list(Annotation.objects.values_list("version", "answer")) == [(1, "1/2"), (2, "1/3")]
    assert GoldAnswer.objects.get().answer == "1/3"
    assert round_progress(round=single).questions[0].n_answers == 1


def test_undo_lets_go_of_the_next_question_that_was_taken_meanwhile(single, pool, annotator):
    slot = answer(annotator, pool)
    following = claim_slot(user=annotator, pool=pool)

    undo(slot=slot, by=annotator)

    following.refresh_from_db()
    assert following.state == Slot.State.OPEN
    assert claim_slot(user=annotator, pool=pool) == slot


def test_undo_has_its_time(single, pool, annotator, settings):
    settings.ASSAY_UNDO_SECONDS = -1
    slot = answer(annotator, pool)

    with pytest.raises(Conflict) as caught:
        undo(slot=slot, by=annotator)

    assert caught.value.code == "undo_too_late"
    assert GoldAnswer.objects.exists()


def test_undo_takes_an_unclaimed_disagreement_back_and_frees_its_unit(double, pool, annotator, other_annotator):
    answer(annotator, pool, "1/2")
    slot = answer(other_annotator, pool, "2/3")
    assert not double.budget.units.free().exists()

    undo(slot=slot, by=other_annotator)

    assert double.budget.units.free().count() == 1
    assert AuditEvent.objects.filter(action="adjudication.withdrawn").count() == 1


def test_nothing_is_undone_once_an_adjudicator_has_the_question(double, pool, annotator, other_annotator, adjudicator):
    answer(annotator, pool, "1/2")
    slot = answer(other_annotator, pool, "2/3")
    claim_adjudication(user=adjudicator, pool=pool)

    with pytest.raises(Conflict) as caught:
        undo(slot=slot, by=other_annotator)

    assert caught.value.code == "question_decided"
    assert Annotation.objects.counting().count() == 2


def test_a_revision_counts_instead_and_the_first_answer_stays(single, pool, annotator):
    slot = answer(annotator, pool, "1/2")

    again(slot, annotator, "1/3", why="misread the sign")

    first, second = Annotation.objects.all()
    assert (first.answer, first.version, first.origin) == ("1/2", 1, "first")
    assert (second.answer, second.version, second.origin, second.why) == ("1/3", 2, "revision", "misread the sign")
    assert list(Annotation.objects.counting()) == [second]
    assert GoldAnswer.objects.get().answer == "1/3"


def test_a_revision_can_end_a_disagreement_or_make_one(double, pool, annotator, other_annotator):
    answer(annotator, pool, "1/2")
    slot = answer(other_annotator, pool, "2/3")

    again(slot, other_annotator, "0.5")
    assert GoldAnswer.objects.get().source == GoldAnswer.Source.AGREEMENT
    assert double.budget.units.free().count() == 1

    again(slot, other_annotator, "2/3")
    assert not GoldAnswer.objects.exists()
    assert double.slots.filter(purpose="adjudication", state="open").count() == 1


def test_a_revision_after_the_decision_is_kept_and_changes_nothing(
    double, pool, annotator, other_annotator, adjudicator
):
    answer(annotator, pool, "1/2")
    slot = answer(other_annotator, pool, "2/3")
    disputed = claim_adjudication(user=adjudicator, pool=pool)
    decide(slot=disputed, answer="1/2", idempotency_key=uuid4(), by=adjudicator)

    again(slot, other_annotator, "1/4")

    assert GoldAnswer.objects.get().answer == "1/2"
    assert Annotation.objects.counting().get(annotator=other_annotator).answer == "1/4"


def test_undoing_a_revision_brings_the_earlier_version_back(single, pool, annotator):
    slot = answer(annotator, pool, "1/2")
    again(slot, annotator, "1/3")

    undo(slot=slot, by=annotator)

    assert Annotation.objects.counting().get().answer == "1/2"
    assert GoldAnswer.objects.get().answer == "1/2"
    assert Slot.objects.get(pk=slot.pk).state == Slot.State.DONE


def test_a_revision_sent_twice_is_stored_once(single, pool, annotator):
    slot, key = answer(annotator, pool, "1/2"), uuid4()

    first = revise(slot=slot, idempotency_key=key, by=annotator, answer="1/3")
    second = revise(slot=slot, idempotency_key=key, by=annotator, answer="1/3")
    with pytest.raises(Conflict) as caught:
        revise(slot=slot, idempotency_key=key, by=annotator, answer="1/4")

    assert first == second
    assert caught.value.code == "key_used"
    assert Annotation.objects.count() == 2


def test_an_answer_can_become_unanswerable(single, pool, annotator):
    slot = answer(annotator, pool, "1/2")

    revise(slot=slot, idempotency_key=uuid4(), by=annotator, reason="ill_posed")
    with pytest.raises(LabelingError) as caught:
        revise(slot=slot, idempotency_key=uuid4(), by=annotator, reason="ill_posed", answer="1/2")

    assert caught.value.code == "answer_ambiguous"
    assert not GoldAnswer.objects.exists()


def test_what_does_not_count_or_is_over_cannot_be_revised(single, pool, annotator, other_annotator, manager):
    slot = claim_slot(user=annotator, pool=pool)
    Slot.objects.filter(pk=slot.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    claim_slot(user=other_annotator, pool=pool)
    submit_annotation(slot=slot, answer="1/2", idempotency_key=uuid4(), by=annotator)
    with pytest.raises(Conflict) as late:
        again(slot, annotator, "1/3")
    submit_annotation(slot=slot, answer="1/4", idempotency_key=uuid4(), by=other_annotator)
    close_round(round=single, by=manager)
    with pytest.raises(Conflict) as closed:
        again(slot, other_annotator, "1/3")

    assert (late.value.code, closed.value.code) == ("revision_not_counted", "round_closed")


def test_only_ones_own_answer_can_be_revised(single, pool, annotator, other_annotator):
    slot = answer(annotator, pool)

    with pytest.raises(Conflict) as caught:
        again(slot, other_annotator, "1/3")

    assert caught.value.code == "not_answered"
