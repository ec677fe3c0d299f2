import pytest
from django.db import IntegrityError, transaction

from labeling.actions.annotation import claim_slot
from labeling.actions.budgets import add_units, grant_budget
from labeling.actions.pools import save_guideline
from labeling.actions.rounds import close_round, open_round, pause_round, resume_round
from labeling.errors import Conflict, LabelingError, NotAllowed
from labeling.models import AuditEvent, Budget, BudgetUnit, GoldAnswer, Round, Slot
from labeling.queries.pools import budget_row
from tests import factories


def test_granting_a_budget_creates_its_units(pool, manager):
    budget = grant_budget(pool=pool, name="  First   round ", units=12, by=manager)

    assert budget.name == "First round"
    assert list(budget.units.values_list("number", flat=True)) == list(range(1, 13))
    assert AuditEvent.objects.get(action="budget.granted").details == {"units": 12}


def test_a_budget_is_granted_once_per_name(pool, manager):
    grant_budget(pool=pool, name="May", units=3, by=manager)

    with pytest.raises(Conflict, match="3 units") as refused:
        grant_budget(pool=pool, name="May", units=3, by=manager)

    assert refused.value.code == "budget_exists"
    assert BudgetUnit.objects.count() == 3


@pytest.mark.parametrize("units", [0, -1, 100_001])
def test_a_number_of_units_that_cannot_be_meant_is_refused(pool, manager, units):
    budget = factories.make_budget(pool=pool, units=1)

    with pytest.raises(LabelingError):
        grant_budget(pool=pool, name="May", units=units, by=manager)
    with pytest.raises(LabelingError):
        add_units(budget=budget, units=units, by=manager)
    with pytest.raises(LabelingError):
        grant_budget(pool=pool, name=" ", units=1, by=manager)


def test_adding_units_twice_from_one_form_adds_once(pool, manager):
    budget = factories.make_budget(pool=pool, units=4)

    add_units(budget=budget, units=2, by=manager, granted_before=4)
    with pytest.raises(Conflict, match="6 units now, not 4"):
        add_units(budget=budget, units=2, by=manager, granted_before=4)
    add_units(budget=budget, units=1, by=manager)

    assert list(budget.units.values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6, 7]


def test_only_managers_spend(pool, annotator, outsider, manager):
    budget = factories.make_budget(pool=pool)
    run = factories.make_run(pool=pool, n_picks=1)
    round = factories.make_round(pool=pool)

    for user in (annotator, outsider):
        for refused in (
            lambda by=user: grant_budget(pool=pool, name="x", units=1, by=by),
            lambda by=user: add_units(budget=budget, units=1, by=by),
            lambda by=user: open_round(run=run, budget=budget, by=by),
            lambda by=user: pause_round(round=round, by=by),
            lambda by=user: resume_round(round=round, by=by),
            lambda by=user: close_round(round=round, by=by),
            lambda by=user: save_guideline(pool=pool, text="x", by=by),
        ):
            with pytest.raises(NotAllowed):
                refused()


def test_opening_a_round_takes_one_unit_for_each_answer(pool, manager):
    run = factories.make_run(pool=pool, n_picks=3)
    budget = factories.make_budget(pool=pool, units=8)
    guideline = save_guideline(pool=pool, text="Give exact answers.", by=manager)

    round = open_round(run=run, budget=budget, overlap=2, by=manager)

    slots = list(round.slots.order_by("priority", "id"))
    assert [(slot.priority, slot.state) for slot in slots] == [(rank, "open") for rank in (1, 1, 2, 2, 3, 3)]
    assert {slot.unit.number for slot in slots} == {1, 2, 3, 4, 5, 6}
    assert round.guideline == guideline
    row = budget_row(budget=budget)
    assert (row.granted, row.spent, row.reserved, row.held, row.free) == (8, 0, 6, 2, 0)
    assert AuditEvent.objects.get(action="round.opened").details == {
        "questions": 3,
        "overlap": 2,
        "units": 6,
        "held": 2,
        "check_rate": 0.0,
        "practice": 0,
    }


def test_a_round_is_refused_with_the_exact_numbers_when_units_are_missing(pool, manager):
    run = factories.make_run(pool=pool, n_picks=3)
    budget = factories.make_budget(pool=pool, units=7)
    factories.make_round(pool=pool, budget=budget, n_questions=2)

    with pytest.raises(Conflict) as refused:
        open_round(run=run, budget=budget, overlap=2, by=manager)

    assert refused.value.details == {"wanted": 6, "free": 5, "missing": 1}
    assert "3 questions × 2 answers need 6 units" in refused.value.message
    assert Round.objects.count() == 1


