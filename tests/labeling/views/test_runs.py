"""Runs: asked for with checked settings, watched, cancelled, tried again, and read."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from labeling.models import RecordedVotes, SelectionRun
from tests import factories
from tests.labeling.views.conftest import HX, make_finished_run

Status = SelectionRun.Status


@pytest.fixture
def calibration_set(pool):
    return factories.make_calibration_set(pool=pool, n_items=20)


@pytest.fixture
def model(db):
    return factories.make_policy_model(name="Tiny", engine="transformers", model="assay-tiny")


def settings_of_run(client, pool, **changed):
    """What the form sends when nothing is changed, but for the given fields."""
    form = client.get(reverse("run-new", args=[pool.slug])).context["form"]
    values = {field.name: field.value() for field in form if field.value() is not None}
    return {**values, **changed}


def make_running(pool, model, **fields):
    now = timezone.now()
    stage = {"name": "pool: probes", "done": 40, "total": 100, "done_before": 0, "seconds": 10.0}
    stage["started_at"] = (now - timedelta(seconds=10)).isoformat()
    return factories.make_run(
        pool=pool,
        policy_model=model,
        status=Status.RUNNING,
        stage="pool: probes",
        stages=[stage],
        lease_token="t",
        lease_until=now + timedelta(minutes=1),
        started_at=now,
        **fields,
    )


def test_a_run_is_asked_for_with_the_settings_of_the_form(pool, manager, calibration_set, model, login):
    factories.make_questions(pool=pool, n=10)
    client = login(manager)
    asked = settings_of_run(
        client, pool, answers_from=f"model:{model.pk}", calibration_set=calibration_set.pk, budget=4, alpha="0.2"
    )

    response = client.post(reverse("run-new", args=[pool.slug]), asked)

    run = SelectionRun.objects.get()
    assert response["Location"] == reverse("run", args=[run.pk])
    assert (run.policy_model, run.calibration_set, run.status) == (model, calibration_set, Status.QUEUED)
    assert (run.config["budget"], run.config["alpha"], run.config["strategy"]) == (4, "0.2", "const")


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"alpha": "7"}, "alpha"), ({"budget": 99}, "10 questions"), ({"alpha": "0.001"}, "alpha"), ({"budget": 0}, "1")],
)
def test_settings_that_mean_nothing_come_back_with_the_reason(
    changed, said, pool, manager, calibration_set, model, login
):
    factories.make_questions(pool=pool, n=10)
    client = login(manager)
    asked = settings_of_run(client, pool, answers_from=f"model:{model.pk}", calibration_set=calibration_set.pk)

    response = client.post(reverse("run-new", args=[pool.slug]), asked | changed)

    assert response.status_code == 422
    assert said in response.content.decode()
    assert not SelectionRun.objects.exists()


def test_imported_votes_can_be_chosen_instead_of_a_model(pool, manager, calibration_set, login):
    for each in [*factories.make_questions(pool=pool, n=10), *calibration_set.items.all()]:
        RecordedVotes.objects.create(
            question_fingerprint=each.fingerprint, question_uid=each.uid, generation_fingerprint="abc", votes={}
        )
    client = login(manager)

    client.post(
        reverse("run-new", args=[pool.slug]),
        settings_of_run(client, pool, answers_from="votes:abc", calibration_set=calibration_set.pk),
    )

    assert SelectionRun.objects.get().generation_fingerprint == "abc"


def test_the_demo_model_is_marked_wherever_it_can_be_chosen(pool, manager, calibration_set, model, login):
    factories.make_question(pool=pool)
    client = login(manager)

    assert "Tiny (demo only)" in client.get(reverse("run-new", args=[pool.slug])).content.decode()
    assert "Demo only" in client.get(reverse("models")).content.decode()


@pytest.mark.parametrize("missing", ["questions", "model", "calibration set"])
def test_what_is_missing_for_a_run_is_said(missing, pool, manager, login, request):
    if missing != "questions":
        factories.make_question(pool=pool)
    if missing == "calibration set":
        request.getfixturevalue("model")

    html = login(manager).get(reverse("run-new", args=[pool.slug])).content.decode()

    said = {"questions": "The pool is empty", "model": "nothing to ask", "calibration set": "no calibration set"}
    assert said[missing] in html


def test_progress_says_how_far_how_fast_and_how_long(pool, manager, model, login):
    run = make_running(pool, model)

    html = login(manager).get(reverse("run", args=[run.pk])).content.decode()

    assert "40 of 100" in html
    assert re.search(r"[34]\.\d/s", html)
    assert "left" in html
    assert f'hx-get="{reverse("run-progress", args=[run.pk])}"' in html


def test_polling_gets_the_progress_alone_and_ends_with_the_run(pool, manager, model, login):
    run = make_running(pool, model)
    client, url = login(manager), reverse("run-progress", args=[run.pk])

    part = client.get(url, **HX)
    SelectionRun.objects.filter(pk=run.pk).update(
        status=Status.FAILED, lease_token="", lease_until=None, error="It broke.", error_code="broken"
    )
    ended = client.get(url, **HX)

    assert part.content.decode().strip().startswith('<section id="run-progress"')
    assert ended["HX-Redirect"] == reverse("run", args=[run.pk])
    page = client.get(ended["HX-Redirect"]).content.decode()
    assert "It broke." in page
    assert "hx-trigger" not in page


def test_cancel_and_retry(pool, manager, model, login):
    run, client = make_running(pool, model), login(manager)

    stopping = client.post(reverse("run-cancel", args=[run.pk]), follow=True)
    SelectionRun.objects.filter(pk=run.pk).update(status=Status.CANCELLED, lease_token="", lease_until=None)
    client.post(reverse("run-retry", args=[run.pk]))

    assert "Stopping." in stopping.content.decode()
    run.refresh_from_db()
    assert (run.status, run.cancel_requested) == (Status.QUEUED, False)


def test_retrying_a_finished_run_is_refused(pool, manager, login):
    run = make_finished_run(pool=pool)

    response = login(manager).post(reverse("run-retry", args=[run.pk]))

    assert response.status_code == 409
    assert "only a failed or cancelled run" in response.content.decode()


def test_a_queued_run_that_no_worker_takes_says_so(pool, manager, model, login):
    run = factories.make_run(pool=pool, policy_model=model, status=Status.QUEUED)
    SelectionRun.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(minutes=2))

    assert "No worker has taken the run" in login(manager).get(reverse("run", args=[run.pk])).content.decode()


def test_a_finished_run_shows_threshold_warning_histogram_picks_and_map(pool, manager, login):
    run = make_finished_run(pool=pool, n_picks=2)

    html = login(manager).get(reverse("run", args=[run.pk])).content.decode()

    for shown in (
        "-0.2000",  # the threshold
        "The calibration is degenerate",
        "Every answer ever seen is in the sets.",
        "?alpha=0.15",
        "chosen after seeing the data",
        '<th scope="row">3</th><td class="number">2</td>',  # of the histogram
        "62.5%",
        "3 other questions have the same score in cluster 1",
        "its probes gave more distinct answers",
        '<td class="number">0.1000</td><td class="number">-0.2500</td>',  # of the map
        "2 too few readable answers",
        "90.0%",  # the check of coverage
    ):
        assert shown in html, shown


def test_many_picks_come_in_pages(pool, manager, login):
    questions = factories.make_questions(pool=pool, n=60)
    run = factories.make_run(pool=pool, questions=questions)

    first, second = (login(manager).get(f"/runs/{run.pk}/?page={number}").content.decode() for number in (1, 2))

    assert "60 questions picked" in first
    assert first.count('class="panel pick"') == 50
    assert second.count('class="panel pick"') == 10
    assert 'id="pick-51"' in second


def test_an_infinite_threshold_is_said(pool, manager, login):
    run = make_finished_run(pool=pool)
    SelectionRun.objects.filter(pk=run.pk).update(q_hat=None, q_hat_infinite=True)

    html = login(manager).get(reverse("run", args=[run.pk])).content.decode()

    assert "∞" in html
    assert "The threshold is infinite" in html


def test_a_model_is_added_or_refused_on_the_form(manager, pool, login):
    client = login(manager)
    data = {"name": "M", "engine": "openai", "model": "m", "max_tokens": 10, "probe_max_tokens": 5}

    refused = client.post(reverse("model-new"), data)
    added = client.post(reverse("model-new"), {**data, "base_url": "http://127.0.0.1:1/v1"})

    assert refused.status_code == 422
    assert "the address of a server, such as http" in refused.content.decode()
    assert added["Location"] == reverse("models")
