"""In place of an unanswerable question comes the next one of its run's own order, if money is there."""

from uuid import uuid4

import pytest

from labeling.actions.adjudication import claim_adjudication, decide
from labeling.actions.annotation import claim_slot, mark_unanswerable, submit_annotation
from labeling.actions.budgets import add_units
from labeling.actions.revising import undo
from labeling.actions.rounds import close_round, open_round
from labeling.actions.settling import sweep_rounds
from labeling.engine.selection import control_order
from labeling.models import AuditEvent, GoldAnswer, QuestionScore, Replacement
from labeling.queries.pools import budget_row
from labeling.queries.rounds import QuestionState, round_progress
from tests import factories


def make_scored_run(pool, *, taken_by="global_order", clusters=(0, 1, 0, 1, 0), n_picks=2):
    """A run that ordered five questions as they come and picked the first ones."""
    questions = factories.make_questions(pool=pool, n=len(clusters))
    run = factories.make_run(pool=pool, n_picks=0)
    run.picks.all().delete()
    for place, (question, cluster) in enumerate(zip(questions, clusters, strict=True), start=1):
        QuestionScore.objects.create(
            run=run,
            question=question,
            set_size=3,
            acquisition_score=3.0,
            entropy=0.5,
            n_readable=20,
            n_distinct=3,
            cluster=cluster,
            place=place,
        )
        if place <= n_picks:
            factories.make_pick(run=run, question=question, rank=place, taken_by=taken_by, cluster=cluster)
    return run, questions


def open_(pool, run, manager, *, units, **settings):
    return open_round(run=run, budget=factories.make_budget(pool=pool, units=units), by=manager, **settings)


def give_up(user, pool):
    slot = claim_slot(user=user, pool=pool)
    return mark_unanswerable(slot=slot, reason="ill_posed", idempotency_key=uuid4(), by=user)


def answer(user, pool, text):
    slot = claim_slot(user=user, pool=pool)
    return submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user)


def replaced(round):
    return {each.replaced: each.replacement for each in round.replacements.select_related("replaced", "replacement")}


@pytest.mark.parametrize(("taken_by", "expected"), [("global_order", 2), ("cluster", 3), ("joint", 2)])
def test_the_next_of_the_strategys_order_takes_the_place(pool, manager, annotator, taken_by, expected):
    run, questions = make_scored_run(pool, taken_by=taken_by, clusters=(1, 0, 0, 1, 0))
    round = open_(pool, run, manager, units=3)

    give_up(annotator, pool)

    assert replaced(round) == {questions[0]: questions[expected]}
    following = claim_slot(user=annotator, pool=pool)
    assert following.question == questions[expected]
    event = AuditEvent.objects.get(action="question.replaced")
    assert event.budget == round.budget
    assert event.details["question"] == questions[0].uid
    assert event.details["replacement"] == questions[expected].uid
    assert (event.details["place"], event.details["units"]) == (expected + 1, 1)


def test_the_best_of_a_cluster_that_has_no_more_is_replaced_by_the_next_of_all(pool, manager, annotator):
    run, questions = make_scored_run(pool, taken_by="cluster", clusters=(7, 0, 0, 0, 0))
    round = open_(pool, run, manager, units=3)

    give_up(annotator, pool)

    assert replaced(round) == {questions[0]: questions[2]}
    assert round.replacements.get().taken_by == "global_order"


def test_a_control_is_replaced_by_the_next_of_the_draw(pool, manager, annotator):
    run, questions = make_scored_run(pool, taken_by="control", clusters=(0,) * 5)
    drawn = control_order([question.uid for question in questions[2:]], 0)
    round = open_(pool, run, manager, units=3)

    give_up(annotator, pool)

    assert replaced(round)[questions[0]].uid == drawn[0]
    assert round.replacements.get().taken_by == "control"


def test_what_cannot_be_picked_is_passed_over(pool, manager, annotator):
    run, questions = make_scored_run(pool)
    QuestionScore.objects.filter(question=questions[2]).update(eligible=False, ineligible_reason="too_few_readable")
    other = factories.make_round(run=factories.make_run(pool=pool, questions=[questions[3]]))
    GoldAnswer.objects.create(question=questions[3], round=other, answer="1", answer_kind="number", source="single")
    close_round(round=other, by=manager)
    round = open_(pool, run, manager, units=3)

    give_up(annotator, pool)

    assert replaced(round) == {questions[0]: questions[4]}


