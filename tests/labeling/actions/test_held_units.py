"""What a round holds back: no disagreement waits for money, and what is not needed comes back."""

from uuid import uuid4

import pytest

from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.rounds import close_round, open_round
from labeling.errors import Conflict, LabelingError
from labeling.models import AuditEvent, Round, Slot
from labeling.queries.pools import budget_row
from tests import factories


def figures(budget):
    row = budget_row(budget=budget)
    assert row.granted == row.spent + row.reserved + row.held + row.free
    return row


def disagree(pool, *people):
    for number, user in enumerate(people):
        slot = claim_slot(user=user, pool=pool)
        submit_annotation(slot=slot, answer=str(number), idempotency_key=uuid4(), by=user)


@pytest.mark.parametrize(("overlap", "units", "held"), [(2, 20, 3), (2, 8, 2), (2, 6, 0), (1, 20, 0)])
def test_one_unit_is_held_for_each_question_that_can_be_disputed_or_as_many_as_there_are(
    pool, manager, overlap, units, held
):
    budget = factories.make_budget(pool=pool, units=units)

    open_round(run=factories.make_run(pool=pool, n_picks=3), budget=budget, overlap=overlap, by=manager)

    row = figures(budget)
    assert (row.reserved, row.held, row.free) == (3 * overlap, held, units - 3 * overlap - held)


def test_a_round_whose_answers_fit_but_not_what_it_is_to_hold_is_refused_with_the_numbers(pool, manager):
    budget = factories.make_budget(pool=pool, units=8)

    with pytest.raises(Conflict) as refused:
        open_round(run=factories.make_run(pool=pool, n_picks=3), budget=budget, overlap=2, held=3, by=manager)

    assert "3 questions × 2 answers and 3 held back need 9 units" in refused.value.message
    assert "has 8 free, 1 too few" in refused.value.message
    assert refused.value.details == {"wanted": 9, "free": 8, "missing": 1}
    assert not Round.objects.exists()
    assert figures(budget).free == 8


@pytest.mark.parametrize("held", [-1, 100_001])
def test_a_number_that_cannot_be_meant_is_refused(pool, manager, held):
    budget = factories.make_budget(pool=pool)

    with pytest.raises(LabelingError) as refused:
        open_round(run=factories.make_run(pool=pool, n_picks=1), budget=budget, held=held, by=manager)

    assert refused.value.code == "held_invalid"


def test_another_round_cannot_take_what_is_held(pool, manager):
    budget = factories.make_budget(pool=pool, units=6)
    open_round(run=factories.make_run(pool=pool, n_picks=2), budget=budget, overlap=2, by=manager)

    with pytest.raises(Conflict) as refused:
        open_round(run=factories.make_run(pool=pool, n_picks=1), budget=budget, by=manager)

    assert refused.value.details == {"wanted": 1, "free": 0, "missing": 1}


def test_a_disagreement_is_paid_with_a_held_unit(pool, manager, annotator, other_annotator):
    budget = factories.make_budget(pool=pool, units=3)
    round = open_round(run=factories.make_run(pool=pool, n_picks=1), budget=budget, overlap=2, by=manager)
    assert (figures(budget).held, figures(budget).free) == (1, 0)

    disagree(pool, annotator, other_annotator)

    adjudication = round.slots.get(purpose=Slot.Purpose.ADJUDICATION)
    assert adjudication.unit.held_for == round
    row = figures(budget)
    assert (row.spent, row.reserved, row.held, row.free) == (2, 1, 0, 0)


def test_closing_gives_back_what_is_held_and_what_is_not_answered(pool, manager, annotator):
    budget = factories.make_budget(pool=pool, units=6)
    round = open_round(run=factories.make_run(pool=pool, n_picks=2), budget=budget, overlap=2, by=manager)
    disagree(pool, annotator)

    for _ in range(2):
        close_round(round=round, by=manager)

    row = figures(budget)
    assert (row.spent, row.reserved, row.held, row.free, row.refunded) == (1, 0, 0, 5, 3)
    event = AuditEvent.objects.get(action="round.gave_back")
    assert (event.budget, event.details) == (budget, {"units": 3, "held": 2})
