"""A curriculum over six labeled questions, and a trainer's way to it."""

import json

import pytest
from django.core.cache import cache
from django.test import Client

from labeling.actions.curricula import create_curriculum
from labeling.actions.tokens import create_token
from labeling.models import ApiToken
from tests import factories


class Api:
    """A program with a token."""

    def __init__(self, user, *scopes, pool=None):
        _, token = create_token(name="program", by=user, pool=pool, scopes=scopes or ApiToken.Scope.values)
        self.client = Client(headers={"Authorization": f"Bearer {token}"})

    def get(self, path, status=200, **query):
        response = self.client.get(f"/api/v1/{path}", query)
        assert response.status_code == status, response.content
        return response.json()

    def post(self, path, body=None, status=200, key=None, **query):
        headers = {"Idempotency-Key": key} if key else {}
        response = self.client.post(
            f"/api/v1/{path}", json.dumps(body or {}), content_type="application/json", headers=headers
        )
        assert response.status_code == status, response.content
        return response.json()

    def upload(self, path, content, status=201):
        response = self.client.post(f"/api/v1/{path}", content, content_type="application/octet-stream")
        assert response.status_code == status, response.content
        return response.json()


@pytest.fixture(autouse=True)
def _nobody_has_asked_before():
    cache.clear()  # the counts of throttles


@pytest.fixture
def manager(db):
    return factories.make_user(username="mira")


@pytest.fixture
def pool(manager):
    return factories.make_pool(name="Sums", slug="sums", manager=manager)


@pytest.fixture
def curriculum(pool, manager):
    snapshot = factories.make_snapshot(pool=pool, n_rows=6)
    return create_curriculum(pool=pool, snapshot=snapshot, kind="mopps", name="run 1", by=manager)


@pytest.fixture
def trainer(pool, manager):
    """A client that shows a token of the pool."""
    _, token = create_token(pool=pool, name="the cluster", by=manager)
    return Client(headers={"Authorization": f"Bearer {token}"})
