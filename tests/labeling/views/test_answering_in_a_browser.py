"""The answering page in a real browser: nothing typed is lost to a reload, an ended session or a lost network."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import reverse

from labeling.models import Annotation, Draft, Slot
from tests import factories
from tests.conftest import skip_or_fail

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


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
    context = browser.new_context(base_url=live_server.url)
    log_in(context, live_server, annotator, login)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.complaints = complaints
    yield page
    context.close()
    assert [each for each in complaints if "Content Security Policy" in each or "Error:" in each] == []


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


def test_a_formula_is_typeset_and_the_reading_follows_the_typing(page, round):
    answer = open_question(page, round)

    assert page.locator(".question .katex").count() == 1
    answer.press_sequentially(r"\frac{6}{4}", delay=5)

    page.locator("#read-as code", has_text="3/2").wait_for()
    page.locator("#read-as .katex").wait_for()


def test_a_draft_is_saved_while_typing_and_is_there_after_a_reload(page, round):
    answer = open_question(page, round)

    answer.press_sequentially("12", delay=5)
    page.locator("#draft-status", has_text=re.compile(r"Saved \d\d:\d\d:\d\d")).wait_for()
    page.reload()

    assert Draft.objects.get().content["answer"] == "12"
    assert answer.input_value() == "12"


def test_what_was_typed_offline_is_kept_on_the_device_and_saved_when_the_network_is_back(page, round):
    answer = open_question(page, round)

    page.context.set_offline(True)
    answer.press_sequentially("34", delay=5)
    page.locator("#draft-status", has_text="Offline").wait_for()
    page.get_by_role("button", name="Submit and next").click()
    page.locator("#messages", has_text="Nothing is lost").wait_for()
    assert answer.input_value() == "34"

    page.context.set_offline(False)
    page.locator("#draft-status", has_text="Saved").wait_for()
    assert Draft.objects.get().content["answer"] == "34"

    page.get_by_role("button", name="Submit and next").click()
    page.locator("#messages", has_text="Submitted").wait_for()
    assert Annotation.objects.get().answer == "34"


def test_the_copy_on_the_device_comes_back_when_the_server_never_got_it(page, round):
    answer = open_question(page, round)
    page.route("**/draft/", lambda route: route.abort())

    answer.press_sequentially("56", delay=5)
    page.locator("#draft-status", has_text="Offline").wait_for()
    page.reload()

    assert answer.input_value() == "56"
    page.locator("#restored").wait_for()


def test_an_ended_session_keeps_the_text_and_the_same_page_submits_after_logging_in_again(
    page, round, live_server, annotator, login
):
    answer = open_question(page, round)
    page.context.clear_cookies(name="sessionid")

    answer.press_sequentially("78", delay=5)
    page.get_by_role("button", name="Submit and next").click()
    page.locator("#messages", has_text="Your session has ended").wait_for()
    assert answer.input_value() == "78"
    assert not Annotation.objects.exists()

    log_in(page.context, live_server, annotator, login)
    other_tab = page.context.new_page()
    other_tab.goto("/")  # brings a new CSRF cookie, as logging in does
    page.get_by_role("button", name="Submit and next").click()
    page.locator("#messages", has_text="Submitted").wait_for()
    assert Annotation.objects.get().answer == "78"


def test_the_copy_on_the_device_is_removed_only_once_the_server_has_the_answer(page, round):
    answer = open_question(page, round)
    kept = "Object.keys(localStorage).filter((key) => key.startsWith('assay-draft-')).length"

    answer.press_sequentially("9", delay=5)
    assert page.evaluate(kept) == 1
    page.keyboard.press("Control+Enter")
    page.locator("#messages", has_text="Submitted").wait_for()

    assert page.evaluate(kept) == 0
    assert Slot.objects.filter(state="done").count() == 1


def test_enter_alone_submits_nothing_and_single_keys_work_outside_the_fields_only(page, round):
    answer = open_question(page, round)

    answer.press_sequentially("us", delay=5)
    answer.press("Enter")
    assert answer.input_value() == "us"
    assert page.locator("#unanswerable").get_attribute("open") is None

    answer.press("Escape")
    page.keyboard.press("u")
    assert page.locator("#unanswerable").get_attribute("open") is not None
    page.keyboard.press("r")
    assert page.locator("pre[data-view=raw]").is_visible()
    assert not Annotation.objects.exists()


def test_an_unreadable_answer_is_asked_about_in_place(page, round):
    answer = open_question(page, round)

    answer.press_sequentially("the usual one", delay=5)
    page.get_by_role("button", name="Submit and next").click()
    page.get_by_label("Submit it as it is").check()
    page.get_by_role("button", name="Submit and next").click()

    page.locator("#messages", has_text="Submitted").wait_for()
    assert Annotation.objects.get().answer == "the usual one"
