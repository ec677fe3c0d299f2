"""The answering page in a real browser: nothing typed is lost, and the keys do what they say."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse

from labeling.models import Annotation, Draft, Flag, GuidelineReading, Skip, Slot
from tests import factories
from tests.conftest import skip_or_fail

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PASSWORD = "seven ducks at dawn"
KEPT = "Object.keys(localStorage).filter((key) => key.startsWith('assay-draft-')).length"


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        skip_or_fail(f"there is no Chromium at {CHROMIUM}")
    sync_api = pytest.importorskip("playwright.sync_api")
    with pytest.MonkeyPatch.context() as environment, sync_api.sync_playwright() as playwright:
        environment.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright runs an event loop in this thread
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, live_server, annotator, login) -> Iterator:
    """The page of an annotator who is logged in; whatever its console complains of fails the test."""
    annotator.set_password(PASSWORD)
    annotator.save()
    context = browser.new_context(base_url=live_server.url)
    log_in(context, live_server, annotator, login)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.complaints = complaints
    yield page
    for each in context.pages:
        each.goto("about:blank")
    page.wait_for_timeout(500)  # what a page sends as it closes has arrived
    context.close()
    of_a_form_gone = "Invalid re-target"  # a draft on its way was refused after the next question had come
    errors = [each for each in complaints if "Content Security Policy" in each or "Error:" in each]
    assert [each for each in errors if of_a_form_gone not in each] == []


def log_in(context, live_server, user, login):
    session = login(user).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])


@pytest.fixture
def round(pool):
    run = factories.make_run(
        pool=pool,
        questions=[
            factories.make_question(pool=pool, text=rf"What is $\frac{{{n}}}{{2}} + 1$?", answer_kind="number")
            for n in (4, 6)
        ],
    )
    return factories.make_round(run=run)


def open_question(page, round):
    page.goto(reverse("round", args=[round.pk]))
    page.get_by_role("button", name="Answer the next question").click()
    page.wait_for_url(re.compile(r"/slots/\d+/"))
    return page.locator("#id_answer")


def submit(page):
    """Press the button and wait until the server's word that it has the answer is on the screen."""
    page.get_by_role("button", name="Submit and next").click()
    undo(page).wait_for()


def undo(page):
    return page.get_by_role("button", name="Undo")


def saved(page):
    return page.locator("#draft-status", has_text=re.compile(r"Saved \d\d:\d\d:\d\d"))


def test_the_preview_and_the_reading_follow_the_typing_and_a_warning_comes_before_submitting(page, round):
    answer = open_question(page, round)

    assert page.locator(".question.large .katex").count() == 1
    answer.press_sequentially(r"\frac{6}{4}", delay=5)
    page.locator("#read-as code", has_text="3/2").wait_for()
    page.locator("#read-as .katex").wait_for()

    answer.fill("12 cm")
    page.locator("#read-as .beware", has_text="Carries the unit cm").wait_for()


def test_a_draft_is_saved_while_typing_and_is_there_after_a_reload_and_is_stored_once(page, round):
    answer = open_question(page, round)

    answer.press_sequentially("12", delay=5)
    saved(page).wait_for()
    page.reload()

    assert Draft.objects.get().content["answer"] == "12"
    assert answer.input_value() == "12"
    submit(page)
    assert Annotation.objects.get().answer == "12"


def test_what_was_typed_offline_is_kept_on_the_device_and_saved_when_the_network_is_back(page, round):
    answer = open_question(page, round)

    page.context.set_offline(True)
    answer.press_sequentially("34", delay=5)
    page.locator("#draft-status", has_text="Offline").wait_for()
    page.get_by_role("button", name="Submit and next").click()
    page.locator("#messages", has_text="Nothing is lost").wait_for()
    assert answer.input_value() == "34"

    page.context.set_offline(False)
    saved(page).wait_for()
    assert Draft.objects.get().content["answer"] == "34"

    submit(page)
    assert Annotation.objects.get().answer == "34"


def test_the_copy_on_the_device_comes_back_when_the_server_never_got_it(page, round):
    answer = open_question(page, round)
    answer.press_sequentially("5", delay=5)
    saved(page).wait_for()
    page.route("**/draft/", lambda route: route.abort())

    answer.fill("56")
    page.locator("#draft-status", has_text="Offline").wait_for()
    page.reload()

    assert answer.input_value() == "56"
    page.get_by_role("button", name="Use what was saved before").click()
    assert answer.input_value() == "5"
    page.get_by_role("button", name="Use what was saved before").click()
    assert answer.input_value() == "56"


def test_an_answer_whose_confirmation_was_lost_on_the_way_is_stored_once(page, round):
    answer = open_question(page, round)
    page.route("**/submit/", lambda route: (route.fetch(), route.abort()), times=1)

    answer.press_sequentially("7", delay=5)
    page.get_by_role("button", name="Submit and next").click()
    page.locator("#messages", has_text="Nothing is lost").wait_for()
    assert Annotation.objects.count() == 1
    submit(page)

    assert Annotation.objects.get().answer == "7"


