"""Pages of quality control: checks that nothing tells apart, practice, merging and splitting, one more answer."""

import re
from itertools import pairwise
from uuid import uuid4

import pytest
from django.urls import reverse

from labeling.actions.adjudication import claim_adjudication
from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.practice import next_practice
from labeling.actions.rounds import open_round
from labeling.models import GoldAnswer, MeaningVerdict, PracticeAnswer, Role, Slot
from labeling.queries.queue import work_for
from tests import factories

TEXT = "What is $2 + 2$?"


@pytest.fixture
def checked(pool):
    """A round whose questions and checks all read the same."""
    items = factories.make_calibration_set(pool=pool)
    for _ in range(12):
        factories.make_calibration_item(calibration_set=items, text=TEXT, answer="987654321")
    questions = [factories.make_question(pool=pool, text=TEXT) for _ in range(12)]
    run = factories.make_run(pool=pool, questions=questions, calibration_set=items)
    budget = factories.make_budget(pool=pool, units=20)
    return open_round(run=run, budget=budget, overlap=1, check_rate=0.5, by=None)


def without_ids(html):
    """A page without what differs from one slot to the next: numbers, keys, tokens, times."""
    html = re.sub(r'(csrfmiddlewaretoken" value=|_key" value=)"[^"]*"', r'\1""', html)
    html = re.sub(r'nonce="[^"]*"|"X-CSRFToken": "[^"]*"|content="[A-Za-z0-9]{64}"', "", html)
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "N", html)


def test_no_byte_tells_a_check_from_a_question(checked, annotator, login):
    client = login(annotator)
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    homes, free = [], []

    while slot := claim_slot(user=annotator, round=checked):
        home = client.get(reverse("home")).content.decode()
        free.append(work_for(user=annotator)[0].n_free)
        if len(free) > 6:  # by then the page lists five last answers
            homes.append(without_ids(home))
            page = client.get(reverse("slot", args=[slot.pk]))
            seen[slot.is_check].add(without_ids(page.content.decode()))
            assert "987654321" not in page.content.decode()
            assert "calibration" not in page.content.decode().lower()
        submit_annotation(slot=slot, answer="4", idempotency_key=uuid4(), by=annotator)

    assert seen[True]
    assert seen[False]
    assert seen[True] <= seen[False]
    assert all(b == a - 1 for a, b in pairwise(free))
    assert len(set(homes)) == 1


def test_practice_in_plain_html(pool, annotator, login):
    items = factories.make_calibration_set(pool=pool, n_items=40)
    run = factories.make_run(pool=pool, n_picks=1, calibration_set=items)
    round = open_round(run=run, budget=factories.make_budget(pool=pool, units=1), n_practice=2, by=None)
    client = login(annotator)
    begin = reverse("annotate", args=[round.pk])
    practice = reverse("practice", args=[round.pk])

    assert client.post(begin)["Location"] == practice
    item = next_practice(round=round, user=annotator)
    page = client.get(practice).content.decode()
    assert "Practice, 1 of 2" in page
    assert item.text in page
    assert f">{item.answer}<" not in page

    empty = client.post(practice, {"item": item.pk, "answer": ""})
    unread = client.post(practice, {"item": item.pk, "answer": "wrong"})
    given = client.post(practice, {"item": item.pk, "answer": "100000"}, follow=True).content.decode()

    assert (empty.status_code, unread.status_code) == (422, 422)
    assert "Submit it as it is" in unread.content.decode()
    assert "Not right" in given
    assert f"<strong>{item.answer}</strong>" in given
    assert "Next practice question" in given
    second = next_practice(round=round, user=annotator)
    right = client.post(practice, {"item": second.pk, "answer": f"{second.answer}.0"}, follow=True).content.decode()
    assert "<h1>Right</h1>" in right
    assert "To the first question" in right
    assert client.get(practice)["Location"] == reverse("round", args=[round.pk])
    assert "/slots/" in client.post(begin, follow=True).request["PATH_INFO"] + client.post(begin).get("Location", "")
    assert PracticeAnswer.objects.count() == 2


