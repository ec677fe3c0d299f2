from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from labeling.actions import adjudication as adjudicating
from labeling.actions import annotation as annotating
from labeling.actions import answers as checking
from labeling.actions import settling
from labeling.actions.adjudication import claim_adjudication, decide
from labeling.actions.annotation import claim_slot, mark_unanswerable, submit_annotation
from labeling.actions.budgets import add_units
from labeling.actions.rounds import close_round
from labeling.actions.settling import settle_question, sweep_rounds
from labeling.errors import Conflict, LabelingError, NotAllowed
from labeling.models import Adjudication, AuditEvent, Draft, GoldAnswer, Role, Slot
from labeling.queries.queue import empty_queue
from labeling.queries.rounds import QuestionState, round_progress
from tests import factories


def answer(user, pool, text):
    slot = claim_slot(user=user, pool=pool)
    if text is None:
        return mark_unanswerable(slot=slot, reason="ill_posed", idempotency_key=uuid4(), by=user)
    return submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user)


def state_of(round):
    return round_progress(round=round).questions[0].state


@pytest.fixture
def disputed(pool, annotator, other_annotator):
    """A round whose one question two people answered differently, with a unit left for an adjudicator."""
    round = factories.make_round(pool=pool, overlap=2, units=3)
    answer(annotator, pool, "1/2")
    answer(other_annotator, pool, "2/3")
    return round


def test_one_answer_settles_a_question_without_overlap(pool, annotator):
    round = factories.make_round(pool=pool)

    answer(annotator, pool, "0.5")

    gold = GoldAnswer.objects.get()
    assert (gold.answer, gold.source, gold.round, gold.answer_kind) == ("1/2", "single", round, "number")
    assert state_of(round) == QuestionState.GOLD
    assert AuditEvent.objects.get(action="gold_answer.settled").details["answer"] == "1/2"


def test_equivalent_answers_agree(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, overlap=2)

    answer(annotator, pool, "0.5")
    assert state_of(round) == QuestionState.ANSWERING
    answer(other_annotator, pool, "1/2")

    gold = GoldAnswer.objects.get()
    assert (gold.answer, gold.source) == ("1/2", "agreement")
    assert not Slot.objects.filter(purpose=Slot.Purpose.ADJUDICATION).exists()


@pytest.mark.parametrize(("first", "second"), [("1", "2"), ("1", None), (None, "1")])
def test_a_disagreement_opens_an_adjudication_on_a_free_unit(pool, annotator, other_annotator, first, second):
    round = factories.make_round(pool=pool, overlap=2, units=3)

    answer(annotator, pool, first)
    answer(other_annotator, pool, second)

    slot = Slot.objects.get(purpose=Slot.Purpose.ADJUDICATION)
    assert (slot.state, slot.unit.number, slot.priority) == (Slot.State.OPEN, 3, 1)
    assert not GoldAnswer.objects.exists()
    assert state_of(round) == QuestionState.ADJUDICATING


def test_unanimous_unanswerable_settles_without_a_gold_answer(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, overlap=2, units=3)

    answer(annotator, pool, None)
    answer(other_annotator, pool, None)
    sweep_rounds()

    assert state_of(round) == QuestionState.UNANSWERABLE
    assert not GoldAnswer.objects.exists()
    assert not Slot.objects.filter(purpose=Slot.Purpose.ADJUDICATION).exists()


def test_a_disagreement_without_a_free_unit_waits_until_one_is_added(
    pool, annotator, other_annotator, adjudicator, manager
):
    round = factories.make_round(pool=pool, overlap=2)
    answer(annotator, pool, "1")
    answer(other_annotator, pool, "2")
    progress = round_progress(round=round)
    assert (progress.questions[0].state, progress.n_waiting_for_unit) == (QuestionState.WAITING_FOR_UNIT, 1)
    assert any("Add 1 unit" in warning for warning in progress.warnings)
    assert claim_adjudication(user=adjudicator, pool=pool) is None
    assert empty_queue(user=adjudicator, pool=pool, purpose="adjudication").code == "budget"

    add_units(budget=round.budget, units=1, by=manager)

    assert claim_adjudication(user=adjudicator, pool=pool) is not None
    assert state_of(round) == QuestionState.ADJUDICATING