def test_an_ended_session_is_renewed_over_the_page_and_the_same_submission_is_sent_again(page, round):
    answer = open_question(page, round)
    answer.press_sequentially("78", delay=5)
    saved(page).wait_for()
    key = page.locator("#answer-form [name=idempotency_key]").input_value()
    Session.objects.all().delete()

    page.get_by_role("button", name="Submit and next").click()
    dialog = page.get_by_role("dialog", name="Log in to go on")
    dialog.get_by_label("Username").fill("annotator")
    assert answer.input_value() == "78"
    assert not Annotation.objects.exists()
    dialog.get_by_label("Password").fill("wrong")
    dialog.get_by_role("button", name="Log in").click()
    dialog.get_by_role("alert").wait_for()
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Log in").click()
    undo(page).wait_for()

    annotation = Annotation.objects.get()
    assert (annotation.answer, str(annotation.idempotency_key)) == ("78", key)
    page.locator("#id_answer").press_sequentially("3", delay=5)  # the new token serves the next question too
    saved(page).wait_for()


def test_typing_goes_on_undisturbed_after_the_session_has_ended(page, round):
    answer = open_question(page, round)
    Session.objects.all().delete()

    answer.press_sequentially("91", delay=5)
    page.locator("#draft-status", has_text="Logged out – kept on this device").wait_for()
    assert page.get_by_role("dialog").count() == 0
    answer.press_sequentially("2", delay=5)

    page.get_by_role("button", name="Log in").click()
    dialog = page.get_by_role("dialog", name="Log in to go on")
    dialog.get_by_label("Username").fill("annotator")
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Log in").click()
    saved(page).wait_for()
    assert Draft.objects.get().content["answer"] == "912"


def test_somebody_else_who_logs_in_over_the_page_gets_their_own_start_page(page, round, other_annotator):
    other_annotator.set_password(PASSWORD)
    other_annotator.save()
    answer = open_question(page, round)
    answer.press_sequentially("5", delay=5)
    Session.objects.all().delete()

    page.get_by_role("button", name="Submit and next").click()
    dialog = page.get_by_role("dialog", name="Log in to go on")
    dialog.get_by_label("Username").fill("other_annotator")
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Log in").click()

    page.wait_for_url(re.compile(r"/$"))
    assert not Annotation.objects.exists()


def test_two_tabs_show_the_same_question_and_the_answer_is_stored_once(page, round):
    answer = open_question(page, round)
    answer.press_sequentially("12", delay=5)
    saved(page).wait_for()
    other = page.context.new_page()
    other.goto(page.url)
    assert other.locator("#id_answer").input_value() == "12"

    submit(page)
    other.get_by_role("button", name="Submit and next").click()  # the same words: it goes on to the next question
    other.wait_for_url(page.url)
    assert Annotation.objects.get().answer == "12"


def test_another_answer_in_another_tab_is_refused_kept_and_can_be_given_as_a_revision(page, round):
    answer = open_question(page, round)
    other = page.context.new_page()
    other.goto(page.url)
    first = page.url
    answer.press_sequentially("1", delay=5)
    submit(page)

    other.locator("#id_answer").fill("4321")
    saved(other).wait_for()
    other.get_by_role("button", name="Submit and next").click()
    other.locator("#messages", has_text="You have answered this question already").wait_for()

    assert other.locator("#id_answer").input_value() == "4321"
    assert Annotation.objects.get().answer == "1"
    other.goto(f"{first}revise/")
    assert other.locator("#id_answer").input_value() == "4321"


def test_back_shows_what_was_answered_and_forward_the_next_question_with_what_was_typed(page, round):
    answer = open_question(page, round)
    first = page.url
    answer.press_sequentially("3", delay=5)
    submit(page)
    second = page.url
    assert second != first
    page.locator("#id_answer").press_sequentially("44", delay=5)
    saved(page).wait_for()

    page.go_back()
    page.get_by_role("heading", name="You have answered this question").wait_for()
    assert page.url == first
    page.go_forward()
    page.locator("#id_answer").wait_for()

    assert page.url == second
    assert page.locator("#id_answer").input_value() == "44"
    assert Annotation.objects.count() == 1


def test_an_answer_after_the_time_has_run_out_is_kept_beside_the_one_that_counts(page, round, other_annotator):
    answer = open_question(page, round)
    answer.press_sequentially("61", delay=5)
    saved(page).wait_for()
    Slot.objects.filter(state="leased").update(holder=other_annotator)

    answer.press_sequentially("2", delay=5)
    page.locator("#draft-status", has_text="Somebody else has this question now").wait_for()
    page.get_by_role("button", name="Submit and next").click()
    page.locator("#messages", has_text="Your time had run out").wait_for()

    annotation = Annotation.objects.get()
    assert (annotation.answer, annotation.surplus) == ("612", True)


