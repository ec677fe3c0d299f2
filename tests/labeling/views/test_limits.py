"""Numbers and texts without measure are refused where they are typed and where they are used, and by the same limit."""

import uuid

import pytest
from django import forms as django_forms
from django.urls import reverse

from labeling import forms
from labeling.actions.budgets import MOST_UNITS, add_units
from labeling.actions.policy_models import create_policy_model
from labeling.actions.rounds import open_round
from labeling.api.browsing import the_schema
from labeling.errors import LabelingError
from labeling.forms.comparisons import ComparisonForm
from labeling.models import Annotation
from tests import factories

HUGE = 10**21
FORMS = [*(getattr(forms, name) for name in forms.__all__), ComparisonForm]
FIELDS = [(form.__name__, name, field) for form in FORMS for name, field in form.base_fields.items()]
WHOLE = [each for each in FIELDS if type(each[2]) is django_forms.IntegerField]
TEXTS = [each for each in FIELDS if type(each[2]) is django_forms.CharField and each[0] != "LoginForm"]


@pytest.mark.parametrize(("form", "name", "field"), WHOLE, ids=[f"{form}.{name}" for form, name, _ in WHOLE])
def test_every_whole_number_of_a_form_has_a_largest(form, name, field):
    assert field.max_value is not None
    assert field.max_value < 2**53


@pytest.mark.parametrize(("form", "name", "field"), TEXTS, ids=[f"{form}.{name}" for form, name, _ in TEXTS])
def test_every_text_of_a_form_has_a_longest(form, name, field):
    assert field.max_length is not None


def test_every_whole_number_of_the_api_has_a_largest():
    schema, without = the_schema(), []
    for path, methods in schema["paths"].items():
        for method, described in methods.items():
            asked = {each["name"]: each["schema"] for each in described.get("parameters", []) if each["in"] == "query"}
            body = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            name = body.get("$ref", "").rpartition("/")[2]
            asked |= schema["components"]["schemas"].get(name, {}).get("properties", {})
            without += [
                (method, path, field)
                for field, found in asked.items()
                if found.get("type") == "integer" and "maximum" not in found and field != "page"
            ]

    assert without == []


def test_numbers_without_measure_are_refused_on_the_page(pool, manager, login):
    client = login(manager)
    budget, run = factories.make_budget(pool=pool), factories.make_run(pool=pool, n_picks=1)
    model = {"name": "m", "engine": "transformers", "model": "x", "max_tokens": HUGE, "probe_max_tokens": HUGE}
    whole = ("budget", "question_limit", "n_outcomes", "n_probes", "n_clusters", "per_cluster", "seed")

    for address, data, status in (
        (reverse("model-new"), model, 422),
        (reverse("run-new", args=[pool.slug]), dict.fromkeys(whole, HUGE), 422),
        (reverse("comparison-new", args=[pool.slug]), {"budget": HUGE, "n_bootstrap": HUGE}, 422),
        (reverse("curriculum-new", args=[pool.slug]), {"name": "x", "seed": HUGE}, 422),
        (reverse("budget-new", args=[pool.slug]), {"name": "x", "units": HUGE}, 422),
        (reverse("budget-add", args=[budget.pk]), {"units": HUGE, "granted_before": HUGE}, 400),
        (reverse("round-new", args=[run.pk]), {"budget": HUGE, "overlap": HUGE}, 422),
    ):
        assert client.post(address, data).status_code == status, address


def test_numbers_without_measure_in_an_address_are_not_found(pool, manager, login):
    client = login(manager)

    for name in ("run", "round", "slot", "adjudication", "comparison", "curriculum", "set-variance"):
        assert client.get(reverse(name, args=[HUGE])).status_code == 404, name
    assert client.post(reverse("budget-add", args=[HUGE]), {"units": 1}).status_code == 404
    assert client.post(reverse("invitation-revoke", args=[HUGE])).status_code == 404
    for query in (f"page={HUGE}", f"page={'9' * 5000}", f"run={HUGE}"):
        for name in ("pool-questions", "pool-runs", "pool-variance", "comparison-new"):
            assert client.get(f"{reverse(name, args=[pool.slug])}?{query}").status_code in {200, 404}, (
                name,
                query[:20],
            )


def test_the_message_about_units_says_the_limit(pool, manager, login):
    budget = factories.make_budget(pool=pool)

    page = login(manager).post(reverse("budget-add", args=[budget.pk]), {"units": 2_000_000, "granted_before": 10})

    assert f"between 1 and {MOST_UNITS:,}" in page.content.decode()


def test_the_rules_themselves_refuse_numbers_without_measure(pool, manager):
    budget, run = factories.make_budget(pool=pool), factories.make_run(pool=pool, n_picks=1)

    for attempt in (
        lambda: create_policy_model(name="m", engine="transformers", model="x", max_tokens=HUGE, by=None),
        lambda: add_units(budget=budget, units=HUGE, by=None),
        lambda: open_round(run=run, budget=budget, overlap=HUGE, by=None),
    ):
        with pytest.raises(LabelingError):
            attempt()


def test_an_answer_at_the_limit_is_taken_and_one_past_it_is_sent_back(pool, annotator, login):
    round = factories.make_round(pool=pool)
    client, slot = login(annotator), factories.make_held_slot(round=round, user=annotator)
    about = {"idempotency_key": str(uuid.uuid4()), "confirm_unreadable": "on", "note": "n" * 20_000}
    address = reverse("slot-submit", args=[slot.pk])

    assert client.post(address, {**about, "answer": "7" * 10_001}).status_code == 422
    assert client.post(address, {**about, "answer": "7" * 10_000}).status_code == 302
    assert len(Annotation.objects.get().note) == 20_000