def test_settling_again_or_too_early_changes_nothing(disputed, pool):
    question = disputed.slots.first().question
    fresh = factories.make_round(pool=pool)

    settle_question(round=disputed, question=question)
    settle_question(round=fresh, question=fresh.slots.get().question)
    sweep_rounds()

    assert Slot.objects.filter(purpose=Slot.Purpose.ADJUDICATION).count() == 1
    assert not GoldAnswer.objects.exists()


def test_the_sweep_settles_what_a_crash_left(pool, annotator, monkeypatch):
    round = factories.make_round(pool=pool, units=2)
    with monkeypatch.context() as patched:
        patched.setattr(annotating, "settle_slot", lambda slot: None)
        answer(annotator, pool, "4")
    assert state_of(round) == QuestionState.SETTLING

    sweep_rounds()

    assert GoldAnswer.objects.get().answer == "4"


def test_submitting_again_settles_what_a_crash_left(pool, annotator, monkeypatch):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    key = uuid4()
    with monkeypatch.context() as patched:
        patched.setattr(annotating, "settle_slot", lambda slot: None)
        submit_annotation(slot=slot, answer="4", idempotency_key=key, by=annotator)
    assert not GoldAnswer.objects.exists()

    submit_annotation(slot=slot, answer="4", idempotency_key=key, by=annotator)

    assert GoldAnswer.objects.get().answer == "4"


def test_a_closed_round_opens_no_adjudication(pool, annotator, other_annotator, manager):
    round = factories.make_round(pool=pool, overlap=2)
    answer(annotator, pool, "1")
    answer(other_annotator, pool, "2")
    close_round(round=round, by=manager)

    add_units(budget=round.budget, units=5, by=manager)
    settle_question(round=round, question=round.slots.first().question)

    assert not Slot.objects.filter(purpose=Slot.Purpose.ADJUDICATION).exists()
    assert state_of(round) == QuestionState.ENDED


def test_the_adjudicators_decision_is_the_gold_answer(disputed, pool, adjudicator):
    slot = claim_adjudication(user=adjudicator, round=disputed)
    assert claim_adjudication(user=adjudicator, pool=pool) == slot

    decision = decide(slot=slot, answer="0.75", note="both wrong", idempotency_key=uuid4(), by=adjudicator)

    gold = GoldAnswer.objects.get()
    assert (gold.answer, gold.source) == ("3/4", "adjudication")
    assert (decision.answer, decision.note) == ("0.75", "both wrong")
    slot.refresh_from_db()
    assert (slot.state, slot.holder) == (Slot.State.DONE, adjudicator)
    assert round_progress(round=disputed).is_finished
    assert claim_adjudication(user=adjudicator, pool=pool) is None
    assert empty_queue(user=adjudicator, pool=pool, purpose="adjudication").code == "all_done"


def test_deciding_again_changes_nothing(disputed, adjudicator):
    slot = claim_adjudication(user=adjudicator, round=disputed)
    key = uuid4()
    first = decide(slot=slot, answer="7", idempotency_key=key, by=adjudicator)

    assert decide(slot=slot, answer="7", idempotency_key=key, by=adjudicator) == first
    with pytest.raises(Conflict, match="first decision stands"):
        decide(slot=slot, answer="8", idempotency_key=key, by=adjudicator)
    assert decide(slot=slot, answer="7", idempotency_key=uuid4(), by=adjudicator) == first
    with pytest.raises(Conflict):
        decide(slot=slot, answer="8", idempotency_key=uuid4(), by=adjudicator)

    assert Adjudication.objects.count() == 1
    assert GoldAnswer.objects.get().answer == "7"


def test_the_adjudicator_may_find_the_question_unanswerable(disputed, adjudicator):
    slot = claim_adjudication(user=adjudicator, round=disputed)
    with pytest.raises(LabelingError) as refused:
        decide(slot=slot, answer="1", unanswerable_reason="ill_posed", idempotency_key=uuid4(), by=adjudicator)

    decide(slot=slot, unanswerable_reason="ill_posed", idempotency_key=uuid4(), by=adjudicator)

    assert refused.value.code == "decision_ambiguous"
    assert not GoldAnswer.objects.exists()
    assert state_of(disputed) == QuestionState.UNANSWERABLE


def test_a_decision_needs_an_answer(disputed, adjudicator):
    slot = claim_adjudication(user=adjudicator, round=disputed)

    with pytest.raises(LabelingError) as refused:
        decide(slot=slot, answer=" ", idempotency_key=uuid4(), by=adjudicator)

    assert refused.value.code == "answer_empty"


