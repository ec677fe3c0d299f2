"""Adjudicating: answers without names, one decision, which becomes the gold answer."""

import uuid

import pytest
from django.urls import reverse

from labeling.models import Adjudication, GoldAnswer


def decision(choice, **fields):
    return {"decision": choice, "idempotency_key": str(uuid.uuid4()), **fields}


@pytest.fixture
def url(world):
    return reverse("adjudication", args=[world.dispute.pk])


def test_answers_are_shown_without_names(world, url, adjudicator, annotator, other_annotator, login):
    html = login(adjudicator).get(url).content.decode()

    assert ">A</span>" in html
    assert ">B</span>" in html
    assert str(annotator) not in html
    assert str(other_annotator) not in html


def test_choosing_a_group_makes_its_answer_gold(world, url, adjudicator, login):
    client = login(adjudicator)
    groups = client.get(url).context["groups"]
    key = next(group.key for group in groups if group.answers == ("12",))

    client.post(url, decision(key, note="checked twice"))

    assert GoldAnswer.objects.get(question=world.dispute.question).answer == "12"
    assert Adjudication.objects.get().note == "checked twice"


def test_writing_another_answer_makes_it_gold(world, url, adjudicator, login):
    response = login(adjudicator).post(url, decision("other", answer="14"))

    assert response.status_code == 302
    assert GoldAnswer.objects.get(question=world.dispute.question).answer == "14"


def test_a_question_is_decided_to_be_unanswerable(world, url, adjudicator, login):
    login(adjudicator).post(url, decision("unanswerable", reason="several_answers"))

    assert Adjudication.objects.get().unanswerable_reason == "several_answers"
    assert not GoldAnswer.objects.filter(question=world.dispute.question).exists()


@pytest.mark.parametrize(
    "data", [decision(""), decision("other"), decision("unanswerable"), decision("Z"), decision("other", answer=" ")]
)
def test_half_a_decision_is_sent_back(data, world, url, adjudicator, login):
    response = login(adjudicator).post(url, data)

    assert response.status_code == 422
    assert not Adjudication.objects.exists()


def test_a_decision_is_made_once(world, url, adjudicator, login):
    client = login(adjudicator)
    client.post(url, decision("other", answer="14"))

    again = client.post(url, decision("other", answer="15"))

    assert again.status_code == 409
    assert Adjudication.objects.get().answer == "14"
    assert "This is decided" in client.get(url).content.decode()
