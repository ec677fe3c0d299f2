"""Who waits for whom in a round, and how long answers take."""

from uuid import uuid4

import pytest

from labeling.actions.annotation import claim_slot, skip_slot, submit_annotation
from labeling.models import Annotation, Role
from labeling.queries.round_times import times_of
from labeling.queries.round_waiting import names_in_words, waiting_in
from labeling.queries.rounds import round_progress
from tests import factories


def answer(user, round, text="1", **fields):
    slot = claim_slot(user=user, round=round)
    return submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user, **fields)


def waiting(round):
    return waiting_in(round_progress(round=round))


def told(round):
    return [(line.rank, line.for_what, line.n, line.held_by, line.could) for line in waiting(round).lines]


def test_untouched_questions_are_only_counted(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, n_questions=3, overlap=2)

    assert (told(round), waiting(round).n_untouched) == ([], 3)


def test_a_question_in_hand_and_its_missing_second_answer(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, overlap=2)
    slot = claim_slot(user=annotator, round=round)

    assert told(round) == [
        (1, "answer", 1, "", ("other_annotator",)),
        (1, "answer", 1, "annotator", ("other_annotator",)),
    ]
    assert [line.since for line in waiting(round).lines] == [round.created_at, slot.claimed_at]
    assert waiting(round).n_blocked == 0


def test_one_answer_waits_for_another_since_it_came(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, overlap=2)
    first = answer(annotator, round)

    (line,) = waiting(round).lines
    assert (line.for_what, line.could, line.since) == ("another", ("other_annotator",), first.created_at)


@pytest.mark.parametrize("how", ["skipped", "was never there"])
def test_a_question_that_nobody_is_left_to_answer_stands_still(how, pool, annotator, request):
    round = factories.make_round(pool=pool, overlap=2)
    answer(annotator, round)
    if how == "skipped":
        other = request.getfixturevalue("other_annotator")
        skip_slot(slot=claim_slot(user=other, round=round), by=other)

    (line,) = waiting(round).lines
    assert (line.for_what, line.could, line.is_blocked) == ("another", (), True)
    assert waiting(round).n_blocked == 1


def test_an_untouched_question_that_no_annotator_could_answer_is_named(pool, annotator):
    round = factories.make_round(pool=pool, n_questions=2)
    skip_slot(slot=claim_slot(user=annotator, round=round), by=annotator)

    assert [(line.rank, line.is_blocked) for line in waiting(round).lines] == [(1, True)]
    assert waiting(round).n_untouched == 1


def test_without_any_annotator_the_untouched_are_not_named_one_by_one(pool):
    assert waiting(factories.make_round(pool=pool, n_questions=2)).n_untouched == 2


def test_a_holder_whose_time_ran_out_holds_nobody_up(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool)
    factories.make_held_slot(round=round, user=annotator, lapsed=True)

    (line,) = waiting(round).lines
    assert (line.held_by, line.has_lapsed, line.could, line.is_blocked) == (
        "annotator",
        True,
        ("other_annotator",),
        False,
    )


def test_a_disagreement_waits_for_an_adjudicator_who_did_not_answer_it(pool, annotator, other_annotator, adjudicator):
    factories.make_membership(pool=pool, user=annotator, role=Role.ADJUDICATOR)
    round = factories.make_round(pool=pool, overlap=2, units=3)
    answer(annotator, round, "1")
    last = answer(other_annotator, round, "2")

    (line,) = waiting(round).lines
    assert (line.for_what, line.held_by, line.could, line.since) == ("decision", "", ("adjudicator",), last.created_at)

    factories.make_held_slot(round=round, user=adjudicator, slot=round.slots.get(purpose="adjudication"))
    (line,) = waiting(round).lines
    assert (line.for_what, line.held_by, line.is_blocked) == ("decision", "adjudicator", False)


def test_a_disagreement_without_a_unit_stands_still(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, overlap=2, units=2)
    answer(annotator, round, "1")
    answer(other_annotator, round, "2")

    (line,) = waiting(round).lines
    assert (line.for_what, line.is_blocked) == ("unit", True)


def test_what_is_settled_waits_for_nobody(pool, annotator):
    round = factories.make_round(pool=pool)
    answer(annotator, round)

    assert (told(round), waiting(round).n_untouched) == ([], 0)


def test_what_stands_still_comes_first(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, n_questions=2, overlap=2)
    for text in ("1", "2"):
        answer(annotator, round, text)
    skip_slot(slot=claim_slot(user=other_annotator, round=round), by=other_annotator)

    assert [line.is_blocked for line in waiting(round).lines] == [True, False]


@pytest.mark.parametrize("n", [2, 12])
def test_the_number_of_queries_does_not_grow(n, pool, annotator, other_annotator, django_assert_num_queries):
    round = factories.make_round(pool=pool, n_questions=n, overlap=2)
    for i in range(n - 1):
        answer(annotator, round, f"{i}")
    progress = round_progress(round=round)

    with django_assert_num_queries(4):
        waiting_in(progress)
    with django_assert_num_queries(1):
        assert times_of(round).n_answers == n - 1


def test_names_are_said_as_people_say_them():
    assert names_in_words(["ana"]) == "ana"
    assert names_in_words(["ana", "ben"]) == "ana or ben"
    assert names_in_words(["ana", "ben", "cy"]) == "ana, ben or cy"
    assert names_in_words(["a", "b", "c", "d", "e"]) == "a, b, c, d or 1 other"
    assert names_in_words(["a", "b", "c", "d", "e", "f"]) == "a, b, c, d or 2 others"


def test_times_are_medians_by_question_and_person(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, n_questions=2, overlap=2)
    for user, seconds in ((annotator, (60.0, 30.0)), (other_annotator, (180.0, 90.0))):
        for each in seconds:
            answer(user, round, seconds_spent=each)

    times = times_of(round)

    assert (times.n_answers, times.median_seconds, times.total_seconds) == (4, 75.0, 360.0)
    assert [(person.name, person.n_answers, person.median_seconds) for person in times.people] == [
        ("annotator", 2, 45.0),
        ("other_annotator", 2, 135.0),
    ]
    assert [row[1:] for row in times.picture.rows] == [["2.0", "1.0", "3.0", "2"], ["1.0", "0.5", "1.5", "2"]]
    assert times.picture.rows[0][0].startswith("1. ")
    assert times.picture.reference == 1.25


def test_a_round_without_answers_has_no_times(pool):
    assert times_of(factories.make_round(pool=pool)) is None
    assert not Annotation.objects.exists()
