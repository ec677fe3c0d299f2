"""A run looked at closely: one question's votes, the file of scores, and two runs side by side."""

import csv
import io

import pytest
from django.urls import reverse

from labeling.models import RecordedVotes
from tests import factories
from tests.labeling.views.conftest import HOSTILE, make_finished_run

CONFIG = {"strategy": "const", "alpha": "0.1", "budget": 2, "lam": 0.02, "n_probes": 2, "n_outcomes": 2}


@pytest.fixture
def run(pool):
    run = make_finished_run(pool=pool, n_picks=3)
    run.config = CONFIG
    run.save()
    return run


def url_of(run, question):
    return reverse("run-question", args=[run.pk, question.pk])


def record(question, run, probes, outcomes):
    RecordedVotes.objects.create(
        question_fingerprint=question.fingerprint,
        question_uid=question.uid,
        generation_fingerprint=run.generation_fingerprint,
        votes={"id": question.uid, "probe_answers": probes, "outcome_answers": outcomes},
    )


def test_a_questions_votes_are_shown_along_its_chain_and_as_sampled(run, manager, login):
    question = run.picks.get(rank=2).question
    record(question, run, ["3", HOSTILE], ["3.0", ""])

    html = login(manager).get(url_of(run, question)).content.decode()

    assert '<th scope="row">3</th><td>yes</td><td class="number">50.0%</td>' in html
    assert '<th scope="row">unread</th><td>–</td>' in html
    assert 'data-cuts="2"' in html
    assert HOSTILE not in html
    assert url_of(run, run.picks.get(rank=1).question) in html
    assert url_of(run, run.picks.get(rank=3).question) in html


def test_a_question_without_stored_answers_says_so(run, manager, login):
    html = login(manager).get(url_of(run, run.picks.get(rank=1).question)).content.decode()

    assert "not stored here" in html


def test_a_question_that_the_run_did_not_look_at_is_not_found(run, pool, manager, login):
    elsewhere = make_finished_run(pool=factories.make_pool())
    client = login(manager)

    assert client.get(url_of(run, factories.make_question(pool=pool))).status_code == 404
    assert client.get(url_of(run, elsewhere.picks.get().question)).status_code == 404
    assert client.get(url_of(elsewhere, elsewhere.picks.get().question)).status_code == 404


def test_the_file_of_scores_computes_nothing_in_a_spreadsheet(run, pool, manager, login):
    question = factories.make_question(pool=pool, text="=HYPERLINK(1)", uid="-danger")
    factories.make_score(run=run, question=question, x=-0.5, y=0.5)

    response = login(manager).get(reverse("run-scores", args=[run.pk]))
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))

    assert "attachment" in response["Content-Disposition"]
    assert [row["rank"] for row in rows] == ["1", "2", "3", ""]
    assert (rows[-1]["question"], rows[-1]["id"], rows[-1]["x"]) == ("'=HYPERLINK(1)", "'-danger", "-0.5")


def test_two_runs_are_chosen_on_the_list_and_the_page_can_be_bookmarked(run, pool, manager, login):
    other = make_finished_run(pool=pool, n_picks=2)
    factories.make_run(pool=pool, status="failed")
    client = login(manager)

    listed = client.get(reverse("pool-runs", args=[pool.slug])).content.decode()
    page = client.get(reverse("run-pair", args=[pool.slug]), {"run": [run.pk, other.pk]})

    assert listed.count('<input type="checkbox" name="run"') == 2
    assert page.status_code == 200
    html = page.content.decode()
    assert f"Run {run.pk} and run {other.pk}" in html
    assert page.context["pair"].n_only_first == 3
    assert "not among its questions" in html
    assert HOSTILE not in html


@pytest.mark.parametrize("asked", [["1000"], ["nonsense"], ["twice", "twice"], ["own", "foreign"], ["own"], []])
def test_without_two_runs_of_the_pool_there_is_the_choice(asked, run, pool, manager, login):
    foreign = make_finished_run(pool=factories.make_pool())
    make_finished_run(pool=pool)
    named = {"own": run.pk, "twice": run.pk, "foreign": foreign.pk}

    page = login(manager).get(reverse("run-pair", args=[pool.slug]), {"run": [named.get(each, each) for each in asked]})

    assert page.status_code == (404 if asked and not {"own", "twice"} & set(asked) else 200)
    assert "pair" not in page.context
    assert page.content.decode().count('<select id="run-') == 2


def test_a_pool_with_one_run_says_that_two_are_needed(run, pool, manager, login):
    html = login(manager).get(reverse("run-pair", args=[pool.slug])).content.decode()

    assert "only one finished run" in html


@pytest.mark.parametrize("name", ["run", "run-pair", "run-question"])
def test_the_number_of_queries_does_not_grow_with_the_pool(name, pool, manager, login, django_assert_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client, counts = login(manager), []
    for n in (2, 40):
        run, other = (make_finished_run(pool=pool, n_picks=n) for _ in range(2))
        url = {
            "run": reverse("run", args=[run.pk]),
            "run-pair": reverse("run-pair", args=[pool.slug]) + f"?run={run.pk}&run={other.pk}",
            "run-question": url_of(run, run.picks.get(rank=2).question),
        }[name]
        with django_assert_num_queries(counts[0]) if counts else CaptureQueriesContext(connection) as captured:
            assert client.get(url).status_code == 200
        counts.append(len(captured.captured_queries))
