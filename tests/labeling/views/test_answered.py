"""Beside and after answering: take back, revise, flag, read the guideline, and log in again without losing a word."""

import uuid
from datetime import timedelta

from django.urls import reverse
from django.utils import timezone

from labeling.actions.pools import save_guideline
from labeling.forms.answers import WRITTEN
from labeling.models import Annotation, AnswerKind, Draft, Flag, Skip, Slot
from tests import factories
from tests.labeling.views.conftest import HOSTILE, HX
from tests.labeling.views.test_annotate import claimed, submission


def test_each_kind_of_answer_says_how_it_is_written(pool, annotator, login):
    assert set(WRITTEN) == {*AnswerKind.values, ""}
    question = factories.make_question(pool=pool, answer_kind="interval")
    client = login(annotator)
    slot = claimed(client, factories.make_round(run=factories.make_run(pool=pool, questions=[question])))

    html = client.get(reverse("slot", args=[slot])).content.decode()

    assert "for example (1, 2]" in html
    assert "A square bracket where the end belongs to it" in html


def test_warnings_come_before_an_answer_is_taken_unless_they_were_on_the_screen(pool, annotator, login):
    client = login(annotator)
    slot = claimed(client, factories.make_round(pool=pool))
    url, data = reverse("slot-submit", args=[slot]), submission("12 cm")

    shown = client.post(url, data)

    assert shown.status_code == 422
    assert "Carries the unit cm" in shown.content.decode()
    assert '<input type="hidden" name="warned" value="12 cm">' in shown.content.decode()
    assert not Annotation.objects.exists()
    assert client.post(url, data | {"warned": "12 cm"}).status_code == 302
    assert Annotation.objects.get().answer == "12 cm"


def test_warnings_of_another_answer_do_not_do(pool, annotator, login):
    client = login(annotator)
    url = reverse("slot-submit", args=[claimed(client, factories.make_round(pool=pool))])

    assert client.post(url, submission("13 cm", warned="12 cm")).status_code == 422


def test_a_figure_is_named_and_never_fetched(pool, annotator, login):
    question = factories.make_question(
        pool=pool, metadata={"figure": "https://example.org/a.png", "images": ["javascript:alert(1)", "/etc/passwd"]}
    )
    client = login(annotator)
    slot = claimed(client, factories.make_round(run=factories.make_run(pool=pool, questions=[question])))

    html = client.get(reverse("slot", args=[slot])).content.decode()

    assert '<a href="https://example.org/a.png" target="_blank" rel="noopener noreferrer external">' in html
    assert "<img" not in html
    assert "javascript:alert" not in html


def test_an_answer_is_taken_back_and_what_was_typed_for_the_next_question_is_kept(pool, annotator, login):
    client = login(annotator)
    slot = claimed(client, factories.make_round(pool=pool, n_questions=2))
    client.post(reverse("slot-submit", args=[slot]), submission("41", note="by hand"))
    following = Slot.objects.held_by(annotator).get()

    page = client.get(reverse("slot", args=[following.pk])).content.decode()
    back = client.post(reverse("slot-undo", args=[slot]), {"slot": following.pk, "answer": "7", "note": ""})

    assert f'formaction="{reverse("slot-undo", args=[slot])}"' in page
    assert back["Location"] == reverse("slot", args=[slot])
    html = client.get(back["Location"]).content.decode()
    assert 'value="41"' in html
    assert "by hand" in html
    assert Draft.objects.get(question=following.question, author=annotator).content["answer"] == "7"
    assert not Annotation.objects.standing().exists()


def test_taking_back_an_answer_gives_a_check_back_that_came_next(pool, annotator, login):
    client = login(annotator)
    round = factories.make_round(pool=pool, units=2)
    slot = claimed(client, round)
    client.post(reverse("slot-unanswerable", args=[slot]), submission(reason="ill_posed", problem="two unknowns"))
    check = Slot.objects.create(
        round=round,
        unit=round.budget.units.free()[0],
        purpose=Slot.Purpose.CHECK,
        calibration_item=factories.make_calibration_item(calibration_set=factories.make_calibration_set()),
        state=Slot.State.LEASED,
        holder=annotator,
        lease_until=timezone.now() + timedelta(minutes=5),
    )
    Draft.objects.create(round=round, calibration_item=check.calibration_item, author=annotator)

    back = client.post(reverse("slot-undo", args=[slot]))

    html = client.get(back["Location"]).content.decode()
    assert Slot.objects.held_by(annotator).get().pk == slot
    assert '<option value="ill_posed" selected>' in html
    assert "two unknowns" in html


