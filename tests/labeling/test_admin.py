"""The back office shows every record to staff, and no secret to anybody."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from labeling.actions.curricula import create_curriculum
from labeling.actions.tokens import create_token
from labeling.models import ApiToken, Comparison
from tests import factories

REGISTERED = [model for model in admin.site._registry if model._meta.app_label == "labeling"]


@pytest.fixture
def staff(db):
    user = factories.make_user(username="root", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def records(db):
    manager = factories.make_user(username="mira")
    pool = factories.make_pool(manager=manager)
    snapshot = factories.make_snapshot(pool=pool, n_rows=2)
    curriculum = create_curriculum(pool=pool, snapshot=snapshot, kind="mopps", name="run", by=manager)
    token, _ = create_token(pool=pool, name="cluster", by=manager)
    run = factories.make_run(pool=pool, questions=[factories.make_question(pool=pool)])
    comparison = Comparison.objects.create(run=run, strategies=["entropy"], budget=1, n_bootstrap=0)
    return [curriculum, token, comparison]


@pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)
def test_every_list_opens(model, staff, records):
    response = staff.get(reverse(f"admin:labeling_{model._meta.model_name}_changelist"))

    assert response.status_code == 200


def test_a_token_a_curriculum_and_a_comparison_can_be_looked_at_and_not_changed(staff, records):
    for record in records:
        address = reverse(f"admin:labeling_{record._meta.model_name}_change", args=[record.pk])

        assert staff.get(address).status_code == 200
        assert staff.post(address, {}).status_code == 403


def test_the_hash_of_a_token_is_not_shown(staff, records):
    token = ApiToken.objects.get()

    page = staff.get(reverse("admin:labeling_apitoken_change", args=[token.pk])).content.decode()

    assert token.hint in page
    assert token.token_sha256 not in page
