"""One more answer to a question whose label is in doubt."""

from uuid import uuid4

import pytest

from labeling.actions.adjudication import claim_adjudication
from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.extra_answers import buy_answer
from labeling.actions.rounds import close_round
from labeling.errors import Conflict, NotAllowed
from labeling.models import GoldAnswer, Role, Slot
from labeling.queries.label_risk import label_risk
from labeling.queries.pools import budget_row
from labeling.queries.quality import round_checks
from labeling.queries.rounds import QuestionState, round_progress
from tests import factories


@pytest.fixture
def third(pool):
    return factories.make_user(username="third", pool=pool, roles=(Role.ANNOTATOR,))


def answered(pool, *said, units):
    """A round of one question that these people have answered so."""
    round = factories.make_round(pool=pool, n_questions=1, overlap=len(said), units=units)
    for user, text in said:
        answer(round, user, text)
    return round, round.slots.first().question


def answer(round, user, text):
    slot = claim_slot(user=user, round=round)
    submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user)


def buy(round, question, by, asked=2):
    return buy_answer(round=round, question=question, asked_before=asked, by=by)


def test_a_third_answer_settles_a_disagreement_by_the_meaning_of_most(pool, annotator, other_annotator, third, manager):
    round, question = answered(pool, (annotator, "1"), (other_annotator, "2"), units=3)
    assert budget_row(budget=round.budget).free == 0

    buy(round, question, manager)

    state = round_progress(round=round).questions[0]
    assert (state.state, state.n_answers, state.overlap) == (QuestionState.ANSWERING, 2, 3)
    answer(round, third, "2.0")
    gold = GoldAnswer.objects.get()
    assert (gold.answer, gold.source) == ("2", "majority")
    assert budget_row(budget=round.budget).spent == 3


def test_a_third_answer_that_differs_from_both_goes_to_an_adjudicator(pool, annotator, other_annotator, third, manager):
    round, question = answered(pool, (annotator, "1"), (other_annotator, "2"), units=4)

    buy(round, question, manager)
    answer(round, third, "3")

    assert round_progress(round=round).count(QuestionState.ADJUDICATING) == 1


def test_a_label_in_doubt_is_taken_back_until_the_answer_is_in(pool, annotator, other_annotator, third, manager):
    round, question = answered(pool, (annotator, "1"), units=3)
    assert GoldAnswer.objects.get().source == "single"

    buy(round, question, manager, asked=1)
    assert not GoldAnswer.objects.exists()
    answer(round, other_annotator, "1")

    assert GoldAnswer.objects.get().source == "agreement"


def test_closing_before_the_answer_is_in_brings_the_label_back(pool, annotator, other_annotator, manager):
    round, question = answered(pool, (annotator, "1"), units=2)
    buy(round, question, manager, asked=1)

    close_round(round=round, by=manager)

    assert GoldAnswer.objects.get().source == "single"


def test_it_is_refused_with_what_is_missing(pool, annotator, other_annotator, third, manager, adjudicator):
    round, question = answered(pool, (annotator, "1"), (other_annotator, "1"), units=2)

    def code(**fields):
        with pytest.raises(Conflict) as refused:
            buy(round, question, manager, **fields)
        return refused.value.code

    assert code() == "units_missing"
    assert GoldAnswer.objects.count() == 1
    assert code(asked=1) == "answers_changed"
    third.memberships.all().delete()
    assert code() == "nobody_left"
    close_round(round=round, by=manager)
    assert code() == "round_closed"
    with pytest.raises(NotAllowed):
        buy(round, question, annotator)


def test_what_an_adjudicator_has_taken_is_not_asked_again(
    pool, annotator, other_annotator, third, manager, adjudicator
):
    round, question = answered(pool, (annotator, "1"), (other_annotator, "2"), units=4)
    claim_adjudication(user=adjudicator, round=round)

    with pytest.raises(Conflict) as refused:
        buy(round, question, manager)

    assert refused.value.code == "question_decided"
    assert Slot.objects.filter(round=round, purpose="label").count() == 2


def test_the_round_page_needs_no_more_queries_for_more_questions(
    pool, annotator, other_annotator, django_assert_max_num_queries
):
    n_queries = []
    for n in (1, 12):
        round = factories.make_round(pool=pool, n_questions=n, overlap=2, units=2 * n)
        for user in (annotator, other_annotator):
            for _ in range(n):
                answer(round, user, "1")
        with django_assert_max_num_queries(40) as captured:
            progress = round_progress(round=round)
            risk = label_risk(progress=progress, checks=round_checks(round=round))
        n_queries.append(len(captured))
        assert (risk.n_labels, risk.by_agreement.n_labels) == (n, n)
        close_round(round=round, by=None)
    assert n_queries[0] == n_queries[1]