def test_after_its_time_an_answer_is_revised_instead_of_taken_back(pool, annotator, login, settings):
    settings.ASSAY_UNDO_SECONDS = 0
    client = login(annotator)
    slot = claimed(client, factories.make_round(pool=pool))
    client.post(reverse("slot-submit", args=[slot]), submission("41"))

    assert client.post(reverse("slot-undo", args=[slot])).status_code == 409
    assert "Undo" not in client.get(reverse("slot", args=[slot])).content.decode()

    url = reverse("slot-revise", args=[slot])
    assert 'value="41"' in client.get(url).content.decode()
    assert client.post(url, submission("42")).status_code == 422  # without a reason
    assert client.post(url, submission("42", why=HOSTILE)).status_code == 302

    first, second = Annotation.objects.order_by("version")
    assert (first.answer, second.answer, second.version, second.why) == ("41", "42", 2, HOSTILE)
    html = client.get(reverse("slot", args=[slot])).content.decode()
    assert "<code>42</code>" in html
    assert HOSTILE not in html


def test_a_revision_may_say_that_there_is_no_answer(pool, annotator, login):
    client = login(annotator)
    slot = claimed(client, factories.make_round(pool=pool))
    client.post(reverse("slot-submit", args=[slot]), submission("41"))
    url = reverse("slot-revise", args=[slot])

    refused = client.post(url, submission("41", give="reason", why="two roots"))
    taken = client.post(url, submission("41", give="reason", reason="several_answers", problem="1 and 3", why="two"))

    assert refused.status_code == 422
    assert taken.status_code == 302
    latest = Annotation.objects.standing().get()
    assert (latest.answer, latest.unanswerable_reason, latest.note) == ("", "several_answers", "1 and 3")


def test_a_skip_is_taken_back_within_its_time_only(pool, annotator, other_annotator, login):
    round = factories.make_round(pool=pool, n_questions=2)
    client = login(annotator)
    slot = claimed(client, round)

    client.post(reverse("slot-skip", args=[slot]))
    back = client.post(reverse("slot-undo", args=[slot]))

    assert back["Location"] == reverse("slot", args=[slot])
    assert Slot.objects.held_by(annotator).get().pk == slot
    assert not Skip.objects.exists()

    client.post(reverse("slot-skip", args=[slot]))
    assert claimed(login(other_annotator), round) == slot
    assert client.post(reverse("slot-undo", args=[slot])).status_code == 409
    assert Slot.objects.get(pk=slot).holder == other_annotator
    Skip.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    assert client.post(reverse("slot-undo", args=[slot])).status_code == 409


def test_a_flag_is_raised_once_leaves_the_answer_and_is_on_the_managers_page(pool, manager, annotator, login):
    round = factories.make_round(pool=pool)
    client = login(annotator)
    slot = claimed(client, round)
    url = reverse("slot-flag", args=[slot])
    data = {"flag_note": HOSTILE, "flag_key": str(uuid.uuid4()), "answer": "4", "note": "", "slot": slot}

    assert client.post(url, data | {"flag_note": " "}).status_code == 400
    for _ in range(2):
        assert client.post(url, data).status_code == 302

    assert Flag.objects.get().by == annotator
    assert Draft.objects.get().content["answer"] == "4"
    assert 'value="4"' in client.get(reverse("slot", args=[slot])).content.decode()
    managers = login(manager).get(reverse("round", args=[round.pk])).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in managers
    assert HOSTILE not in managers


