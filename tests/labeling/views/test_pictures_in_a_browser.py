"""The pictures in a real browser: read with the keyboard, said in a live region, and saved as files."""

from pathlib import Path

import pytest
from django.urls import reverse

from labeling.models import RecordedVotes
from tests import factories
from tests.journeys.browser import new_window, open_browser

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
CONFIG = {"strategy": "const", "alpha": "0.1", "budget": 2, "lam": 0.02, "n_probes": 4, "n_outcomes": 4}
REPORT = {
    "calibration": {"n": 40, "n_absent": 2, "smallest_attainable_alpha": 0.07},
    "set_size_histogram": {"1": 3, "2": 1},
    "curve": {
        "alphas": [
            {"alpha": a / 10, "q_hat": -a / 10, "coverage": 1 - a / 10, "band": [0.4, 1.0], "mean_set_size": 3 - a / 2}
            for a in (1, 2, 3)
        ],
        "scores": [{"from": -0.1, "to": -0.05, "n": 7}],
    },
}


@pytest.fixture(scope="module")
def browser():
    with pytest.MonkeyPatch.context() as environment, open_browser() as browser:
        environment.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright runs an event loop in this thread
        yield browser


@pytest.fixture
def run(pool):
    """Four questions in a square on the map, the lower left one picked; q3 is above it, q2 to its right."""
    run = factories.make_run(pool=pool, generation_fingerprint="f" * 64, config=CONFIG, report=REPORT, q_hat=-0.2)
    texts = ["Question number 1?", "Question number 2?", "Question number 3?", "=4+4"]
    questions = [factories.make_question(pool=pool, uid=f"q{i}", text=text) for i, text in enumerate(texts, 1)]
    for question, (x, y, size) in zip(questions, [(-1, 0, 1), (0, 0, 1), (-1, 1, 1), (0, 1, 2)], strict=True):
        factories.make_score(run=run, question=question, set_size=size, cluster=x + 1, x=float(x), y=float(y))
    factories.make_pick(run=run, question=questions[0], rank=1, cluster=0)
    RecordedVotes.objects.create(
        question_fingerprint=questions[0].fingerprint,
        question_uid="q1",
        generation_fingerprint="f" * 64,
        votes={"id": "q1", "probe_answers": ["7", "8", "8", ""], "outcome_answers": ["8", "8", "8", "9"]},
    )
    return run


def window(browser, live_server, manager, login, complaints, **options):
    page = new_window(browser, address=live_server.url, complaints=complaints, **options)
    session = login(manager).cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    return page


@pytest.fixture
def page(browser, live_server, manager, login):
    complaints: list[str] = []
    page = window(browser, live_server, manager, login, complaints)
    yield page
    page.context.close()
    assert complaints == []


def picture(page, kind):
    figure = page.locator(f'figure[data-chart="{kind}"]')
    figure.locator("canvas").wait_for()
    return figure


def said(figure):
    return figure.get_by_role("status").text_content()


def test_arrow_keys_go_through_bars_and_the_focused_one_is_said(page, run):
    page.goto(reverse("run", args=[run.pk]))
    figure = picture(page, "histogram")

    figure.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    assert said(figure) == "3 questions with 1 plausible answer (1 of 2)"
    page.keyboard.press("ArrowRight")
    assert said(figure) == "1 question with 2 plausible answers. 1 of them picked (2 of 2)"
    page.keyboard.press("ArrowRight")
    assert "(2 of 2)" in said(figure)
    page.keyboard.press("Home")
    assert "(1 of 2)" in said(figure)


def test_arrow_keys_go_to_the_neighbour_on_the_map_and_enter_opens_it(page, run):
    page.goto(reverse("run", args=[run.pk]))
    figure = picture(page, "map")

    figure.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    assert said(figure).startswith("Pick 1. 1 plausible answer, cluster 0. Question number 1?")
    page.keyboard.press("ArrowRight")
    assert said(figure).startswith("q2.")
    page.keyboard.press("ArrowUp")
    assert said(figure).startswith("q4. 2 plausible answers, cluster 1")
    page.keyboard.press("PageDown")
    assert said(figure).startswith("Pick 1.")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{reverse('run-question', args=[run.pk, run.picks.get().question_id])}")

    chain = picture(page, "chain")
    chain.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    assert said(chain).startswith("cut 1 of 4, 25% of the chain: 7, not plausible")


def test_coverage_says_every_figure_of_an_alpha(page, run):
    page.goto(reverse("run", args=[run.pk]))
    figure = picture(page, "coverage")

    figure.get_by_role("application").focus()
    page.keyboard.press("End")

    for words in ("alpha 0.3", "wanted, %: 70", "covered, %: 70.0", "mean set size: 1.50", "(3 of 3)"):
        assert words in said(figure)


def test_the_legend_hides_and_the_colour_changes_without_a_mouse(page, run):
    page.goto(reverse("run", args=[run.pk]))
    figure = picture(page, "map")
    of_size_two = figure.get_by_role("button", name="2", exact=True)

    of_size_two.press("Enter")
    assert of_size_two.get_attribute("aria-pressed") == "false"
    figure.get_by_role("application").focus()
    page.keyboard.press("End")
    assert said(figure).endswith("(3 of 3)")

    figure.get_by_role("button", name="Cluster", exact=True).press("Space")
    assert figure.get_by_role("button", name="Cluster 1").get_attribute("aria-pressed") == "true"


def test_picture_and_numbers_are_saved_as_files(page, run):
    page.goto(reverse("run", args=[run.pk]))
    saved = {}
    for kind in ("PNG", "SVG", "CSV"):
        with page.expect_download() as download:
            picture(page, "map").get_by_role("button", name=f"as {kind}").click()
        assert download.value.suggested_filename == f"run-{run.pk}-map.{kind.lower()}"
        saved[kind] = Path(download.value.path()).read_bytes()

    assert saved["PNG"].startswith(b"\x89PNG")
    assert len(saved["PNG"]) > 2000
    assert saved["SVG"].startswith(b"<svg")
    assert b"Picks" in saved["SVG"]  # the legend
    head, *rows = saved["CSV"].decode("utf-8-sig").split("\r\n")
    assert head == "Id,Question,Set size,Cluster,Rank,x,y"
    assert rows[0] == "q1,Question number 1?,1,0,1,-1.0000,0.0000"
    assert rows[3] == "q4,'=4+4,2,1,,0.0000,1.0000"  # nothing that a spreadsheet would compute
    assert len(rows) == 4


def test_without_javascript_the_tables_say_the_same(browser, live_server, manager, login, run):
    page = window(browser, live_server, manager, login, [], javascript=False)
    page.goto(reverse("run", args=[run.pk]))
    figure = page.locator('figure[data-chart="map"]')

    assert not figure.locator(".chart").is_visible()
    figure.get_by_text("As a table").click()
    assert figure.get_by_role("link", name="q4").is_visible()
    page.context.close()
