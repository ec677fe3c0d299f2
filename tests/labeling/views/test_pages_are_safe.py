"""What every page must be: no inline code, hostile text as text, the same number of queries however many rows."""

import re
from html.parser import HTMLParser

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models import AnswerKind
from tests import factories
from tests.labeling.views.conftest import HOSTILE, make_finished_run
from tests.labeling.views.test_access import ADDRESSES, url_of, whoever_may

PAGES = [
    name
    for name, (_, methods) in ADDRESSES.items()
    if "GET" in methods
    and name
    not in {
        "comparison-json",
        "comparison-progress",
        "export-file",
        "practice",
        "run-progress",
        "run-scores",
        "slot-revise",
    }
]


class Inline(HTMLParser):
    """Collects what a strict Content-Security-Policy refuses, and elements that only hostile text could have made."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        if tag == "style" or (tag == "script" and "src" not in names) or tag in {"img", "iframe", "object", "embed"}:
            self.found.append(f"<{tag}>")
        self.found += [name for name, value in attributes if name == "style" or name.startswith(("on", "hx-on"))]
        self.found += [value for _, value in attributes if re.match(r"\s*(javascript|js):", value or "", re.I)]


@pytest.mark.parametrize("text_format", ["plain", "markdown"])
def test_no_inline_code_and_hostile_text_stays_text(text_format, world, request, login):
    world.pool.text_format = text_format
    world.pool.save()

    for name in PAGES:
        response = login(whoever_may(name, request)).get(url_of(name, world))
        inline = Inline()
        inline.feed(response.content.decode())

        assert response.status_code == 200, name
        assert inline.found == [], name
        policy = response["Content-Security-Policy"]
        assert "script-src 'self';" in f"{policy};"
        assert "unsafe" not in policy


def test_hostile_text_is_shown(world, request, login):
    for name in ["slot", "adjudication", "run", "pool-questions", "import-preview", "round"]:
        html = login(whoever_may(name, request)).get(url_of(name, world)).content.decode()

        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html, name
        assert HOSTILE not in html, name


def add_rows(world, n):
    for _ in range(n):
        user = factories.make_user(pool=world.pool, roles=("annotator",))
        factories.make_calibration_set(pool=world.pool, n_items=1)
        factories.make_policy_model()
        factories.make_budget(pool=world.pool)
        factories.make_run(pool=world.pool, generation_fingerprint="e" * 64, status="failed")
        factories.make_round(pool=world.pool, run=make_finished_run(pool=world.pool))
        assert user is not None


LISTS = [
    "home",
    "pool",
    "pool-questions",
    "pool-people",
    "pool-runs",
    "models",
    "calibration-sets",
    "pool-export",
    "pool-variance",
    "set-variance",
]


@pytest.mark.parametrize("name", LISTS)
def test_the_number_of_queries_does_not_grow_with_the_rows(
    name, world, manager, login, django_assert_max_num_queries, django_assert_num_queries
):
    client, url = login(manager), reverse(name, kwargs=world.kwargs.get(name))
    add_rows(world, 1)
    with django_assert_max_num_queries(40) as few:
        client.get(url)

    add_rows(world, 19)

    with django_assert_num_queries(len(few.captured_queries)):
        assert client.get(url).status_code == 200


@pytest.mark.parametrize("name", ["run", "round"])
def test_a_big_run_takes_as_many_queries_as_a_small_one(name, pool, manager, login, django_assert_num_queries):
    client, counts = login(manager), []
    for n_picks in (1, 20):
        run = make_finished_run(pool=pool, n_picks=n_picks)
        round = factories.make_round(run=run)
        url = reverse("run", args=[run.pk]) if name == "run" else reverse("round", args=[round.pk])
        with django_assert_num_queries(counts[0]) if counts else CaptureQueriesContext(connection) as captured:
            assert client.get(url).status_code == 200
        counts.append(len(captured.captured_queries))


def test_a_calibration_answer_is_on_no_page(world, manager, annotator, login):
    factories.make_calibration_item(
        calibration_set=factories.make_calibration_set(pool=world.pool, name="Sealed"), answer="ANSWER-NOBODY-SEES"
    )
    for user in (manager, annotator):
        client = login(user)
        for name in PAGES:
            assert b"ANSWER-NOBODY-SEES" not in client.get(url_of(name, world)).content


def test_an_annotator_sees_no_model_answer_no_score_and_nobody_elses_answer(world, annotator, other_annotator, login):
    pick = world.run.picks.get(question=world.held.question)
    pick.prediction_set = [{"answer": "MODEL-ANSWER", "frequency": 0.731}]
    pick.save()
    client = login(annotator)

    for name in ("home", "pool", "round", "slot", "pool-guideline"):
        html = client.get(reverse(name, kwargs=world.kwargs.get(name))).content.decode()
        for secret in ("MODEL-ANSWER", "73.1", "plausible", "13 &lt;script", str(other_annotator)):
            assert secret not in html, (name, secret)


def test_the_kinds_of_answers_are_said_on_the_page(world, annotator, login):
    html = login(annotator).get(reverse("slot", args=[world.held.pk])).content.decode()

    assert f'<span class="chip">{AnswerKind(world.held.question.answer_kind).label}</span>' in html
