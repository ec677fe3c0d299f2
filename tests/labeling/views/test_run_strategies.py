"""The page that starts a run tells what each strategy needs and costs; the page of a run does without calibration."""

import pytest
from django.urls import reverse

from labeling.engine.selection import strategies, strategy_card
from labeling.models import SelectionRun
from tests import factories
from tests.labeling.runs.conftest import run_to_its_end
from tests.labeling.views.test_runs import settings_of_run


@pytest.fixture
def filled(pool):
    for number in range(10):
        factories.make_question(pool=pool, text=f"What is {number} + {number}?", metadata={"cluster": number % 2})
    return pool


def test_every_strategy_is_shown_with_what_it_needs_and_costs(filled, manager, login):
    html = login(manager).get(reverse("run-new", args=[filled.slug])).content.decode()

    for key in strategies():
        card = strategy_card(key)
        assert f'value="{key}"' in html
        assert card.cost in html
    n_reconstructions = sum(strategy_card(key).is_reconstruction for key in strategies())
    assert html.count("Reconstruction. Needs") == n_reconstructions > 0
    assert html.count("Published. Needs") == len(strategies()) - n_reconstructions
    assert "Needs nothing. Costs no answers." in html


def test_costs_are_said_in_words():
    assert strategy_card("const").cost == "20 full answers, 1 chain of thought, 20 forced answers"
    assert strategy_card("shift").cost == "1 chain of thought, 1 pass over it"
    assert strategy_card("random").cost == ""
    assert strategy_card("scf").needs == ["all of the model’s answers"]
    assert strategy_card("cec").needs == ["all of the model’s answers", "embeddings"]
    assert strategy_card("v1").needs == ["embeddings or given clusters"]
    assert strategy_card("shift").needs == ["hidden states", "a model on the worker’s machine"]


def test_without_a_model_a_strategy_that_needs_none_is_started(filled, manager, login):
    client = login(manager)

    client.post(
        reverse("run-new", args=[filled.slug]),
        settings_of_run(client, filled, answers_from="none", strategy="random", budget=4, control_share="0.25"),
    )

    run = SelectionRun.objects.get()
    assert (run.calibration_set, run.policy_model, run.generation_fingerprint) == (None, None, "")
    assert (run.config["strategy"], run.config["control_share"]) == ("random", "0.25")


def test_a_strategy_without_what_it_needs_comes_back_with_the_reason(filled, manager, login):
    client = login(manager)

    response = client.post(
        reverse("run-new", args=[filled.slug]),
        settings_of_run(client, filled, answers_from="none", strategy="entropy", budget=4),
    )

    assert response.status_code == 422
    assert "reads the model&#x27;s answers" in response.content.decode()
    assert response.context["form"]["strategy"].value() == "entropy"


def test_a_run_without_calibration_shows_its_picks_and_no_threshold(filled, manager, login):
    client = login(manager)
    asked = settings_of_run(
        client, filled, answers_from="none", strategy="v1", budget=4, embedder="", control_share="0.25"
    )
    client.post(reverse("run-new", args=[filled.slug]), asked)
    run = run_to_its_end(SelectionRun.objects.get())

    html = client.get(reverse("run", args=[run.pk])).content.decode()

    for shown in (
        "4 questions picked",
        "not calibrated",
        "nothing was calibrated",
        "chance of 0.1000",
        "Control</span>",
    ):
        assert shown in html, shown
    for hidden in ("Sizes of prediction sets", "plausible</span>", "Smallest attainable alpha", "Prediction set, with"):
        assert hidden not in html, hidden


def test_a_finished_run_is_gone_on_from_by_a_link(filled, manager, login):
    first = factories.make_run(pool=filled, questions=list(filled.questions.all()[:3]))
    client = login(manager)
    link = f"{reverse('run-new', args=[filled.slug])}?continues={first.pk}"

    assert link in client.get(reverse("run", args=[first.pk])).content.decode()
    form = client.get(link).context["form"]
    assert f"Run {first.pk}, 3 picked" in str(form["continues"])
    asked = {field.name: field.value() for field in form if field.value() is not None}
    client.post(link, {**asked, "answers_from": "none", "strategy": "random", "budget": 4})

    second = SelectionRun.objects.exclude(pk=first.pk).get()
    assert second.continues == first
    assert "going on from" in client.get(reverse("run", args=[second.pk])).content.decode()