def test_who_annotated_a_question_never_adjudicates_it(disputed, pool, annotator):
    factories.make_membership(pool=pool, user=annotator, role=Role.ADJUDICATOR)

    assert claim_adjudication(user=annotator, pool=pool) is None
    assert empty_queue(user=annotator, pool=pool, purpose="adjudication").code == "seen"


def test_the_database_refuses_an_annotator_as_adjudicator_of_the_same_question(disputed, annotator):
    slot = Slot.objects.get(purpose=Slot.Purpose.ADJUDICATION)

    with pytest.raises(IntegrityError), transaction.atomic():
        Slot.objects.filter(pk=slot.pk).update(state="done", holder=annotator)


def test_only_adjudicators_decide(disputed, adjudicator, annotator, manager):
    slot = claim_adjudication(user=adjudicator, round=disputed)

    for user in (annotator, manager):
        with pytest.raises(NotAllowed):
            claim_adjudication(user=user, round=disputed)
        with pytest.raises(NotAllowed):
            decide(slot=slot, answer="1", idempotency_key=uuid4(), by=user)


def test_a_slot_is_worked_on_by_its_own_kind_of_work(disputed, pool, adjudicator, annotator):
    factories.make_membership(pool=pool, user=adjudicator, role=Role.ANNOTATOR)
    slot = claim_adjudication(user=adjudicator, round=disputed)

    with pytest.raises(LabelingError, match="disagreement to decide"):
        submit_annotation(slot=slot, answer="1", idempotency_key=uuid4(), by=adjudicator)
    with pytest.raises(LabelingError, match="question to answer"):
        decide(slot=disputed.slots.first(), answer="1", idempotency_key=uuid4(), by=adjudicator)


def test_a_decision_on_a_lost_slot_is_refused_and_what_was_typed_is_kept(disputed, pool, adjudicator):
    slot = claim_adjudication(user=adjudicator, round=disputed)
    other = factories.make_user(pool=pool, roles=(Role.ADJUDICATOR,))
    Slot.objects.filter(pk=slot.pk).update(lease_until="2020-01-01T00:00Z")
    assert claim_adjudication(user=other, round=disputed) == slot

    with pytest.raises(Conflict) as refused:
        decide(slot=slot, answer="9", note="why", idempotency_key=uuid4(), by=adjudicator)

    assert refused.value.code == "slot_lost"
    kept = Draft.objects.get(author=adjudicator).content
    assert (kept["answer"], kept["note"]) == ("9", "why")


def test_the_database_refuses_a_second_adjudication_of_a_question(disputed):
    slot = Slot.objects.get(purpose=Slot.Purpose.ADJUDICATION)
    unit = factories.make_budget(pool=disputed.pool, units=1).units.get()

    with pytest.raises(IntegrityError), transaction.atomic():
        Slot.objects.create(round=disputed, unit=unit, question=slot.question, purpose=slot.purpose)


def test_the_database_refuses_a_second_or_empty_gold_answer(disputed, adjudicator):
    slot = claim_adjudication(user=adjudicator, round=disputed)
    other = factories.make_question(pool=disputed.pool)
    decide(slot=slot, answer="7", idempotency_key=uuid4(), by=adjudicator)

    for fields in ({"question": slot.question, "answer": "8"}, {"question": other, "answer": ""}):
        with pytest.raises(IntegrityError), transaction.atomic():
            GoldAnswer.objects.create(round=disputed, source="single", **fields)


@pytest.mark.django_db(transaction=True)
def test_answers_are_read_and_compared_outside_any_transaction(
    pool, annotator, other_annotator, adjudicator, monkeypatch
):
    inside = []

    def watched(work):
        def wrapper(*args, **kwargs):
            inside.append(connection.in_atomic_block)
            return work(*args, **kwargs)

        return wrapper

    for module, name in ((settling, "clusters_of"), (settling, "gold_form"), (checking, "read_as")):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    monkeypatch.setattr(adjudicating, "gold_form", watched(adjudicating.gold_form))
    round = factories.make_round(pool=pool, n_questions=2, overlap=2, units=5)
    for user, last in ((annotator, "2"), (other_annotator, "3")):
        answer(user, pool, "1")
        answer(user, pool, last)
    decide(slot=claim_adjudication(user=adjudicator, round=round), answer="4", idempotency_key=uuid4(), by=adjudicator)

    assert GoldAnswer.objects.count() == 2
    assert len(inside) == 9  # five answers read, two pairs compared, two gold answers formed
    assert not any(inside)
