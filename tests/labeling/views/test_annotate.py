"""Answering: nothing typed is lost, nothing is recorded twice, and how an answer is read is said before it counts."""

import uuid

from django.urls import reverse

from labeling.actions.people import remove_member
from labeling.models import Annotation, Draft, Slot
from tests import factories
from tests.labeling.views.conftest import HX


def submission(answer="41", **fields):
    return {"answer": answer, "idempotency_key": str(uuid.uuid4()), **fields}


def claimed(client, round):
    """Take the next question; return the slot's id."""
    return int(client.post(reverse("annotate", args=[round.pk]))["Location"].split("/")[-2])


def test_claiming_twice_gives_the_same_question(pool, annotator, login):
    round = factories.make_round(pool=pool, n_questions=2)
    client = login(annotator)

    assert claimed(client, round) == claimed(client, round)


def test_submitting_records_the_answer_and_goes_to_the_next_question(pool, annotator, login):
    round = factories.make_round(pool=pool, n_questions=2)
    client = login(annotator)
    slot = claimed(client, round)

    response = client.post(reverse("slot-submit", args=[slot]), submission(" 41 ", unsure="on", note="by hand"))

    annotation = Annotation.objects.get()
    assert (annotation.answer, annotation.confident, annotation.note) == ("41", False, "by hand")
    assert response.status_code == 302
    assert response["Location"] != reverse("slot", args=[slot])
    assert Slot.objects.held_by(annotator).count() == 1


def test_htmx_gets_the_next_question_in_the_same_answer_and_the_kept_copy_is_named_for_removal(pool, annotator, login):
    round = factories.make_round(pool=pool, n_questions=2)
    client = login(annotator)
    slot = claimed(client, round)

    response = client.post(reverse("slot-submit", args=[slot]), submission(), **HX)

    html = response.content.decode()
    following = Slot.objects.held_by(annotator).get()
    assert response["HX-Push-Url"] == reverse("slot", args=[following.pk])
    assert html.strip().startswith('<div id="work">')
    assert following.question.text in html
    assert f'data-answered="assay-draft-{annotator.pk}-{slot}-1"' in html

    last = client.post(reverse("slot-submit", args=[following.pk]), submission(), **HX)

    assert last["HX-Redirect"] == reverse("round", args=[round.pk])
    marks = client.get(last["HX-Redirect"]).content.decode()
    assert f'data-answered="assay-draft-{annotator.pk}-{following.pk}-1"' in marks


def test_the_same_submission_again_changes_nothing(pool, annotator, login):
    round = factories.make_round(pool=pool)
    client = login(annotator)
    url, data = reverse("slot-submit", args=[claimed(client, round)]), submission()

    client.post(url, data)
    again = client.post(url, data)

    assert again.status_code == 302
    assert Annotation.objects.count() == 1


def test_another_answer_to_an_answered_question_is_refused_with_the_reason(pool, annotator, login):
    round = factories.make_round(pool=pool)
    client = login(annotator)
    url = reverse("slot-submit", args=[claimed(client, round)])
    client.post(url, submission("41"))

    response = client.post(url, submission("42"), **HX)

    assert response.status_code == 409
    assert 'id="error"' in response.content.decode()
    assert Annotation.objects.get().answer == "41"


def test_the_losing_tab_is_led_on_with_what_it_typed(pool, annotator, login):
    round = factories.make_round(pool=pool)
    client = login(annotator)
    slot = claimed(client, round)
    url, data = reverse("slot-submit", args=[slot]), submission("41")
    client.post(url, data)

    for response in (
        client.post(url, {**data, "answer": "9876"}),
        client.post(url, submission("9876")),
        client.post(reverse("slot-unanswerable", args=[slot]), submission(reason="ill_posed", problem="9876")),
    ):
        page = response.content.decode()
        assert response.status_code == 409
        assert "You have answered this question already: 41." in page
        assert "9876" in page
        assert f'action="{reverse("annotate", args=[round.pk])}"' in page
    assert client.post(reverse("slot-skip", args=[slot])).status_code == 409


def test_every_address_of_a_question_is_closed_to_who_was_removed(pool, manager, annotator, login):
    round = factories.make_round(pool=pool)
    client = login(annotator)
    slot = claimed(client, round)
    remove_member(pool=pool, user=annotator, role="annotator", by=manager)

    assert client.get(reverse("slot", args=[slot])).status_code == 403
    for name in ("slot-draft", "slot-read-as", "slot-submit", "slot-unanswerable", "slot-skip"):
        assert client.post(reverse(name, args=[slot]), submission(reason="ill_posed")).status_code == 403


def test_an_empty_answer_comes_back_as_the_form_alone_for_htmx(pool, annotator, login):
    client = login(annotator)
    url = reverse("slot-submit", args=[claimed(client, factories.make_round(pool=pool))])

    whole, part = client.post(url, submission("  ")), client.post(url, submission("  ", note="keep me"), **HX)

    assert whole.status_code == part.status_code == 422
    assert "<html" in whole.content.decode()
    assert part.content.decode().strip().startswith('<form id="answer-form"')
    assert "Give an answer first" in part.content.decode()
    assert "keep me" in part.content.decode()


def test_an_answer_that_no_grader_reads_is_asked_about_and_then_taken(pool, annotator, login):
    question = factories.make_question(pool=pool, answer_kind="number")
    round = factories.make_round(run=factories.make_run(pool=pool, questions=[question]))
    client = login(annotator)
    url, data = reverse("slot-submit", args=[claimed(client, round)]), submission("the usual one")

    asked = client.post(url, data)

    assert asked.status_code == 422
    assert "No trainer" in asked.content.decode()
    assert 'name="confirm_unreadable"' in asked.content.decode()
    assert not Annotation.objects.exists()

    client.post(url, {**data, "confirm_unreadable": "on"})

    assert Annotation.objects.get().answer == "the usual one"


