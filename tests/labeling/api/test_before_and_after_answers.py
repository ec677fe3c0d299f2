"""Over the API: guideline and practice before the questions of a round, merging and splitting after the answers."""

from uuid import uuid4

import pytest

from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.pools import save_guideline
from labeling.actions.practice import next_practice
from labeling.models import AuditEvent, GoldAnswer, GuidelineReading, PracticeAnswer, Role, Slot
from tests import factories
from tests.labeling.api.conftest import Api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def people(pool):
    return [factories.make_user(pool=pool, roles=(Role.ANNOTATOR,)) for _ in range(2)]


def answered(round, people, *answers):
    """Everybody answers the round's question."""
    for person, answer in zip(people, answers, strict=True):
        slot = claim_slot(round=round, user=person)
        submit_annotation(slot=slot, answer=answer, idempotency_key=uuid4(), by=person, confirm_unreadable=True)


def test_a_guideline_is_read_in_the_version_of_the_round(pool, manager, people):
    save_guideline(pool=pool, text="One.\n\nTwo.", by=manager)
    round = factories.make_round(pool=pool)
    round.guideline = pool.guidelines.get()
    round.save()
    worker = Api(people[0], "label")

    assert worker.get(f"rounds/{round.pk}/guideline/") == {
        "version": 1, "text": "One.\n\nTwo.", "last_read": 0, "has_changed": False,
    }  # fmt: skip
    for _ in range(2):
        assert worker.post(f"rounds/{round.pk}/guideline/read/")["last_read"] == 1
    assert GuidelineReading.objects.get().user == people[0]
    bare = factories.make_round(pool=pool)
    worker.get(f"rounds/{bare.pk}/guideline/", status=404)
    worker.post(f"rounds/{bare.pk}/guideline/read/", status=404)
    Api(manager).get(f"rounds/{round.pk}/guideline/", status=403)
    Api(factories.make_user(pool=factories.make_pool(), roles=(Role.ANNOTATOR,))).get(
        f"rounds/{round.pk}/guideline/", status=404
    )


def test_practice_shows_the_right_answer_after_ones_own_and_opens_the_round(pool, people):
    calibration_set = factories.make_calibration_set(pool=pool, n_items=40)
    round = factories.make_round(pool=pool)
    round.calibration_set, round.n_practice, round.practice_may_be_skipped = calibration_set, 2, True
    round.save()
    worker = Api(people[0], "label")

    assert worker.post(f"rounds/{round.pk}/claim/", status=409)["error"]["code"] == "practice_due"
    asked = worker.get(f"rounds/{round.pk}/practice/")
    item = next_practice(round=round, user=people[0])
    assert (asked["question"]["item"], asked["question"]["text"]) == (item.pk, item.text)
    assert (asked["n_done"], asked["n_practice"], asked["may_be_skipped"]) == (0, 2, True)
    assert item.answer not in str(asked)
    for _ in range(2):
        given = worker.post(f"rounds/{round.pk}/practice/answer/", {"item": item.pk, "answer": item.answer})
        assert given["is_right"] is True
        assert given["right_answer"] == item.answer
    assert PracticeAnswer.objects.count() == 1

    second = worker.get(f"rounds/{round.pk}/practice/")["question"]["item"]
    later = {"item": second + 10_000, "answer": "1"}
    assert worker.post(f"rounds/{round.pk}/practice/answer/", later, status=409)["error"]["code"] == "practice_changed"
    skipped = worker.post(f"rounds/{round.pk}/practice/answer/", {"item": second, "skip": True})
    assert (skipped["is_skipped"], skipped["is_right"]) == (True, False)
    assert worker.get(f"rounds/{round.pk}/practice/")["question"] is None
    assert worker.post(f"rounds/{round.pk}/claim/")["slot"] is not None


def test_a_manager_merges_answers_and_splits_them_again(pool, manager, people):
    round = factories.make_round(pool=pool, overlap=2, units=4)
    answered(round, people, "x > 4", "(4, oo)")
    uid = Slot.objects.filter(round=round).first().question.uid
    api = Api(manager)

    found = api.get(f"rounds/{round.pk}/answers-to/", uid=uid)
    assert found["gold_answer"] is None
    assert sorted(group["answers"] for group in found["groups"]) == [["(4, oo)"], ["x > 4"]]
    keys = [group["key"] for group in found["groups"]]
    merged = api.post(f"rounds/{round.pk}/merge/", {"uid": uid, "groups": keys})
    assert len(merged["groups"]) == 1
    assert merged["gold_answer"] == GoldAnswer.objects.get().answer
    assert not Slot.objects.filter(purpose="adjudication").exclude(state="void").exists()

    gone = api.post(f"rounds/{round.pk}/merge/", {"uid": uid, "groups": keys}, status=409)
    assert gone["error"]["code"] == "answers_changed"
    split = api.post(f"rounds/{round.pk}/split/", {"uid": uid, "answer": "x > 4"})
    assert (len(split["groups"]), split["gold_answer"]) == (2, None)
    other = api.post(f"rounds/{round.pk}/split/", {"uid": uid, "answer": "5"}, status=409)
    assert other["error"]["code"] == "answers_changed"
    assert set(AuditEvent.objects.values_list("action", flat=True)) >= {"answers.merged", "answers.split"}
    api.get(f"rounds/{round.pk}/answers-to/", uid="nowhere", status=404)
    Api(people[0]).get(f"rounds/{round.pk}/answers-to/", uid=uid, status=403)
    Api(people[0]).post(f"rounds/{round.pk}/merge/", {"uid": uid, "groups": keys}, status=403)


def test_an_adjudicator_merges_what_they_were_given_and_nothing_else(pool, people):
    judge = factories.make_user(pool=pool, roles=(Role.ADJUDICATOR,))
    round = factories.make_round(pool=pool, overlap=2, units=4)
    answered(round, people, "x > 4", "(4, oo)")
    slot = Slot.objects.get(purpose="adjudication")
    api = Api(judge, "label")

    api.post(f"adjudications/{slot.pk}/merge/", {"groups": ["a", "b"]}, status=404)
    dispute = api.post(f"rounds/{round.pk}/claim-adjudication/")["adjudication"]
    keys = [group["key"] for group in dispute["groups"]]
    refused = api.post(f"adjudications/{slot.pk}/split/", {"answer": "x > 4"}, status=400)
    assert refused["error"]["code"] == "split_needs_two"
    merged = api.post(f"adjudications/{slot.pk}/merge/", {"groups": keys})
    assert merged["gold_answer"] == GoldAnswer.objects.get().answer
    assert Slot.objects.get(purpose="adjudication").state == "void"


def test_units_are_held_back_as_asked(pool, manager):
    run = factories.make_run(pool=pool)
    factories.make_pick(run=run, question=factories.make_question(pool=pool), rank=1)
    budget = factories.make_budget(pool=pool, units=5)

    round = Api(manager).post(
        f"runs/{run.pk}/rounds/", {"budget": budget.pk, "overlap": 2, "held": 3}, status=201
    )["id"]  # fmt: skip
    assert budget.units.filter(held_for=round).count() == 3
