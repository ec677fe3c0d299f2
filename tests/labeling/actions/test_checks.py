"""Sealed calibration checks among the questions of a round."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from labeling.actions.annotation import claim_slot, mark_unanswerable, skip_slot, submit_annotation
from labeling.actions.checks import grade_checks, is_for_practice
from labeling.actions.revising import revise, undo
from labeling.actions.rounds import close_round, open_round
from labeling.actions.settling import sweep_rounds
from labeling.errors import Conflict, LabelingError
from labeling.models import Annotation, Budget, CheckGrade, Draft, GoldAnswer, Role, Slot
from labeling.queries.pools import budget_row
from labeling.queries.queue import empty_queue
from labeling.queries.rounds import round_progress
from tests import factories


def open_with_checks(pool, *, n_questions=10, overlap=1, rate=0.5, n_items=40, units=None, **fields):
    """A round with checks, opened as a manager opens it."""
    items = factories.make_calibration_set(pool=pool, n_items=n_items)
    run = factories.make_run(pool=pool, n_picks=n_questions, calibration_set=items)
    budget = factories.make_budget(pool=pool, units=n_questions * overlap if units is None else units)
    return open_round(run=run, budget=budget, overlap=overlap, check_rate=rate, by=None, **fields)


def answer(slot, by, text="1", key=None):
    return submit_annotation(slot=slot, answer=text, idempotency_key=key or uuid4(), by=by)


def work_through(round, user, text=lambda slot: "1"):
    """Answer whatever comes until nothing does; the slots in their order."""
    slots = []
    while slot := claim_slot(user=user, round=round):
        answer(slot, user, text(slot))
        slots.append(slot)
    return slots


def checks_of(round):
    return Slot.objects.filter(round=round, purpose=Slot.Purpose.CHECK)


def test_a_round_has_one_check_for_each_so_many_answers_paid_by_units_of_their_own(pool):
    round = open_with_checks(pool, n_questions=10, overlap=2, rate=0.1)

    assert checks_of(round).count() == 2
    assert budget_row(budget=round.budget).free == 0
    own = Budget.objects.get(purpose=Budget.Purpose.CHECKS)
    assert (budget_row(budget=own).granted, budget_row(budget=own).reserved) == (2, 2)
    assert set(checks_of(round).values_list("unit__budget", flat=True)) == {own.pk}


def test_no_check_is_of_the_practice_part_or_equals_a_picked_question(pool):
    items = factories.make_calibration_set(pool=pool, n_items=30)
    twin = next(item for item in items.items.all() if not is_for_practice(item.fingerprint))
    questions = [factories.make_question(pool=pool, fingerprint=twin.fingerprint), factories.make_question(pool=pool)]
    run = factories.make_run(pool=pool, questions=questions, calibration_set=items)
    budget = factories.make_budget(pool=pool, units=100)

    round = open_round(run=run, budget=budget, overlap=20, check_rate=0.5, by=None)

    checked = [slot.calibration_item.fingerprint for slot in checks_of(round).select_related("calibration_item")]
    assert len(checked) == 20
    assert twin.fingerprint not in checked
    assert not any(is_for_practice(fingerprint) for fingerprint in checked)


def test_checks_come_spread_at_the_rate_and_never_twice_to_one_person(pool, annotator, other_annotator):
    round = open_with_checks(pool, n_questions=40, overlap=2, rate=0.25)

    for user in (annotator, other_annotator):
        slots = work_through(round, user)
        places = [i for i, slot in enumerate(slots) if slot.is_check]
        items = [slot.calibration_item_id for slot in slots if slot.is_check]
        assert len(slots) == 40 + len(places)
        assert 9 <= len(places) <= 11
        assert len(set(items)) == len(items)
        stretches = [sum(place // 15 == stretch for place in places) for stretch in range(3)]
        assert min(stretches) >= 2


def test_where_checks_come_is_another_for_each_person(pool, annotator, other_annotator):
    round = open_with_checks(pool, n_questions=40, overlap=2, rate=0.25)

    places = [[slot.is_check for slot in work_through(round, user)] for user in (annotator, other_annotator)]

    assert places[0] != places[1]


def test_the_ids_of_slots_tell_nothing(pool):
    round = open_with_checks(pool, n_questions=40, rate=0.25)

    by_id = list(round.slots.order_by("id").values_list("purpose", flat=True))
    ranks = list(round.slots.filter(purpose=Slot.Purpose.LABEL).order_by("id").values_list("priority", flat=True))

    assert "check" in by_id[:20]
    assert "check" in by_id[-20:]
    assert by_id != sorted(by_id)
    assert ranks != sorted(ranks)


def test_no_check_delays_the_end(pool, annotator):
    round = open_with_checks(pool, n_questions=2, rate=0.1)

    slots = work_through(round, annotator)

    assert len([slot for slot in slots if not slot.is_check]) == 2
    assert round_progress(round=round).is_finished
    assert empty_queue(user=annotator, round=round).code == "all_done"


def test_a_check_is_graded_and_counted_nowhere_else(pool, annotator):
    round = open_with_checks(pool, n_questions=6, rate=0.5)

    work_through(round, annotator, lambda slot: slot.calibration_item.answer if slot.is_check else "1")

    n_checks = checks_of(round).filter(state=Slot.State.DONE).count()
    assert n_checks >= 2
    assert list(CheckGrade.objects.values_list("is_right", flat=True)) == [True] * n_checks
    assert GoldAnswer.objects.count() == 6
    assert Annotation.objects.counting().count() == 6
    progress = round_progress(round=round)
    assert (progress.n_slots, progress.n_slots_done, progress.n_questions) == (6, 6, 6)
    assert progress.budget.spent == 6


def claim_check(round, user):
    """Answer questions until a check comes; return it."""
    while not (slot := claim_slot(user=user, round=round)).is_check:
        answer(slot, user)
    return slot


def test_an_answer_that_means_the_same_is_right_and_no_answer_is_wrong(pool, annotator, other_annotator):
    round = open_with_checks(pool, n_questions=10, overlap=2, rate=0.5)
    first, second = claim_check(round, annotator), claim_check(round, other_annotator)

    right = answer(first, annotator, f"{first.calibration_item.answer}.0")
    none = mark_unanswerable(slot=second, reason="ill_posed", idempotency_key=uuid4(), by=other_annotator)

    assert right.grades.get().is_right
    assert not none.grades.get().is_right


def test_a_revised_check_is_graded_again_and_one_undone_is_held_again(pool, annotator):
    round = open_with_checks(pool, n_questions=6, rate=0.5)
    slot = claim_check(round, annotator)
    answer(slot, annotator, "100000")

    revised = revise(slot=slot, idempotency_key=uuid4(), by=annotator, answer=slot.calibration_item.answer)
    assert revised.grades.get().is_right

    undo(slot=slot, by=annotator)
    undo(slot=slot, by=annotator)
    slot.refresh_from_db()
    assert (slot.state, slot.holder) == (Slot.State.LEASED, annotator)
    assert claim_slot(user=annotator, round=round) == slot


def test_a_corrected_known_answer_is_compared_with_anew(pool, annotator):
    round = open_with_checks(pool, n_questions=6, rate=0.5)
    slot = claim_check(round, annotator)
    annotation = answer(slot, annotator, "77")
    slot.calibration_item.answer = "77"
    slot.calibration_item.save()

    sweep_rounds()
    grade_checks(round)

    assert [(grade.against, grade.is_right) for grade in annotation.grades.order_by("id")][1:] == [("77", True)]
    assert annotation.grades.count() == 2


def test_a_skipped_check_goes_to_somebody_else(pool, annotator, other_annotator):
    round = open_with_checks(pool, n_questions=10, overlap=2, rate=0.5)
    slot = claim_check(round, annotator)

    skip_slot(slot=slot, by=annotator)

    assert slot.calibration_item not in [each.calibration_item for each in work_through(round, annotator)]
    assert slot.calibration_item in [each.calibration_item for each in work_through(round, other_annotator)]


def test_a_check_that_has_lapsed_goes_to_somebody_else_and_a_late_answer_is_surplus(pool, annotator, other_annotator):
    round = open_with_checks(pool, n_questions=10, overlap=2, rate=0.1)
    checks_of(round).exclude(pk=checks_of(round).first().pk).update(state=Slot.State.VOID)
    slot = claim_check(round, annotator)
    Slot.objects.filter(pk=slot.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    assert claim_check(round, other_annotator) == slot
    late = answer(slot, annotator, slot.calibration_item.answer)

    assert late.surplus
    assert not late.grades.exists()


def test_an_item_seen_in_an_earlier_round_does_not_come_again(pool, annotator):
    first = open_with_checks(pool, n_questions=12, rate=0.5)
    seen = {slot.calibration_item_id for slot in work_through(first, annotator) if slot.is_check}
    run = factories.make_run(pool=pool, n_picks=12, calibration_set=first.calibration_set)
    again = open_round(run=run, budget=factories.make_budget(pool=pool, units=12), overlap=1, check_rate=0.5, by=None)

    later = {slot.calibration_item_id for slot in work_through(again, annotator) if slot.is_check}

    assert seen
    assert not seen & later


def test_closing_gives_back_the_checks_that_are_left(pool, annotator):
    round = open_with_checks(pool, n_questions=6, rate=0.5)
    claim_check(round, annotator)

    close_round(round=round, by=None)

    assert set(checks_of(round).values_list("state", flat=True)) <= {Slot.State.VOID, Slot.State.DONE}


def test_what_cannot_be_checked_with_is_refused(pool):
    run = factories.make_run(pool=pool, n_picks=2)
    budget = factories.make_budget(pool=pool, units=4)
    foreign = factories.make_calibration_set(pool=factories.make_pool(), n_items=5)
    empty = factories.make_calibration_set(pool=pool)

    def opening(**fields):
        return pytest.raises(LabelingError), lambda: open_round(run=run, budget=budget, by=None, **fields)

    for fields, code in [
        ({"check_rate": 0.1}, "calibration_set_missing"),
        ({"check_rate": 0.1, "calibration_set": foreign}, "calibration_set_of_another_pool"),
        ({"check_rate": 0.1, "calibration_set": empty}, "checks_missing"),
        ({"n_practice": 1, "calibration_set": empty}, "practice_missing"),
        ({"check_rate": 2.0, "calibration_set": empty}, "check_rate_invalid"),
        ({"n_practice": 99, "calibration_set": empty}, "practice_invalid"),
    ]:
        refused, attempt = opening(**fields)
        with refused as found:
            attempt()
        assert found.value.code == code
    assert not Budget.objects.filter(purpose=Budget.Purpose.CHECKS).exists()


def test_a_budget_of_checks_pays_for_no_labels(pool):
    round = open_with_checks(pool, n_questions=4, rate=0.5)
    run = factories.make_run(pool=pool, n_picks=1)
    checks = Budget.objects.get(purpose=Budget.Purpose.CHECKS)

    with pytest.raises(LabelingError) as refused:
        open_round(run=run, budget=checks, by=None)

    assert refused.value.code == "budget_for_checks"
    assert round.budget != checks


def test_a_person_holds_a_question_or_a_check_never_both(pool, annotator):
    round = open_with_checks(pool, n_questions=6, rate=0.5)
    held = claim_slot(user=annotator, round=round)

    assert [claim_slot(user=annotator, round=round) for _ in range(3)] == [held] * 3
    assert Draft.objects.filter(author=annotator).count() == 1


def test_the_same_submission_of_a_check_is_stored_once_and_another_answer_is_refused(pool, annotator):
    round = open_with_checks(pool, n_questions=6, rate=0.5)
    slot, key = claim_check(round, annotator), uuid4()

    first = answer(slot, annotator, "5", key)

    assert answer(slot, annotator, "5", key) == first
    assert answer(slot, annotator, "5") == first
    with pytest.raises(Conflict) as refused:
        answer(slot, annotator, "6")
    assert refused.value.code == "already_answered"


def test_an_adjudicator_finds_no_checks(pool, annotator, adjudicator):
    from labeling.actions.adjudication import claim_adjudication

    factories.make_membership(pool=pool, user=annotator, role=Role.ADJUDICATOR)
    round = open_with_checks(pool, n_questions=4, rate=0.5)

    assert claim_adjudication(user=adjudicator, round=round) is None