def test_a_draft_is_saved_as_it_is_typed_and_comes_back(pool, annotator, login):
    client = login(annotator)
    slot = claimed(client, factories.make_round(pool=pool))

    saved = client.post(
        reverse("slot-draft", args=[slot]), {"answer": " half typ", "unsure": "on", "note": "why\nnot"}, **HX
    )

    assert "Saved <time" in saved.content.decode()
    assert "<html" not in saved.content.decode()
    assert Draft.objects.get().content == {"answer": " half typ", "unsure": True, "note": "why\nnot"}
    page = client.get(reverse("slot", args=[slot])).content.decode()
    assert 'value=" half typ"' in page
    assert "why\nnot" in page


def test_a_draft_is_saved_after_somebody_else_got_the_question(pool, annotator, other_annotator, login):
    round = factories.make_round(pool=pool)
    slot = factories.make_held_slot(round=round, user=annotator, lapsed=True)
    login(other_annotator).post(reverse("annotate", args=[round.pk]))
    client = login(annotator)

    saved = client.post(reverse("slot-draft", args=[slot.pk]), {"answer": "late"}, **HX)
    page = client.get(reverse("slot", args=[slot.pk])).content.decode()

    assert saved.status_code == 200
    assert "Somebody else has this question now" in page
    assert 'value="late"' in page


def test_a_late_answer_is_kept_and_the_person_is_told_so(pool, annotator, other_annotator, login):
    round = factories.make_round(pool=pool)
    slot = factories.make_held_slot(round=round, user=annotator, lapsed=True)
    login(other_annotator).post(reverse("annotate", args=[round.pk]))

    response = login(annotator).post(reverse("slot-submit", args=[slot.pk]), submission("9"), follow=True)

    assert Annotation.objects.get().surplus
    assert "Your time had run out" in response.content.decode()


def test_read_as_says_what_a_grader_reads(pool, annotator, login):
    client = login(annotator)
    url = reverse("slot-read-as", args=[claimed(client, factories.make_round(pool=pool))])

    html = client.post(url, {"answer": r"\frac{6}{4}"}, **HX).content.decode()

    assert "<code>3/2</code>" in html
    assert "<html" not in html
    assert 'data-tex="\\frac{6}{4}"' in html


def test_skipping_gives_the_question_back_and_takes_the_next(pool, annotator, login):
    round = factories.make_round(pool=pool, n_questions=2)
    client = login(annotator)
    first = claimed(client, round)

    response = client.post(reverse("slot-skip", args=[first]))

    assert Slot.objects.get(pk=first).state == Slot.State.OPEN
    assert response["Location"] == reverse("slot", args=[Slot.objects.held_by(annotator).get().pk])
    assert "given this question back" in client.get(reverse("slot", args=[first])).content.decode()


def test_a_question_is_marked_unanswerable_with_a_reason_only(pool, annotator, login):
    client = login(annotator)
    url = reverse("slot-unanswerable", args=[claimed(client, factories.make_round(pool=pool))])

    refused = client.post(url, submission(reason=""))
    taken = client.post(url, submission(reason="ill_posed", problem="two unknowns"))

    assert refused.status_code == 422
    assert taken.status_code == 302
    annotation = Annotation.objects.get()
    assert (annotation.unanswerable_reason, annotation.note) == ("ill_posed", "two unknowns")


def test_choices_are_radio_buttons_named_as_the_model_was_asked(pool, annotator, login):
    question = factories.make_question(pool=pool, choices=["51", "53 <b>", "57"], answer_kind="choice")
    round = factories.make_round(run=factories.make_run(pool=pool, questions=[question]))
    client = login(annotator)
    slot = claimed(client, round)

    html = client.get(reverse("slot", args=[slot])).content.decode()
    reading = client.post(reverse("slot-read-as", args=[slot]), {"answer": "B"}, **HX).content.decode()
    client.post(reverse("slot-submit", args=[slot]), submission("B"))

    assert "a blind guess is right one time in 3" in reading
    assert '<input type="radio" name="answer" value="B"' in html
    assert "53 &lt;b&gt;" in html
    assert Annotation.objects.get().answer == "B"


def test_an_answered_question_is_shown_with_ones_own_answer(pool, annotator, login):
    round = factories.make_round(pool=pool)
    client = login(annotator)
    slot = claimed(client, round)
    client.post(reverse("slot-submit", args=[slot]), submission("41"))

    html = client.get(reverse("slot", args=[slot])).content.decode()

    assert "You have answered this question" in html
    assert "<code>41</code>" in html


def test_nothing_typed_for_one_question_stands_in_the_form_of_the_next(pool, annotator, login):
    client, round = login(annotator), factories.make_round(pool=pool, n_questions=2)
    slot_id = claimed(client, round)
    typed = {"reason": "ill_posed", "problem": "no triangle has them", "flag_note": "odd"}
    typed["idempotency_key"] = str(uuid.uuid4())

    shown = client.post(reverse("slot-unanswerable", args=[slot_id]), typed, headers={"HX-Request": "true"})

    assert shown.status_code == 200
    assert 'id="answer-form"' in shown.content.decode()
    for left in ("no triangle has them", ">odd<", 'value="ill_posed" selected'):
        assert left not in shown.content.decode()