def test_a_guideline_that_has_changed_since_it_was_read_says_what_is_new(pool, manager, annotator, login):
    first = save_guideline(pool=pool, text="Numbers only.\n\nNo units.", by=manager)
    client = login(annotator)
    slot = claimed(client, factories.make_round(pool=pool, guideline=first))
    assert "not read yet" in client.get(reverse("slot", args=[slot])).content.decode()

    client.post(reverse("slot-guideline", args=[slot]), {"answer": "3", "note": "", "slot": slot})
    read = client.get(reverse("slot", args=[slot])).content.decode()
    second = save_guideline(pool=pool, text="Numbers only.\n\nUnits where asked.", by=manager)
    round = factories.make_round(pool=pool, guideline=second)
    changed = client.get(reverse("round", args=[round.pk])).content.decode()
    client.post(reverse("round-guideline", args=[round.pk]))

    assert 'class="dot"' not in read
    assert 'value="3"' in read
    assert "Changed since you read version 1" in changed
    assert changed.count('class="changed"') == 1
    assert "Changed since" not in client.get(reverse("round", args=[round.pk])).content.decode()


def test_what_a_form_held_when_the_session_had_ended_comes_back_after_logging_in(pool, annotator, login, client):
    annotator.set_password("seven ducks at dawn")
    annotator.save()
    slot = claimed(login(annotator), factories.make_round(pool=pool))
    page = f"http://testserver{reverse('slot', args=[slot])}"

    asked = client.post(
        reverse("slot-submit", args=[slot]), submission("41", note=HOSTILE, slot=slot), HTTP_REFERER=page
    )
    html = asked.content.decode()
    wrong = {"username": "annotator", "password": "wrong", "next": "/", "typed": asked.context["typed"]}
    again = client.post(reverse("login"), wrong)
    right = wrong | {"password": "seven ducks at dawn", "typed": again.context["typed"], "next": asked.context["next"]}
    entered = client.post(reverse("login"), right)

    assert asked.status_code == 401
    assert "<code>41</code>" in html
    assert HOSTILE not in html
    assert not Annotation.objects.exists()
    assert entered["Location"] == reverse("slot", args=[slot])
    assert Draft.objects.get().content == {"answer": "41", "unsure": False, "note": HOSTILE}


def test_nobody_gets_a_draft_for_a_question_they_were_not_given(pool, annotator, other_annotator, login, client):
    other_annotator.set_password("seven ducks at dawn")
    other_annotator.save()
    slot = claimed(login(annotator), factories.make_round(pool=pool))
    typed = f'{{"slot": {slot}, "draft": {{"answer": "9"}}}}'

    for each in (typed, "[]", "{", '{"slot": "x", "draft": 1}'):
        data = {"username": "other_annotator", "password": "seven ducks at dawn", "next": "/", "typed": each}
        assert client.post(reverse("login"), data).status_code == 302

    assert Draft.objects.get().content == {}


def test_logging_in_over_a_page_answers_with_who_it_is_and_a_new_token(annotator, client):
    annotator.set_password("seven ducks at dawn")
    annotator.save()

    form = client.get(reverse("login"), **HX).content.decode()
    refused = client.post(reverse("login"), {"username": "annotator", "password": "wrong"}, **HX)
    entered = client.post(reverse("login"), {"username": "annotator", "password": "seven ducks at dawn"}, **HX)

    assert "<html" not in form
    assert (refused.status_code, entered.status_code) == (422, 204)
    assert entered["HX-Trigger"] == f'{{"logged-in": {{"user": {annotator.pk}}}}}'
    assert "csrftoken" in entered.cookies


def test_back_and_on_lead_through_ones_own_answers_and_nobody_elses(pool, annotator, other_annotator, login):
    round = factories.make_round(pool=pool, n_questions=4)
    client = login(annotator)
    first = claimed(client, round)
    client.post(reverse("slot-submit", args=[first]), submission("1"))
    theirs = claimed(login(other_annotator), round)
    second = Slot.objects.held_by(annotator).get().pk
    client.post(reverse("slot-submit", args=[second]), submission("2"))
    held = Slot.objects.held_by(annotator).get().pk

    pages = {each: client.get(reverse("slot", args=[each])).content.decode() for each in (first, second, held)}

    assert f'rel="prev" href="{reverse("slot", args=[second])}"' in pages[held]
    assert f'rel="prev" href="{reverse("slot", args=[first])}"' in pages[second]
    assert f'rel="next" href="{reverse("slot", args=[held])}"' in pages[second]
    assert 'rel="prev"' not in pages[first]
    assert all(reverse("slot", args=[theirs]) not in page for page in pages.values())
