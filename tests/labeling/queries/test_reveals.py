"""How often people switch once they have seen the model's answers, and how often to a wrong one."""

from uuid import uuid4

import pytest

from labeling.actions.annotation import submit_annotation
from labeling.actions.reveals import change_answer, keep_answer, reveal_after
from labeling.actions.revising import undo
from labeling.models import BudgetUnit, RecordedVotes, Slot
from labeling.queries.intervals import Share
from labeling.queries.reveals import n_with_model_answers, reveal_summary
from tests import factories


def record_votes(asked):
    RecordedVotes.objects.create(
        question_fingerprint=asked.fingerprint,
        question_uid=asked.uid,
        generation_fingerprint="recorded",
        votes={"id": asked.uid, "probe_answers": [], "outcome_answers": ["1", "2", "3"]},
    )


def answer(slot, user, text):
    held = factories.make_held_slot(round=slot.round, user=user, slot=slot)
    return submit_annotation(slot=held, answer=text, idempotency_key=uuid4(), by=user)


def switch(reveal, user, text):
    return change_answer(reveal=reveal, answer=text, why="I made a slip", idempotency_key=uuid4(), by=user)


def add_check(round, truth):
    """A sealed calibration question among those of the round."""
    item = factories.make_calibration_item(calibration_set=factories.make_calibration_set(), answer=truth)
    record_votes(item)
    unit = BudgetUnit.objects.create(budget=round.budget, number=1000 + item.pk)
    return Slot.objects.create(round=round, unit=unit, calibration_item=item, purpose=Slot.Purpose.CHECK)


@pytest.fixture
def round(pool):
    round = factories.make_round(pool=pool, n_questions=6, control_share=0)
    for slot in list(round.slots.all())[:5]:
        record_votes(slot.question)
    return round


def test_switches_are_told_apart_and_an_undone_one_is_not_decided(round, annotator):
    kept, model, other, undone, waiting, _ = (answer(slot, annotator, "1") for slot in round.slots.all())
    keep_answer(reveal=reveal_after(kept), by=annotator)
    switch(reveal_after(model), annotator, "2")
    switch(reveal_after(other), annotator, "99")
    switch(reveal_after(undone), annotator, "3")
    undo(slot=undone.slot, by=annotator)
    reveal_after(waiting)

    found = reveal_summary(round=round)

    assert (found.n_questions, found.n_blind, found.n_control) == (6, 1, 0)
    assert (found.switches.n_shown, found.switches.n_decided) == (5, 3)
    assert (found.switches.kept, found.switches.same) == (Share(1, 3), Share(0, 3))
    assert (found.switches.to_model, found.switches.to_other) == (Share(1, 3), Share(1, 3))


def test_on_calibration_questions_it_is_known_who_switched_to_a_wrong_answer(round, annotator):
    moves = [("1", "1", None), ("1", "1", "2"), ("1", "1", "99"), ("2", "1", "2"), ("2", "1", "3")]  # truth, A, B
    for truth, first, second in moves:
        reveal = reveal_after(answer(add_check(round, truth), annotator, first))
        if second is None:
            keep_answer(reveal=reveal, by=annotator)
        else:
            switch(reveal, annotator, second)

    found = reveal_summary(round=round)

    assert found.to_wrong_of_model == Share(2, 5)  # 1 to 2 where 1 was right, 1 to 3 where 2 was
    assert found.right_to_wrong == Share(2, 3)
    assert found.wrong_to_right == Share(1, 2)
    assert (found.switches.n_shown, found.on_checks.n_decided) == (0, 5)


def test_controls_are_counted_among_the_questions_that_have_answers_of_a_model(round):
    round.control_share = 1

    assert reveal_summary(round=round).n_control == 5
    assert n_with_model_answers(round.run) == 5


def test_the_number_of_queries_does_not_grow(round, annotator, django_assert_num_queries):
    for slot in round.slots.all():
        reveal_after(answer(slot, annotator, "1"))

    with django_assert_num_queries(4):
        reveal_summary(round=round)


@pytest.mark.parametrize(
    ("share", "low", "high"),  # by the formula of Wilson (1927), and statsmodels' proportion_confint to four figures
    [(Share(0, 10), 0.0, 0.2775), (Share(1, 8), 0.0224, 0.4709), (Share(10, 10), 0.7225, 1.0), (Share(0, 0), 0.0, 1.0)],
)
def test_an_interval_is_wilsons(share, low, high):
    assert share.low == pytest.approx(low, abs=1e-4)
    assert share.high == pytest.approx(high, abs=1e-4)
    assert share.is_small