@pytest.fixture
def disputed(pool, annotator, other_annotator):
    """A question answered in two ways, and its round."""
    run = factories.make_run(pool=pool, questions=[factories.make_question(pool=pool, answer_kind="text")])
    round = factories.make_round(run=run, overlap=2, units=4)
    for user, text in ((annotator, "the red one"), (other_annotator, "red")):
        slot = claim_slot(user=user, round=round)
        submit_annotation(slot=slot, answer=text, note=f"from {text}", idempotency_key=uuid4(), by=user)
    return round, round.slots.first().question


def test_a_manager_merges_and_splits_on_the_page_of_the_answers(disputed, manager, annotator, login):
    round, question = disputed
    client = login(manager)
    here = reverse("question-answers", args=[round.pk, question.pk])
    judge = reverse("answers-meaning", args=[round.pk, question.pk])
    found = client.get(here)
    assert str(annotator) not in found.content.decode()
    assert "from red" in found.content.decode()
    keys = [group.key for group in found.context["found"].groups]

    merged = client.post(judge, {"merge": keys}, follow=True).content.decode()

    assert "no adjudication is spent" in merged
    assert "merged by a person" in merged
    assert GoldAnswer.objects.get().source == "merged"
    key = re.search(r'name="split" value="(\w+)"', client.get(here).content.decode())[1]
    client.post(judge, {"split": key})
    assert not GoldAnswer.objects.exists()
    assert list(MeaningVerdict.objects.values_list("same", flat=True)) == [True, False]
    stale = client.post(judge, {"merge": ["0" * 16, *keys[:1]]}, follow=True).content.decode()
    assert "changed since this page was made" in stale


def test_an_adjudicator_merges_and_what_she_typed_is_kept(disputed, adjudicator, login):
    round, question = disputed
    slot = claim_adjudication(user=adjudicator, round=round)
    client = login(adjudicator)
    here = reverse("adjudication", args=[slot.pk])
    judge = reverse("answers-meaning", args=[round.pk, question.pk])
    keys = [group.key for group in client.get(here).context["groups"]]
    typed = {"slot": slot.pk, "decision": "other", "answer": "crimson", "note": "by the figure"}

    one = client.post(judge, typed | {"merge": keys[:1]}, follow=True).content.decode()
    assert "Choose at least two groups" in one
    assert 'value="crimson"' in one
    assert "by the figure" in one

    all_of_them = client.post(judge, typed | {"merge": keys})
    assert all_of_them["Location"] == reverse("round", args=[round.pk])
    assert "nothing to decide any more" in client.get(here).content.decode()
    slot.refresh_from_db()
    assert slot.state == Slot.State.VOID


def test_an_adjudicator_judges_no_question_that_she_was_not_given(disputed, adjudicator, login):
    round, question = disputed
    judge = reverse("answers-meaning", args=[round.pk, question.pk])
    client = login(adjudicator)

    assert client.post(judge, {"slot": round.slots.first().pk}).status_code == 404
    assert client.post(judge, {}).status_code == 403


def test_one_more_answer_is_bought_on_the_rounds_page(disputed, manager, pool, login):
    round, question = disputed
    factories.make_user(pool=pool, roles=(Role.ANNOTATOR,))
    client = login(manager)
    page = client.get(reverse("round", args=[round.pk])).content.decode()
    assert "Where one more answer is worth most" in page
    assert "Annotators disagree" in page

    bought = client.post(
        reverse("answer-buy", args=[round.pk]), {"question": question.pk, "asked_before": 2}, follow=True
    )
    twice = client.post(
        reverse("answer-buy", args=[round.pk]), {"question": question.pk, "asked_before": 2}, follow=True
    )

    assert "One more person is asked" in bought.content.decode()
    assert "3 people are asked this question now, not 2" in twice.content.decode()
    assert round.slots.filter(purpose="label").count() == 3
