"""The fixed cast of the application's tests, all in one pool, and one outsider."""

import pytest

from labeling.models import Pool, Role, User
from tests import factories


@pytest.fixture
def manager(db) -> User:
    return factories.make_user(username="manager")


@pytest.fixture
def pool(manager) -> Pool:
    return factories.make_pool(name="Algebra", slug="algebra", manager=manager)


@pytest.fixture
def annotator(pool) -> User:
    return factories.make_user(username="annotator", pool=pool, roles=(Role.ANNOTATOR,))


@pytest.fixture
def other_annotator(pool) -> User:
    return factories.make_user(username="other_annotator", pool=pool, roles=(Role.ANNOTATOR,))


@pytest.fixture
def adjudicator(pool) -> User:
    return factories.make_user(username="adjudicator", pool=pool, roles=(Role.ADJUDICATOR,))


@pytest.fixture
def outsider(db) -> User:
    return factories.make_user(username="outsider")
