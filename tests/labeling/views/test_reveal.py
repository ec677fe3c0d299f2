"""The page of a reveal: only one's own, only once the answer is stored, and what is sent from it; in a browser too."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.reveals import reveal_after
from labeling.models import Annotation, ModelAnswers, Reveal, RevealDecision, Slot
from tests import factories
from tests.conftest import skip_or_fail
from tests.labeling.views.conftest import HX

HOSTILE = r"<img src=x onerror=alert(1)> \href{javascript:alert(3)}{x}"
CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
KEPT = "Object.keys(localStorage).filter((key) => key.startsWith('assay-draft-')).length"


@pytest.fixture
def round(pool):
    round = factories.make_round(pool=pool, n_questions=2, control_share=0)
    for slot in round.slots.select_related("question"):
        ModelAnswers.objects.create(
            run=round.run, question_fingerprint=slot.question.fingerprint, answers=[r"\frac{1}{2}", "12", "7", HOSTILE]
        )
    return round


def submit(user, pool, text="12"):
    return submit_annotation(slot=claim_slot(user=user, pool=pool), answer=text, idempotency_key=uuid4(), by=user)


def typed(**fields):
    return {"choice": "keep", "idempotency_key": uuid4(), **fields}


@pytest.fixture
def reveal(round, pool, annotator):
    return reveal_after(submit(annotator, pool))


@pytest.fixture
def url(reveal):
    return reverse("slot-reveal", args=[reveal.annotation.slot_id])


def test_submitting_leads_to_the_reveal_and_deciding_to_the_next_question(round, annotator, login):
    client = login(annotator)
    first = client.post(reverse("annotate", args=[round.pk]))["Location"]
    assert client.get(f"{first}reveal/").status_code == 404

    submitted = client.post(f"{first}submit/", {"answer": "12", "idempotency_key": uuid4()})
    page = client.get(submitted["Location"])
    decided = client.post(submitted["Location"], typed())

    assert submitted["Location"] == f"{first}reveal/"
    assert "the model gives it too" in page.content.decode()
    second = Slot.objects.get(state=Slot.State.LEASED)
    assert decided["Location"] == reverse("slot", args=[second.pk])
    assert RevealDecision.objects.get().outcome == "kept"
    assert "You kept your answer" in client.get(submitted["Location"]).content.decode()


def test_a_reload_shows_the_same_order(url, annotator, login):
    client, pattern = login(annotator), re.compile(r'data-tex="([^"]*)"')

    orders = {tuple(pattern.findall(client.get(url).content.decode())) for _ in range(3)}

    assert len(orders) == 1


def test_it_is_nobody_elses(url, manager, other_annotator, adjudicator, outsider, login):
    for user in (manager, other_annotator, adjudicator, outsider):
        assert login(user).get(url).status_code == 404
        assert login(user).post(url, typed()).status_code == 404
    assert not RevealDecision.objects.exists()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"choice": "0"}, "Say in a few words why"),
        ({"choice": "another", "why": "a slip"}, "Write the answer that is right"),
        ({"choice": "9", "why": "a slip"}, "Choose one of the answers that are shown"),
        ({"choice": ""}, "Choose what your answer is"),
        ({"choice": "another", "answer": "the usual one", "why": "a slip"}, "grader can read"),
    ],
)
def test_a_change_that_is_not_complete_says_what_is_missing_and_changes_nothing(
    fields, said, reveal, url, annotator, login
):
    if fields["choice"] == "0":
        fields = {"choice": str((reveal.own + 1) % len(reveal.answers))}

    page, part = (login(annotator).post(url, typed(**fields), **more) for more in ({}, HX))

    assert (page.status_code, part.status_code) == (422, 422)
    assert said in page.content.decode()
    assert said in part.content.decode()
    assert part.content.decode().strip().startswith("<form")
    assert Annotation.objects.count() == 1


def test_an_unreadable_answer_is_taken_once_it_is_confirmed(url, annotator, login):
    fields = {"choice": "another", "answer": "the usual one", "why": "a slip"}

    assert "confirm_unreadable" in login(annotator).post(url, typed(**fields)).content.decode()
    login(annotator).post(url, typed(**fields, confirm_unreadable="on"))

    assert Annotation.objects.get(version=2).answer == "the usual one"


def test_the_number_of_queries_does_not_grow_with_what_is_shown(round, pool, annotator, login):
    client, counts = login(annotator), []
    for n in (1, 12):
        annotation = submit(annotator, pool)
        Reveal.objects.create(annotation=annotation, answers=[str(i) for i in range(n)])
        url = reverse("slot-reveal", args=[annotation.slot_id])
        with CaptureQueriesContext(connection) as queries:
            client.get(url)
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_in_a_round_that_shows_them_first_they_stand_beside_the_question_marked(round, annotator, login):
    round.blindness = "shown_first"
    round.save()
    client = login(annotator)

    page = client.get(client.post(reverse("annotate", args=[round.pk]))["Location"]).content.decode()

    assert "Answers of a model" in page
    assert 'data-tex="\\frac{1}{2}"' in page
    assert "<img" not in page


def test_a_letter_comes_with_the_choice_that_it_stands_for(pool, annotator, login):
    question = factories.make_question(pool=pool, answer_kind="choice", choices=["the first", "the second"])
    round = factories.make_round(run=factories.make_run(pool=pool, questions=[question]), control_share=0)
    ModelAnswers.objects.create(run=round.run, question_fingerprint=question.fingerprint, answers=["B", "A"])
    annotation = submit(annotator, pool, "A")
    reveal_after(annotation)

    page = login(annotator).get(reverse("slot-reveal", args=[annotation.slot_id])).content.decode()

    assert re.search(r'B <span class="question">the second</span>', page)


# In a browser


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


def open_page(browser, live_server, annotator, login, **options):
    context = browser.new_context(base_url=live_server.url, **options)
    session = login(annotator).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    return page


@pytest.fixture
def page(browser, live_server, annotator, login) -> Iterator:
    page = open_page(browser, live_server, annotator, login)
    yield page
    page.context.close()
    assert [each for each in page.complaints if "422" not in each] == []  # a form that was not complete


def answer_next(page, round, text="12"):
    page.goto(reverse("round", args=[round.pk]))
    page.get_by_role("button", name="Answer the next question").click()
    page.locator("#id_answer").fill(text)


@pytest.mark.engines
@pytest.mark.django_db(transaction=True)
def test_by_keyboard_answer_switch_with_a_reason_answer_and_keep(page, round):
    answer_next(page, round)
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/reveal/$"))
    assert page.evaluate(KEPT) == 0
    assert page.locator("#reveal-form img").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    shown = page.locator("#reveal-form [data-key]")
    half = next(n for n in range(3) if "frac" in shown.nth(n).locator("xpath=..").inner_html())

    page.keyboard.press(str(half + 1))
    page.keyboard.press("Control+Enter")
    page.locator("#id_why_error").wait_for()
    assert page.locator("#reveal-form [data-key]").nth(half).is_checked()
    page.locator("#id_why").press_sequentially("a slip k 1", delay=5)
    assert page.locator("#reveal-form [data-key]").nth(half).is_checked()  # no key works within a field
    page.keyboard.press("Enter")
    assert not RevealDecision.objects.exists()
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/slots/\d+/$"))

    second = Annotation.objects.get(version=2)
    assert (second.answer, second.origin, second.why) == (r"\frac{1}{2}", "after_reveal", "a slip k 1")
    page.locator("#id_answer").fill("99")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/reveal/$"))
    page.keyboard.press("1")
    page.keyboard.press("k")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/rounds/\d+/$"))
    assert list(RevealDecision.objects.order_by("id").values_list("outcome", flat=True)) == ["model", "kept"]


@pytest.mark.engines
@pytest.mark.django_db(transaction=True)
def test_without_javascript(browser, live_server, annotator, login, round):
    page = open_page(browser, live_server, annotator, login, java_script_enabled=False)
    answer_next(page, round)
    page.get_by_role("button", name="Submit and next").click()
    page.locator("#another").check()
    page.get_by_role("button", name="Save and next").click()
    page.locator("#id_answer_error").wait_for()
    page.locator("#id_answer").fill("33")
    page.locator("#id_why").fill("I had missed a case")
    page.get_by_role("button", name="Save and next").click()
    page.wait_for_url(re.compile(r"/slots/\d+/$"))
    page.context.close()

    decision = RevealDecision.objects.get()
    assert (decision.outcome, decision.annotation.answer, decision.annotation.version) == ("other", "33", 2)
