"""Answering as people do it all day: by keyboard alone, without JavaScript, and on a server that is killed."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import ROOT
from tests.journeys.browser import new_window, open_browser
from tests.journeys.command_line import CommandLine
from tests.journeys.test_main_job import _wait_for

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("journeys")]
PASSWORD = "seven ducks at dawn"
expect.set_options(timeout=60_000)  # for a machine that does other things as well
END_SESSIONS = "from django.contrib.sessions.models import Session; Session.objects.all().delete()"
SEED = f"""
from labeling.models import Role
from tests import factories

pool = factories.make_pool(name="Sums", slug="sums", manager=factories.make_user(username="mira"))
ana = factories.make_user(username="ana", pool=pool, roles=(Role.ANNOTATOR,))
ana.set_password("{PASSWORD}")
ana.save()
guideline = pool.guidelines.create(version=1, text="Numbers only.", created_by=pool.created_by)
questions = [factories.make_question(pool=pool, text=f"What is {{n}} + {{n}}?") for n in range(1, 6)]
factories.make_round(run=factories.make_run(pool=pool, questions=questions), guideline=guideline)
"""


class Site:
    """The application behind gunicorn, on a database of its own; the server can be killed and started again."""

    def __init__(self, var: Path) -> None:
        with closing(socket.socket()) as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.shell = CommandLine(var, HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", ASSAY_UNDO_SECONDS="300")
        self.shell.migrate()
        self.shell.run("shell", "-c", SEED)
        self.start()

    def start(self) -> None:
        self.server = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "labeling.wsgi", "--bind", f"127.0.0.1:{self.port}", "--threads", "4"],
            cwd=ROOT,
            env=self.shell.environment,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _wait_for(f"{self.address}/login/")

    def kill(self) -> None:
        """End the server and its worker at once, as a power cut does."""
        os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait(timeout=120)

    def answers(self) -> list[tuple[str, str, int]]:
        """(answer, reason, version) of all annotations that were not taken back."""
        return self.shell.rows(
            "SELECT answer, unanswerable_reason, version FROM labeling_annotation WHERE id NOT IN "
            "(SELECT annotation_id FROM labeling_withdrawal) ORDER BY id"
        )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path / "var")
    yield site
    if site.server.poll() is None:
        site.kill()
    site.shell.close()


def tab_to(page: Page, name: str) -> None:
    """Press Tab until what has the focus is called so."""
    named = page.locator(":focus").filter(has_text=re.compile(name))
    labelled = page.get_by_label(re.compile(name))
    for _ in range(60):
        page.keyboard.press("Tab")
        if named.count() or labelled.and_(page.locator(":focus")).count():
            return
    raise AssertionError(f"Tab never comes to {name!r}: {page.locator('main').inner_text()}")


def log_in(page: Page) -> None:
    tab_to(page, "Username")
    page.keyboard.type("ana")
    tab_to(page, "Password")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")


def asked(page: Page) -> str:
    return page.locator(".question.large").inner_text().strip()


def open_first_question(page: Page) -> None:
    page.goto("/login/")
    log_in(page)
    tab_to(page, "Answer the next")
    page.keyboard.press("Enter")
    expect(page.locator(".question.large")).to_have_text("What is 1 + 1?")
    page.wait_for_load_state()  # keys are heard from then on


def press(page: Page, key: str) -> None:
    """Press a key once the page hears it: not while it is still loading or being put together."""
    page.wait_for_load_state()
    page.wait_for_timeout(500)
    page.keyboard.press(key)


def test_the_whole_flow_by_keyboard_alone(site: Site) -> None:
    complaints: list[str] = []
    with open_browser() as browser:
        page = new_window(browser, address=site.address, complaints=complaints)
        question = page.locator(".question.large")
        undo = page.get_by_role("button", name="Undo")
        open_first_question(page)

        # the guideline, the round and back
        press(page, "g")
        tab_to(page, "I have read version 1")
        page.keyboard.press("Enter")
        expect(page.locator("#guideline .dot")).to_have_count(0)
        tab_to(page, "Round 1")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Round 1")).to_be_visible()
        tab_to(page, "Go on with your question")
        page.keyboard.press("Enter")

        # an answer, taken back and given again
        expect(question).to_have_text("What is 1 + 1?")
        press(page, "i")
        page.keyboard.type("2")
        press(page, "Control+Enter")
        expect(question).to_have_text("What is 2 + 2?")
        press(page, "z")
        expect(question).to_have_text("What is 1 + 1?")
        expect(page.locator("#id_answer")).to_have_value("2")
        assert site.answers() == []
        press(page, "Control+Enter")

        # one that cannot be answered
        expect(question).to_have_text("What is 2 + 2?")
        press(page, "u")
        page.keyboard.type("Ill")
        press(page, "Control+Enter")

        # a skip, taken back and done again
        expect(question).to_have_text("What is 3 + 3?")
        press(page, "s")
        expect(question).to_have_text("What is 4 + 4?")
        press(page, "z")
        expect(question).to_have_text("What is 3 + 3?")
        press(page, "s")
        expect(question).to_have_text("What is 4 + 4?")

        # a flag, and the raw text
        press(page, "f")
        page.keyboard.type("as the one before")
        press(page, "Control+Enter")
        expect(page.get_by_text("Flagged.")).to_be_visible()
        press(page, "r")
        expect(page.locator("#question-raw")).to_be_visible()

        # back to the answer before, which is revised
        press(page, "[")
        expect(page.get_by_text("Cannot be answered: ill-posed")).to_be_visible()
        press(page, "[")
        expect(page.get_by_text("What is 1 + 1?")).to_be_visible()
        tab_to(page, "Revise")
        page.keyboard.press("Enter")
        expect(page.get_by_text("You are revising your answer")).to_be_visible()
        press(page, "/")
        page.keyboard.press("Control+a")
        page.keyboard.type("3")
        tab_to(page, "Why you change it")
        page.keyboard.type("counted again")
        press(page, "Control+Enter")
        expect(page.get_by_text("3: counted again")).to_be_visible()
        expect(undo).to_be_visible()
        press(page, "]")
        expect(page.get_by_text("What is 2 + 2?")).to_be_visible()
        press(page, "]")

        # the last two
        expect(question).to_have_text("What is 4 + 4?")
        press(page, "8")  # a digit goes to the answer by itself
        press(page, "Control+Enter")
        expect(question).to_have_text("What is 5 + 5?")
        press(page, "1")
        page.keyboard.type("0")
        press(page, "Control+Enter")
        expect(page.get_by_text("You have done everything you are eligible for")).to_be_visible()

    assert site.answers() == [("2", "", 2), ("", "ill_posed", 1), ("3", "", 3), ("8", "", 1), ("10", "", 1)]
    assert site.shell.rows("SELECT note FROM labeling_flag") == [("as the one before",)]
    assert [each for each in complaints if "status of 4" not in each] == []


def test_the_whole_flow_by_keyboard_without_javascript(site: Site) -> None:
    with open_browser() as browser:
        page = new_window(browser, address=site.address, complaints=[], javascript=False)
        question = page.locator(".question.large")
        open_first_question(page)

        def press(name: str) -> None:
            tab_to(page, name)
            page.keyboard.press("Enter")

        # typed, saved, looked at as a grader reads it; the guideline is read meanwhile
        tab_to(page, "Your answer")
        page.keyboard.type(r"\frac{4}{2}")
        press("Save, and see how it is read")
        expect(page.locator("#read-as code")).to_have_text("2")
        press("Guideline")
        press("I have read version 1")
        expect(page.locator("#guideline .dot")).to_have_count(0)
        expect(page.locator("#id_answer")).to_have_value(r"\frac{4}{2}")

        # the session ends: the login page leads back, and the typed text is there
        tab_to(page, "Your answer")
        page.keyboard.press("Control+a")
        page.keyboard.type("2")
        site.shell.run(
            "shell", "-c", "from django.contrib.sessions.models import Session; Session.objects.all().delete()"
        )
        press("Submit and next")
        expect(page.get_by_text("Your session had ended")).to_be_visible()
        log_in(page)
        expect(question).to_have_text("What is 1 + 1?")
        expect(page.locator("#id_answer")).to_have_value("2")
        assert site.answers() == []

        # submitted, undone, submitted again
        press("Submit and next")
        expect(question).to_have_text("What is 2 + 2?")
        press("Undo")
        expect(question).to_have_text("What is 1 + 1?")
        press("Submit and next")

        # one that cannot be answered; a skip, taken back and done again
        expect(question).to_have_text("What is 2 + 2?")
        press("It cannot be answered")
        tab_to(page, "Why")
        page.keyboard.type("Ill")
        press("Submit as unanswerable")
        expect(question).to_have_text("What is 3 + 3?")
        press("^Skip$")
        expect(question).to_have_text("What is 4 + 4?")
        press("Undo")
        expect(question).to_have_text("What is 3 + 3?")
        press("^Skip$")
        expect(question).to_have_text("What is 4 + 4?")

        # a flag leaves what is typed; a warning that was not seen comes before the answer is taken
        tab_to(page, "Your answer")
        page.keyboard.type("8 apples")
        press("Flag for a manager")
        tab_to(page, "What should a manager look at")
        page.keyboard.type("odd")
        press("Send the flag")
        expect(page.get_by_text("Flagged.")).to_be_visible()
        expect(page.locator("#id_answer")).to_have_value("8 apples")
        tab_to(page, "Your answer")
        page.keyboard.press("Control+a")
        page.keyboard.type("8 cm")
        press("Submit and next")
        expect(page.get_by_text("Not submitted yet")).to_be_visible()
        expect(page.get_by_text("Carries the unit cm")).to_be_visible()
        press("Submit and next")
        expect(question).to_have_text("What is 5 + 5?")

        # a revision
        press("Your last")
        press("Revise")
        tab_to(page, "Your answer")
        page.keyboard.press("Control+a")
        page.keyboard.type("8")
        tab_to(page, "Why you change it")
        page.keyboard.type("no unit was asked for")
        press("Submit version 2")
        expect(page.get_by_text("2: no unit was asked for")).to_be_visible()

    assert site.answers() == [("2", "", 2), ("", "ill_posed", 1), ("8 cm", "", 1), ("8", "", 2)]
    assert site.shell.rows("SELECT note FROM labeling_flag") == [("odd",)]


def test_a_server_killed_between_keystroke_and_submit_loses_nothing(site: Site) -> None:
    with open_browser() as browser:
        page = new_window(browser, address=site.address, complaints=[])
        open_first_question(page)
        page.keyboard.type("2")
        expect(page.locator("#draft-status")).to_contain_text(re.compile(r"Saved \d\d:"))

        site.kill()
        page.locator("#id_answer").press_sequentially("0", delay=5)
        expect(page.locator("#draft-status")).to_contain_text("kept on this device")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Nothing is lost")).to_be_visible()
        expect(page.locator("#id_answer")).to_have_value("20")
        assert site.answers() == []

        site.start()
        expect(page.locator("#draft-status")).to_contain_text(re.compile(r"Saved \d\d:"))  # by itself
        page.reload()
        expect(page.locator("#id_answer")).to_have_value("20")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".question.large")).to_have_text("What is 2 + 2?")

    assert site.answers() == [("20", "", 1)]


def test_a_server_killed_while_it_answers_a_submission_has_it_once(site: Site) -> None:
    with open_browser() as browser:
        page = new_window(browser, address=site.address, complaints=[])
        open_first_question(page)
        page.keyboard.type("2")
        page.route("**/submit/", lambda route: (route.fetch(), site.kill(), route.abort()), times=1)
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Nothing is lost")).to_be_visible()
        assert site.answers() == [("2", "", 1)]

        site.start()
        time.sleep(0.1)
        page.keyboard.press("Control+Enter")
        expect(page.locator(".question.large")).to_have_text("What is 2 + 2?")

    assert site.answers() == [("2", "", 1)]
