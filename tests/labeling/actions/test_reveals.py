"""Blind first, reveal after: what is shown, to whom, when, and what is on record of it."""

from uuid import uuid4

import pytest

from labeling.actions.annotation import claim_slot, mark_unanswerable, submit_annotation
from labeling.actions.reveals import (
    change_answer,
    keep_answer,
    reveal_after,
    shuffled,
    stored_model_answers,
)
from labeling.actions.revising import can_undo, revise, undo
from labeling.actions.rounds import close_round
from labeling.engine.answers import policy_of
from labeling.engine.model_answers import MOST_SHOWN, representatives
from labeling.errors import Conflict, LabelingError
from labeling.models import (
    Annotation,
    GoldAnswer,
    ModelAnswers,
    RecordedVotes,
    Reveal,
    RevealDecision,
    Round,
    Slot,
)
from tests import factories

VOTES = {"probe_answers": ["12", "0.5", ""], "outcome_answers": [r"\frac{1}{2}", "1/2", "1/2", "7", "no idea at all"]}


def record_votes(question, votes=VOTES):
    RecordedVotes.objects.create(
        question_fingerprint=question.fingerprint,
        question_uid=question.uid,
        generation_fingerprint="recorded",
        votes={"id": question.uid, **votes},
    )


def make_round(pool, n=1, **fields):
    fields.setdefault("control_share", 0)
    round = factories.make_round(pool=pool, n_questions=n, **fields)
    for slot in round.slots.all():
        record_votes(slot.question) if not RecordedVotes.objects.filter(question_uid=slot.question.uid) else None
    return round


def submit(user, pool, text="12", **fields):
    return submit_annotation(
        slot=claim_slot(user=user, pool=pool), answer=text, idempotency_key=uuid4(), by=user, **fields
    )


def change(reveal, user, **fields):
    return change_answer(**{"reveal": reveal, "idempotency_key": uuid4(), "by": user, "why": "I made a slip", **fields})


@pytest.fixture
def round(pool):
    return make_round(pool)


@pytest.fixture
def reveal(round, pool, annotator):
    return reveal_after(submit(annotator, pool))


def test_equivalent_answers_are_shown_once_in_their_most_frequent_form_and_unreadable_ones_not_at_all(pool):
    assert representatives(
        [*VOTES["probe_answers"], *VOTES["outcome_answers"]], kind="number", policy=policy_of(pool)
    ) == ["1/2", "12", "7"]


def test_there_are_never_more_than_fit_on_a_page(pool):
    shown = representatives([str(n) for n in range(40)], kind="number", policy=policy_of(pool))

    assert len(shown) == MOST_SHOWN


def test_what_may_be_shown_is_written_down_the_first_time_and_never_changes(round):
    question = round.slots.get().question
    assert stored_model_answers(round.run, question) == ["1/2", "12", "7"]

    RecordedVotes.objects.all().delete()

    assert stored_model_answers(round.run, question) == ["1/2", "12", "7"]
    assert ModelAnswers.objects.count() == 1


def test_the_order_says_nothing_and_stays(pool):
    slots = list(make_round(pool, n=20).slots.all())
    answers = ["1/2", "12", "7"]

    orders = [tuple(shuffled(answers, slot)) for slot in slots]

    assert orders == [tuple(shuffled(answers, slot)) for slot in slots]
    assert len(set(orders)) > 3


def test_after_an_answer_the_models_are_shown_and_the_own_one_is_known_among_them(reveal):
    assert sorted(reveal.answers) == ["1/2", "12", "7"]
    assert reveal.answers[reveal.own] == "12"
    assert reveal_after(reveal.annotation) == reveal


@pytest.mark.parametrize("fields", [{"blindness": "blind"}, {"blindness": "shown_first"}, {"control_share": 1}])
def test_nothing_is_revealed_in_a_blind_round_or_for_a_control(pool, annotator, fields):
    make_round(pool, **fields)

    assert reveal_after(submit(annotator, pool)) is None
    assert not Reveal.objects.exists()


def test_nothing_is_revealed_where_the_run_has_no_answers_of_a_model(pool, annotator):
    factories.make_round(pool=pool, control_share=0)

    assert reveal_after(submit(annotator, pool)) is None
    assert not ModelAnswers.objects.exists()


def test_nothing_is_revealed_for_a_late_answer_or_one_that_says_there_is_none(pool, annotator, other_annotator):
    round = make_round(pool, n=2)
    unanswerable = mark_unanswerable(
        slot=claim_slot(user=annotator, pool=pool), reason="ill_posed", idempotency_key=uuid4(), by=annotator
    )
    late = factories.make_held_slot(round=round, user=annotator, lapsed=True)
    assert claim_slot(user=other_annotator, pool=pool) == late
    surplus = submit_annotation(slot=late, answer="12", idempotency_key=uuid4(), by=annotator)

    assert surplus.surplus
    assert reveal_after(unanswerable) is None
    assert reveal_after(surplus) is None


