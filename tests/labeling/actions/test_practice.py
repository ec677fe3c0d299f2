"""Practice before a person's first question of a round."""

from uuid import uuid4

import pytest

from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.checks import is_for_practice
from labeling.actions.practice import answer_practice, next_practice
from labeling.actions.rounds import open_round
from labeling.errors import Conflict, LabelingError, NotAllowed
from labeling.models import Annotation, BudgetUnit, PracticeAnswer, Slot
from tests import factories


@pytest.fixture
def practised(pool):
    """Return a function that opens a round of two questions with practice."""

    def made(n_practice=2, **fields):
        items = fields.pop("items", None) or factories.make_calibration_set(pool=pool, n_items=40)
        run = factories.make_run(pool=pool, n_picks=2, calibration_set=items)
        budget = factories.make_budget(pool=pool, units=4)
        return open_round(run=run, budget=budget, overlap=2, n_practice=n_practice, by=None, **fields)

    return made


def give(round, user, text=None, **fields):
    item = next_practice(round=round, user=user)
    answer = item.answer if text is None else text
    return answer_practice(round=round, item_id=item.pk, by=user, answer=answer, **fields)


def test_the_first_question_comes_after_practice(practised, pool, annotator):
    round = practised()
    with pytest.raises(Conflict) as due:
        claim_slot(user=annotator, round=round)
    assert due.value.code == "practice_due"
    assert claim_slot(user=annotator, pool=pool) is None

    right, wrong = give(round, annotator), give(round, annotator, "100000")

    assert (right.is_right, wrong.is_right) == (True, False)
    assert (right.read_as, right.against) == (right.item.answer, right.item.answer)
    assert claim_slot(user=annotator, round=round) is not None
    assert not Annotation.objects.exists()
    assert BudgetUnit.objects.filter(slots__state=Slot.State.DONE).count() == 0


def test_everybody_practises_on_the_same_items_of_the_part_kept_for_it(practised, annotator, other_annotator):
    round = practised()

    items = [[give(round, user).item for _ in range(2)] for user in (annotator, other_annotator)]

    assert items[0] == items[1]
    assert all(is_for_practice(item.fingerprint) for item in items[0])


def test_no_item_is_practised_twice_also_in_a_later_round(practised, annotator):
    round = practised()
    first = {give(round, annotator).item for _ in range(2)}
    again = practised(items=round.calibration_set)

    assert not first & {give(again, annotator).item for _ in range(2)}


def test_who_has_used_up_the_items_may_start(practised, pool, annotator):
    items = factories.make_calibration_set(pool=pool, n_items=12)
    n = sum(is_for_practice(item.fingerprint) for item in items.items.all())
    while not n:
        factories.make_calibration_item(calibration_set=items)
        n = sum(is_for_practice(item.fingerprint) for item in items.items.all())
    first = practised(n_practice=n, items=items)
    for _ in range(n):
        give(first, annotator)

    again = practised(n_practice=n, items=items)

    assert next_practice(round=again, user=annotator) is None
    assert claim_slot(user=annotator, round=again) is not None


def test_the_first_answer_stands_and_another_item_is_refused(practised, annotator):
    round = practised()
    given = give(round, annotator, "100000")

    again = answer_practice(round=round, item_id=given.item_id, by=annotator, answer=given.item.answer)

    assert again == given
    with pytest.raises(Conflict) as other:
        answer_practice(round=round, item_id=given.item_id + 100000, by=annotator, answer="1")
    assert other.value.code == "practice_changed"


def test_practice_is_skipped_only_where_the_round_says_so(practised, annotator, manager):
    with pytest.raises(LabelingError) as refused:
        give(practised(), annotator, skip=True)
    assert refused.value.code == "practice_not_skippable"

    skipped = give(practised(practice_may_be_skipped=True), annotator, skip=True)

    assert (skipped.is_skipped, skipped.answer, skipped.is_right) == (True, "", False)
    with pytest.raises(NotAllowed):
        give(practised(), manager)


def test_an_unreadable_answer_is_asked_about_and_a_reason_is_an_answer(practised, annotator):
    round = practised()
    with pytest.raises(LabelingError) as unread:
        give(round, annotator, "wrong")
    assert unread.value.code == "answer_unreadable"

    confirmed = give(round, annotator, "wrong", confirm_unreadable=True)
    reason = give(round, annotator, "", reason="ill_posed")

    assert (confirmed.read_as, confirmed.is_right) == ("", False)
    assert (reason.unanswerable_reason, reason.is_right) == ("ill_posed", False)
    assert PracticeAnswer.objects.count() == 2


def test_without_practice_nothing_stands_before_the_questions(practised, annotator):
    slot = claim_slot(user=annotator, round=practised(n_practice=0))

    assert submit_annotation(slot=slot, answer="1", idempotency_key=uuid4(), by=annotator).pk
