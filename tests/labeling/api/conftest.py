"""A curriculum over six labeled questions, and a trainer's way to it."""

import pytest
from django.test import Client

from labeling.actions.curricula import create_curriculum
from labeling.actions.tokens import create_token
from tests import factories


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