def test_a_replacement_is_replaced_in_its_turn_until_none_is_left(pool, manager, annotator):
    run, questions = make_scored_run(pool)
    round = open_(pool, run, manager, units=9)

    for _ in questions:
        give_up(annotator, pool)

    assert len(replaced(round)) == 3
    assert claim_slot(user=annotator, pool=pool) is None
    progress = round_progress(round=round)
    assert [row.replaced_by for row in progress.questions].count(None) == 2
    assert all(row.state == QuestionState.UNANSWERABLE for row in progress.questions)
    row = budget_row(budget=round.budget)
    assert (row.spent, row.reserved, row.free) == (5, 0, 4)


def test_no_more_is_spent_than_granted_and_a_replacement_waits_for_units(pool, manager, annotator):
    run, questions = make_scored_run(pool)
    round = open_(pool, run, manager, units=2)

    give_up(annotator, pool)
    sweep_rounds()

    assert not round.replacements.exists()
    progress = round_progress(round=round)
    assert progress.questions[0].waits_for_replacement
    assert "1 question that cannot be answered waits to be replaced" in " ".join(progress.warnings)

    add_units(budget=round.budget, units=1, by=manager)

    assert replaced(round) == {questions[0]: questions[2]}
    row = budget_row(budget=round.budget)
    assert (row.granted, row.spent, row.reserved, row.free) == (3, 1, 2, 0)


def test_a_replacement_leaves_what_disagreements_may_need(pool, manager, annotator, other_annotator):
    run, questions = make_scored_run(pool, n_picks=2)
    round = open_(pool, run, manager, units=7, overlap=2, held=2)  # 4 answers, 2 held, 1 free: too few for two answers

    for user in (annotator, other_annotator):
        give_up(user, pool)

    assert not round.replacements.exists()

    add_units(budget=round.budget, units=1, by=manager)

    assert replaced(round) == {questions[0]: questions[2]}
    row = budget_row(budget=round.budget)
    assert (row.spent, row.reserved, row.held, row.free) == (2, 4, 2, 0)


def test_the_adjudicator_who_finds_no_answer_has_it_replaced(pool, manager, annotator, other_annotator, adjudicator):
    run, questions = make_scored_run(pool, n_picks=1)
    round = open_(pool, run, manager, units=5, overlap=2)
    give_up(annotator, pool)
    answer(other_annotator, pool, "1")
    assert not round.replacements.exists()

    slot = claim_adjudication(user=adjudicator, pool=pool)
    decide(slot=slot, unanswerable_reason="ill_posed", idempotency_key=uuid4(), by=adjudicator)

    assert replaced(round) == {questions[0]: questions[1]}
    assert not round_progress(round=round).questions[0].waits_for_replacement


def test_undo_takes_the_replacement_back_while_nobody_has_it(pool, manager, annotator, other_annotator):
    run, questions = make_scored_run(pool, n_picks=1)
    round = open_(pool, run, manager, units=2)
    given = give_up(annotator, pool)
    assert round.replacements.exists()

    undo(slot=given.slot, by=annotator)

    assert not round.replacements.exists()
    row = budget_row(budget=round.budget)
    assert (row.spent, row.reserved, row.free) == (0, 1, 1)
    assert AuditEvent.objects.get(action="replacement.withdrawn").details["replacement"] == questions[1].uid

    give_up(annotator, pool)
    claim_slot(user=other_annotator, pool=pool)
    undo(slot=given.slot, by=annotator)

    assert replaced(round) == {questions[0]: questions[1]}


def test_a_closed_round_replaces_nothing(pool, manager, annotator):
    run, _ = make_scored_run(pool)
    round = open_(pool, run, manager, units=2)
    give_up(annotator, pool)

    close_round(round=round, by=manager)
    add_units(budget=round.budget, units=5, by=manager)
    sweep_rounds()

    assert not Replacement.objects.exists()
