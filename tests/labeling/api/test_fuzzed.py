# ruff: noqa: F811  (fixtures of a sibling directory are imported)
"""Requests made up by schemathesis from the schema, valid and not: never a failure of the server, always the shape."""

import os
import random

import pytest
import schemathesis
from django.core.cache import cache
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

from labeling.actions.tokens import create_token
from labeling.api.browsing import the_schema
from labeling.models import ApiToken
from labeling.wsgi import application
from tests.labeling.api.test_access import address, undone  # noqa: F401
from tests.labeling.views.conftest import login, world  # noqa: F401

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # its client closes no file
]
EXAMPLES = int(os.environ.get("ASSAY_FUZZ_EXAMPLES", "2"))  # of each operation, valid ones and others


@pytest.fixture
def calmly(settings):
    settings.ASSAY_API_RATE = "1000000/min"


@pytest.mark.parametrize("role", ["manager", "annotator", "adjudicator"])
def test_no_request_fails_the_server(role, world, known, calmly, request):
    cache.clear()
    _, token = create_token(name="fuzz", by=request.getfixturevalue(role), scopes=ApiToken.Scope.values)
    schema = schemathesis.openapi.from_dict(the_schema())
    schema.app = application
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    failed, statuses = [], []

    for operation in (found.ok() for found in schema.get_all_operations()):
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @seed(0)
            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case):
                if random.Random(str(case.body)).random() < 0.8:  # an id that is made up is nobody's
                    made_up = case.path_parameters
                    case.path_parameters = {name: known.get(name, value) for name, value in made_up.items()}
                if isinstance(case.body, dict):
                    case.body.pop("check", None)
                case.headers = {**(case.headers or {}), **headers}
                with undone():
                    response = case.call()
                statuses.append(response.status_code)
                if response.status_code >= 500:
                    failed.append((case.method, case.path, case.path_parameters, case.query, repr(case.body)[:300]))
                elif response.status_code >= 400:
                    assert set(response.json()["error"]) == {"code", "message", "details"}, case.path

            ask()

    assert failed == []
    assert {200, 201, 400, 404} <= set(statuses) or role != "manager"


@pytest.fixture
def known(world, address):
    """The path parameters of things in the world's pool."""
    found = {}
    for kwargs in world.kwargs.values():
        found |= {name: str(value) for name, value in kwargs.items()}
    return found | {"slot_id": str(world.held.pk), "filename": world.kwargs["export-file"]["filename"]}