def test_questions_of_a_live_round_or_with_a_gold_answer_are_refused_by_name(pool, manager):
    labeled = factories.make_question(pool=pool, uid="labeled")
    busy = factories.make_question(pool=pool, uid="busy")
    budget = factories.make_budget(pool=pool, units=9)
    round = factories.make_round(run=factories.make_run(pool=pool, questions=[busy]))
    GoldAnswer.objects.create(question=labeled, round=round, answer="1", source="single")

    with pytest.raises(Conflict, match="labeled already: labeled"):
        open_round(run=factories.make_run(pool=pool, questions=[labeled]), budget=budget, by=manager)
    with pytest.raises(Conflict, match="another round; close it first: busy") as refused:
        open_round(run=round.run, budget=budget, by=manager)  # pressed twice

    assert refused.value.details == {"uids": ["busy"]}
    close_round(round=round, by=manager)
    assert open_round(run=round.run, budget=budget, by=manager).slots.count() == 1


def test_what_cannot_be_opened_is_refused(pool, manager):
    budget = factories.make_budget(pool=pool, units=9)
    run = factories.make_run(pool=pool, n_picks=1)
    unfinished = factories.make_run(pool=pool, n_picks=1, status="queued")
    fruitless = factories.make_run(pool=pool)

    for fields, code in (
        ({"run": unfinished, "budget": budget}, "run_not_finished"),
        ({"run": fruitless, "budget": budget}, "run_without_picks"),
        ({"run": run, "budget": factories.make_budget()}, "budget_of_another_pool"),
        ({"run": run, "budget": budget, "overlap": 0}, "overlap_invalid"),
    ):
        with pytest.raises(LabelingError) as refused:
            open_round(by=manager, **fields)
        assert refused.value.code == code

    assert not Round.objects.exists()


def test_closing_gives_back_what_was_not_done_and_closing_again_changes_nothing(pool, manager, annotator):
    round = factories.make_round(pool=pool, n_questions=3)
    done, held = round.slots.order_by("id")[:2]
    Slot.objects.filter(pk=done.pk).update(state="done", holder=manager)
    factories.make_held_slot(round=round, user=annotator, slot=held)

    close_round(round=round, by=manager)
    closed = close_round(round=round, by=manager)

    assert closed.closed_at is not None
    assert list(round.slots.order_by("id").values_list("state", flat=True)) == ["done", "void", "void"]
    assert budget_row(budget=round.budget).free == 2
    assert AuditEvent.objects.filter(action="round.closed").count() == 1
    with pytest.raises(Conflict, match="closed and cannot become live"):
        resume_round(round=round, by=manager)
    assert claim_slot(user=annotator, pool=pool) is None


def test_pausing_and_resuming_twice_changes_nothing(pool, manager):
    round = factories.make_round(pool=pool)

    for _ in range(2):
        assert pause_round(round=round, by=manager).status == Round.Status.PAUSED
    for _ in range(2):
        assert resume_round(round=round, by=manager).status == Round.Status.LIVE

    assert list(AuditEvent.objects.order_by("id").values_list("action", flat=True)) == ["round.paused", "round.live"]


def test_the_database_refuses_to_spend_a_unit_twice(pool):
    round = factories.make_round(pool=pool)
    slot = round.slots.get()
    other = factories.make_question(pool=pool)

    with pytest.raises(IntegrityError), transaction.atomic():
        Slot.objects.create(round=round, unit=slot.unit, question=other)
    Slot.objects.filter(pk=slot.pk).update(state="void")
    assert Slot.objects.create(round=round, unit=slot.unit, question=other).pk


def test_the_database_refuses_impossible_budgets_and_rounds(pool):
    round = factories.make_round(pool=pool)

    for broken in (
        lambda: Budget.objects.create(pool=pool, name=round.budget.name),
        lambda: BudgetUnit.objects.create(budget=round.budget, number=1),
        lambda: Round.objects.filter(pk=round.pk).update(overlap=0),
        lambda: Round.objects.filter(pk=round.pk).update(status="closed"),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            broken()


def test_a_guideline_text_is_a_version_and_the_same_text_is_not_another(pool, manager):
    first = save_guideline(pool=pool, text="One.\r\nTwo.", by=manager)

    assert save_guideline(pool=pool, text="One.\nTwo.\n", by=manager) == first
    assert save_guideline(pool=pool, text="Three.", by=manager).version == 2
    with pytest.raises(LabelingError, match="empty"):
        save_guideline(pool=pool, text=" \n", by=manager)
    assert AuditEvent.objects.filter(action="guideline.saved").count() == 2
