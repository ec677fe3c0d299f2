"""People say which answers mean the same, and the question settles by it."""

from uuid import uuid4

import pytest

from labeling.actions.adjudication import claim_adjudication, decide
from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.meaning import merge_answers, split_answer
from labeling.actions.revising import revise
from labeling.errors import Conflict, LabelingError, NotAllowed
from labeling.models import AuditEvent, GoldAnswer, MeaningVerdict, Role, Slot
from labeling.queries.meaning import clusters_of, pair_of
from labeling.queries.pools import budget_row
from labeling.queries.rounds import QuestionState, round_progress
from selector.answers import AnswerPolicy
from tests import factories

POLICY = AnswerPolicy()


@pytest.fixture
def answered(pool, annotator, other_annotator):
    """Return a function that opens a round of one question with two answers, and a unit for an adjudication."""

    def made(*answers, kind="text", units=3, people=()):
        people = [annotator, other_annotator, *people]
        run = factories.make_run(pool=pool, questions=[factories.make_question(pool=pool, answer_kind=kind)])
        round = factories.make_round(run=run, overlap=len(answers), units=units)
        for user, text in zip(people, answers, strict=False):
            slot = claim_slot(user=user, round=round)
            submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user)
        return round, round.slots.first().question

    return made


def groups(answers, verdicts, kind="text"):
    return clusters_of(answers, kind=kind, policy=POLICY, verdicts=verdicts)


def test_without_a_word_of_people_the_grader_groups():
    found = groups(["0.5", "1/2", "2"], {}, kind="number")

    assert found.numbers == (0, 0, 1)
    assert not found.merged
    assert not found.split


def test_merging_joins_whole_groups_and_says_so():
    found = groups(["a", "b", "c", "a"], {pair_of("a", "c"): True})

    assert found.numbers == (0, 1, 0, 0)
    assert found.merged == {0}


def test_splitting_takes_one_form_out_of_its_group():
    forms = groups(["0.5", "1/2", "50%"], {}, kind="number").forms
    other = next(each for each in forms if each != forms[0])
    said = {pair_of(each, other): False for each in set(forms) - {other}}

    found = groups(["0.5", "1/2", "50%"], said, kind="number")

    assert [each == other for each in found.forms] == [number != found.numbers[0] for number in found.numbers]
    assert found.split == {0, 1}


def test_two_that_differ_are_not_brought_together_through_a_third():
    same, apart = pair_of("a", "b"), pair_of("b", "c")

    assert groups(["a", "b", "c"], {same: True, apart: False}).numbers == (0, 0, 1)


def test_merging_everything_settles_without_a_unit(answered, adjudicator):
    round, question = answered("one half", "a half")
    assert round_progress(round=round).count(QuestionState.ADJUDICATING) == 1
    slot = claim_adjudication(user=adjudicator, round=round)

    merge_answers(round=round, question=question, groups=[{"one half"}, {"a half"}], by=adjudicator)

    gold = GoldAnswer.objects.get()
    assert (gold.answer, gold.source, gold.get_source_display()) == ("1/2", "merged", "Merged by a person")
    slot.refresh_from_db()
    assert slot.state == Slot.State.VOID
    assert budget_row(budget=round.budget).free == 1
    event = AuditEvent.objects.get(action="answers.merged")
    assert (event.actor, event.details["question"]) == (adjudicator, question.uid)


def test_merging_two_of_three_leaves_the_adjudicator_her_question(answered, adjudicator):
    third = factories.make_user(pool=factories.Pool.objects.get(), roles=(Role.ANNOTATOR,))
    round, question = answered("one half", "a half", "two", units=4, people=[third])
    slot = claim_adjudication(user=adjudicator, round=round)

    merge_answers(round=round, question=question, groups=[{"one half"}, {"a half"}], by=adjudicator)

    slot.refresh_from_db()
    assert (slot.state, slot.holder) == (Slot.State.LEASED, adjudicator)
    assert not GoldAnswer.objects.exists()


def test_splitting_takes_the_gold_back_and_asks_an_adjudicator_and_merging_undoes_it(answered, manager):
    round, question = answered("0.5", "1/2", kind="number")
    golds = GoldAnswer.objects.filter(question=question)
    assert golds.get().source == "agreement"

    split_answer(round=round, question=question, form="0.5", others={"1/2"}, by=manager)

    assert not golds.exists()
    assert round_progress(round=round).count(QuestionState.ADJUDICATING) == 1

    merge_answers(round=round, question=question, groups=[{"0.5"}, {"1/2"}], by=manager)

    assert golds.get().source == "agreement"
    assert budget_row(budget=round.budget).free == 1
    assert list(MeaningVerdict.objects.values_list("same", flat=True)) == [False, True]


def test_a_revised_answer_settles_with_what_was_said_before(answered, manager, annotator):
    round, question = answered("one half", "a half")
    merge_answers(round=round, question=question, groups=[{"one half"}, {"a half"}], by=manager)
    slot = round.slots.filter(holder=annotator).get()

    revise(slot=slot, idempotency_key=uuid4(), by=annotator, answer="two")
    assert not GoldAnswer.objects.exists()
    revise(slot=slot, idempotency_key=uuid4(), by=annotator, answer="one half")

    assert GoldAnswer.objects.get().source == "merged"


def test_saying_it_again_changes_nothing(answered, manager):
    round, question = answered("one half", "a half")

    for _ in range(2):
        merge_answers(round=round, question=question, groups=[{"one half"}, {"a half"}], by=manager)

    assert MeaningVerdict.objects.count() == 1
    assert AuditEvent.objects.filter(action="answers.merged").count() == 1


def test_who_may_not(answered, annotator, outsider, manager, adjudicator):
    round, question = answered("one half", "a half")
    factories.make_membership(pool=round.pool, user=annotator, role=Role.ADJUDICATOR)

    for user in (annotator, outsider):
        with pytest.raises(NotAllowed):
            merge_answers(round=round, question=question, groups=[{"one half"}, {"a half"}], by=user)
    claim_adjudication(user=adjudicator, round=round)
    with pytest.raises(Conflict) as held:
        merge_answers(round=round, question=question, groups=[{"one half"}, {"a half"}], by=manager)
    assert held.value.code == "question_held"
    assert not MeaningVerdict.objects.exists()


def test_what_is_decided_stands_and_what_nobody_said_is_refused(answered, adjudicator, manager):
    round, question = answered("one half", "a half")
    slot = claim_adjudication(user=adjudicator, round=round)

    with pytest.raises(Conflict) as stale:
        merge_answers(round=round, question=question, groups=[{"one half"}, {"a third"}], by=adjudicator)
    assert stale.value.code == "answers_changed"
    with pytest.raises(LabelingError):
        merge_answers(round=round, question=question, groups=[{"one half"}], by=adjudicator)
    with pytest.raises(LabelingError):
        split_answer(round=round, question=question, form="one half", others={"one half"}, by=adjudicator)

    decide(slot=slot, answer="two", idempotency_key=uuid4(), by=adjudicator)
    with pytest.raises(Conflict) as decided:
        merge_answers(round=round, question=question, groups=[{"one half"}, {"a half"}], by=manager)
    assert decided.value.code == "question_decided"