def test_about_a_tenth_of_the_questions_are_controls_the_same_for_every_round_of_the_run(pool):
    run = factories.make_run(pool=pool, n_picks=400, config={**factories.RUN_CONFIG, "seed": 3})
    questions = [pick.question for pick in run.picks.all()]
    first, again, other = Round(run=run), Round(run=run), Round(run=factories.make_run(pool=pool, config={"seed": 4}))

    controls = [first.is_control(each.uid) for each in questions]

    assert 20 <= sum(controls) <= 60
    assert controls == [again.is_control(each.uid) for each in questions]
    assert controls != [other.is_control(each.uid) for each in questions]


def test_keeping_is_recorded_once_and_changes_no_answer(reveal, annotator):
    kept = keep_answer(reveal=reveal, by=annotator)

    assert keep_answer(reveal=reveal, by=annotator) == kept
    assert (kept.outcome, kept.annotation, Annotation.objects.count()) == ("kept", None, 1)
    with pytest.raises(Conflict, match="decided this already"):
        change(reveal, annotator, answer="7")


def test_a_switch_to_an_answer_of_the_model_is_version_two_and_counts(reveal, annotator):
    decision = change(reveal, annotator, chosen=reveal.answers.index("1/2"), confident=False)

    second = decision.annotation
    assert (decision.outcome, reveal.answers[decision.chosen]) == ("model", "1/2")
    assert (second.version, second.origin, second.answer, second.why) == (2, "after_reveal", "1/2", "I made a slip")
    assert not second.confident
    assert list(Annotation.objects.counting()) == [second]
    assert GoldAnswer.objects.get().answer == "1/2"


def test_a_typed_answer_that_the_model_gave_too_is_a_switch_to_the_models(reveal, annotator):
    decision = change(reveal, annotator, answer="0.5")

    assert (decision.outcome, reveal.answers[decision.chosen]) == ("model", "1/2")


def test_a_typed_answer_of_ones_own_and_the_same_in_another_form_are_told_apart(pool, annotator):
    make_round(pool, n=2)
    other, same = (reveal_after(submit(annotator, pool)) for _ in range(2))

    assert change(other, annotator, answer="99").outcome == "other"
    assert change(same, annotator, answer="12.0").outcome == "same"
    assert GoldAnswer.objects.get(question=other.annotation.slot.question).answer == "99"


def test_picking_the_models_answer_that_means_the_same_keeps_ones_own(reveal, annotator):
    assert change(reveal, annotator, chosen=reveal.own, why="").outcome == "kept"
    assert Annotation.objects.count() == 1


def test_a_change_needs_a_reason_and_an_answer_that_is_shown(reveal, annotator, other_annotator):
    for fields, code in (
        ({"answer": "7", "why": " "}, "reveal_reason_missing"),
        ({"chosen": 3}, "reveal_choice_unknown"),
        ({"chosen": -1}, "reveal_choice_unknown"),
        ({"answer": "the usual one"}, "answer_unreadable"),
        ({"answer": ""}, "answer_empty"),
    ):
        with pytest.raises(LabelingError) as caught:
            change(reveal, annotator, **fields)
        assert caught.value.code == code
    with pytest.raises(LabelingError, match="somebody else"):
        keep_answer(reveal=reveal, by=other_annotator)
    assert Annotation.objects.count() == 1
    assert not RevealDecision.objects.exists()


def test_the_same_form_sent_twice_changes_the_answer_once(reveal, annotator):
    key = uuid4()

    first = change(reveal, annotator, answer="7", idempotency_key=key)

    assert change(reveal, annotator, answer="7", idempotency_key=key) == first
    assert Annotation.objects.count() == 2
    for other in ({"answer": "7"}, {"answer": "8", "idempotency_key": key}):
        with pytest.raises(Conflict):
            change(reveal, annotator, **other)
    with pytest.raises(Conflict):
        keep_answer(reveal=reveal, by=annotator)


def test_an_answer_cannot_be_undone_as_if_nothing_had_been_seen(reveal, annotator):
    slot = reveal.annotation.slot

    assert not can_undo(reveal.annotation)
    with pytest.raises(Conflict) as caught:
        undo(slot=slot, by=annotator)

    assert caught.value.code == "undo_after_reveal"
    assert Slot.objects.get(pk=slot.pk).state == Slot.State.DONE


def test_what_is_revised_later_is_on_record_as_revised_after_the_reveal(reveal, annotator):
    keep_answer(reveal=reveal, by=annotator)

    revised = revise(slot=reveal.annotation.slot, answer="8", idempotency_key=uuid4(), by=annotator)

    assert revised.origin == "after_reveal"


def test_a_change_right_afterwards_can_be_undone_and_the_first_answer_counts_again(reveal, annotator):
    change(reveal, annotator, answer="7")

    undo(slot=reveal.annotation.slot, by=annotator)

    assert list(Annotation.objects.counting()) == [reveal.annotation]
    assert GoldAnswer.objects.get().answer == "12"


def test_in_a_closed_round_the_answer_stands(reveal, annotator, manager):
    close_round(round=reveal.annotation.slot.round, by=manager)

    with pytest.raises(Conflict, match="closed"):
        change(reveal, annotator, answer="7")

    assert keep_answer(reveal=reveal, by=annotator).outcome == "kept"