def test_the_copy_on_the_device_is_removed_only_once_the_server_has_the_answer(page, round):
    answer = open_question(page, round)

    answer.press_sequentially("9", delay=5)
    assert page.evaluate(KEPT) == 1
    page.keyboard.press("Control+Enter")
    undo(page).wait_for()

    assert page.evaluate(KEPT) == 0
    assert Slot.objects.filter(state="done").count() == 1


def test_the_last_minutes_of_the_lease_are_told_and_extended(page, round):
    answer = open_question(page, round)
    warning = page.locator("#lease-warning")
    assert not warning.is_visible()
    lease = Slot.objects.get(state="leased").lease_until
    page.evaluate("document.querySelector('[data-lease-seconds]').dataset.leaseSeconds = 120")
    page.evaluate("htmx.trigger('#draft-status', 'htmx:afterSwap', {target: document.getElementById('draft-status')})")

    warning.get_by_text("2 more minutes").wait_for()
    warning.get_by_role("button", name="Extend").click()
    warning.wait_for(state="hidden")

    assert answer.is_visible()
    assert Slot.objects.get(state="leased").lease_until > lease


def test_single_keys_work_outside_the_fields_only_and_can_be_turned_off(page, round):
    answer = open_question(page, round)

    answer.press_sequentially("usfz", delay=5)
    answer.press("Enter")
    assert answer.input_value() == "usfz"
    assert page.locator("#unanswerable").get_attribute("open") is None

    answer.press("Escape")
    page.keyboard.press("u")
    assert page.locator("#unanswerable").get_attribute("open") is not None
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    assert page.locator("#question-raw").is_visible()
    page.keyboard.press("?")
    page.get_by_label("Single-letter keys are on").uncheck()
    page.reload()
    page.keyboard.press("u")
    assert page.locator("#unanswerable").get_attribute("open") is None
    assert not Annotation.objects.exists()
    assert not Skip.objects.exists()


def test_keys_are_left_alone_while_a_character_is_being_composed(page, round):
    answer = open_question(page, round)
    answer.press_sequentially("5", delay=5)

    page.evaluate(
        "document.getElementById('id_answer').dispatchEvent(new KeyboardEvent('keydown', "
        "{key: 'Enter', ctrlKey: true, bubbles: true, isComposing: true}))"
    )
    saved(page).wait_for()

    assert not Annotation.objects.exists()


def test_a_skip_is_taken_back_by_its_key(page, round):
    answer = open_question(page, round)
    first = page.url
    answer.press_sequentially("5", delay=5)
    saved(page).wait_for()
    answer.press("Escape")

    page.keyboard.press("s")
    page.get_by_text("Skipped").wait_for()
    assert page.url != first
    page.keyboard.press("z")
    page.wait_for_url(first)

    assert page.locator("#id_answer").input_value() == "5"
    assert not Skip.objects.exists()


def test_a_flag_and_a_read_guideline_leave_the_answer_as_it_is(page, pool, manager, round):
    round.guideline = pool.guidelines.create(version=1, text="Numbers only.", created_by=manager)
    round.save()
    answer = open_question(page, round)
    answer.press_sequentially("17", delay=5)
    saved(page).wait_for()
    answer.press("Escape")

    page.keyboard.press("f")
    page.get_by_label("What should a manager look at?").fill("Looks like a copy of another")
    page.keyboard.press("Control+Enter")
    page.locator("#messages", has_text="Flagged").wait_for()
    page.keyboard.press("g")
    page.get_by_role("button", name="I have read version 1").click()
    page.locator("#guideline .dot").wait_for(state="detached")

    assert page.locator("#id_answer").input_value() == "17"
    assert Flag.objects.get().note == "Looks like a copy of another"
    assert GuidelineReading.objects.count() == 1
    assert not Annotation.objects.exists()


def test_an_unreadable_answer_is_asked_about_in_place(page, round):
    answer = open_question(page, round)

    answer.press_sequentially("the usual one", delay=5)
    page.get_by_role("button", name="Submit and next").click()
    page.get_by_label("Submit it as it is").check()
    submit(page)

    assert Annotation.objects.get().answer == "the usual one"


def test_the_next_question_comes_without_a_new_page_and_its_heading_has_the_focus(page, round):
    answer = open_question(page, round)
    page.evaluate("window.same = true")

    answer.press_sequentially("3", delay=5)
    submit(page)

    assert page.evaluate("window.same")
    assert page.evaluate("document.activeElement.id") == "question-heading"
    assert page.locator(".question.large .katex").count() == 1
    assert page.locator("#id_answer").input_value() == ""
