"""Every address of the API by every role and by every scope. An address that is not classified here fails."""
# ruff: noqa: F811  (fixtures of a sibling directory are imported)

from contextlib import contextmanager
from itertools import product

import pytest
from django.db import transaction
from django.test import Client
from django.urls import get_resolver, reverse

from labeling.actions.tokens import create_token
from labeling.models import Annotation, ApiToken, AuditEvent, Budget, Slot
from tests import factories
from tests.labeling.views.conftest import login, world  # noqa: F401

EVERYBODY, LOGGED_IN, MEMBERS, MANAGERS, SHARED, ANNOTATORS, ADJUDICATORS, HOLDER, DECIDER = range(9)
ROLES = ["anonymous", "outsider", "annotator", "other_annotator", "adjudicator", "manager"]
READ, IMPORT, MANAGE, LABEL, EXPORT, TRAIN = ApiToken.Scope.values
# name: who, and the scope of each method it answers
ADDRESSES = {
    "api-root": (LOGGED_IN, {"GET": READ}),
    "api-schema": (LOGGED_IN, {"GET": READ}),
    "api-no-such-address": (EVERYBODY, {"GET": ""}),
    "api-pools": (LOGGED_IN, {"GET": READ, "POST": MANAGE}),
    "api-pool": (MEMBERS, {"GET": READ}),
    "api-questions": (MANAGERS, {"GET": READ}),
    "api-guidelines": (MEMBERS, {"GET": READ, "POST": MANAGE}),
    "api-events": (MANAGERS, {"GET": READ}),
    "api-members": (MANAGERS, {"GET": READ}),
    "api-member-remove": (MANAGERS, {"POST": MANAGE}),
    "api-invitations": (MANAGERS, {"GET": READ, "POST": MANAGE}),
    "api-invitation-revoke": (MANAGERS, {"POST": MANAGE}),
    "api-imports": (MANAGERS, {"GET": READ, "POST": IMPORT}),
    "api-import": (MANAGERS, {"GET": READ}),
    "api-import-map": (MANAGERS, {"POST": IMPORT}),
    "api-import-commit": (MANAGERS, {"POST": IMPORT}),
    "api-import-discard": (MANAGERS, {"POST": IMPORT}),
    "api-votes": (MANAGERS, {"POST": IMPORT}),
    "api-picks": (MANAGERS, {"POST": IMPORT}),
    "api-recorded-votes": (MANAGERS, {"GET": READ}),
    "api-calibration-sets": (SHARED, {"GET": READ}),
    "api-calibration-imports": (SHARED, {"POST": IMPORT}),
    "api-set-variance": (MANAGERS, {"GET": READ}),
    "api-models": (SHARED, {"GET": READ, "POST": MANAGE}),
    "api-strategies": (LOGGED_IN, {"GET": READ}),
    "api-budgets": (MANAGERS, {"GET": READ, "POST": MANAGE}),
    "api-budget": (MANAGERS, {"GET": READ}),
    "api-budget-units": (MANAGERS, {"POST": MANAGE}),
    "api-runs": (MANAGERS, {"GET": READ, "POST": MANAGE}),
    "api-run": (MANAGERS, {"GET": READ}),
    "api-run-picks": (MANAGERS, {"GET": READ}),
    "api-run-scores": (MANAGERS, {"GET": READ}),
    "api-run-report": (MANAGERS, {"GET": READ}),
    "api-run-cancel": (MANAGERS, {"POST": MANAGE}),
    "api-run-retry": (MANAGERS, {"POST": MANAGE}),
    "api-run-complete": (MANAGERS, {"POST": MANAGE}),
    "api-run-rounds": (MANAGERS, {"POST": MANAGE}),
    "api-run-comparisons": (MANAGERS, {"POST": MANAGE}),
    "api-comparisons": (MANAGERS, {"GET": READ}),
    "api-comparison": (MANAGERS, {"GET": READ}),
    "api-comparison-result": (MANAGERS, {"GET": READ}),
    "api-comparison-cancel": (MANAGERS, {"POST": MANAGE}),
    "api-comparison-retry": (MANAGERS, {"POST": MANAGE}),
    "api-rounds": (MANAGERS, {"GET": READ}),
    "api-round": (MEMBERS, {"GET": READ}),
    "api-round-progress": (MANAGERS, {"GET": READ}),
    "api-round-pause": (MANAGERS, {"POST": MANAGE}),
    "api-round-resume": (MANAGERS, {"POST": MANAGE}),
    "api-round-ask-again": (MANAGERS, {"POST": MANAGE}),
    "api-round-close": (MANAGERS, {"POST": MANAGE}),
    "api-round-answers": (MANAGERS, {"GET": READ}),
    "api-round-merge": (MANAGERS, {"POST": MANAGE}),
    "api-round-split": (MANAGERS, {"POST": MANAGE}),
    "api-round-guideline": (ANNOTATORS, {"GET": LABEL}),
    "api-round-guideline-read": (ANNOTATORS, {"POST": LABEL}),
    "api-practice": (ANNOTATORS, {"GET": LABEL}),
    "api-practice-answer": (ANNOTATORS, {"POST": LABEL}),
    "api-work": (LOGGED_IN, {"GET": LABEL}),
    "api-claim": (ANNOTATORS, {"POST": LABEL}),
    "api-own-answers": (MEMBERS, {"GET": LABEL}),
    "api-claim-adjudication": (ADJUDICATORS, {"POST": LABEL}),
    "api-slot": (HOLDER, {"GET": LABEL}),
    "api-slot-draft": (HOLDER, {"POST": LABEL}),
    "api-slot-read-as": (HOLDER, {"POST": LABEL}),
    "api-slot-submit": (HOLDER, {"POST": LABEL}),
    "api-slot-unanswerable": (HOLDER, {"POST": LABEL}),
    "api-slot-revise": (HOLDER, {"POST": LABEL}),
    "api-slot-reveal": (HOLDER, {"GET": LABEL, "POST": LABEL}),
    "api-slot-reveal-keep": (HOLDER, {"POST": LABEL}),
    "api-slot-reveal-change": (HOLDER, {"POST": LABEL}),
    "api-slot-flag": (HOLDER, {"POST": LABEL}),
    "api-slot-undo": (HOLDER, {"POST": LABEL}),
    "api-slot-skip": (HOLDER, {"POST": LABEL}),
    "api-slot-release": (HOLDER, {"POST": LABEL}),
    "api-slot-extend": (HOLDER, {"POST": LABEL}),
    "api-adjudication": (DECIDER, {"GET": LABEL}),
    "api-adjudication-decide": (DECIDER, {"POST": LABEL}),
    "api-adjudication-merge": (DECIDER, {"POST": LABEL}),
    "api-adjudication-split": (DECIDER, {"POST": LABEL}),
    "api-exports": (MANAGERS, {"GET": EXPORT, "POST": EXPORT}),
    "api-export": (MANAGERS, {"GET": EXPORT}),
    "api-export-file": (MANAGERS, {"GET": EXPORT}),
    "api-variance": (MANAGERS, {"GET": READ}),
    "api-tokens": (LOGGED_IN, {"GET": READ, "POST": MANAGE}),
    "api-token-revoke": (MANAGERS, {"POST": MANAGE}),
    "api-curricula": (MANAGERS, {"GET": READ, "POST": MANAGE}),
    "api-curriculum": (MANAGERS, {"GET": TRAIN}),
    "api-curriculum-propose": (MANAGERS, {"POST": TRAIN}),
    "api-curriculum-refill": (MANAGERS, {"POST": TRAIN}),
    "api-curriculum-rewards": (MANAGERS, {"POST": TRAIN}),
}
REQUESTS = [(name, method, scope) for name, (_, methods) in ADDRESSES.items() for method, scope in methods.items()]
OUTSIDE, WITHIN = 404, 403  # of the pool without being in it; in it without the role
REFUSED = {
    EVERYBODY: {},
    LOGGED_IN: {},
    MEMBERS: {"outsider": OUTSIDE},
    MANAGERS: {"outsider": OUTSIDE, "annotator": WITHIN, "other_annotator": WITHIN, "adjudicator": WITHIN},
    SHARED: {"annotator": WITHIN, "other_annotator": WITHIN, "adjudicator": WITHIN},
    ANNOTATORS: {"outsider": OUTSIDE, "adjudicator": WITHIN, "manager": WITHIN},
    ADJUDICATORS: {"outsider": OUTSIDE, "annotator": WITHIN, "other_annotator": WITHIN, "manager": WITHIN},
    HOLDER: dict.fromkeys(["outsider", "other_annotator", "adjudicator", "manager"], OUTSIDE),
    DECIDER: dict.fromkeys(["outsider", "annotator", "other_annotator", "manager"], OUTSIDE),
}
# who may look but not change, where the two differ
STRICTER = {
    (
        "api-slot-reveal",
        "POST",
    ): {  # the other annotator has answered it too, and asks for a reveal of their own
        role: status for role, status in REFUSED[HOLDER].items() if role != "other_annotator"
    },
    ("api-guidelines", "POST"): REFUSED[MANAGERS],
    ("api-pools", "POST"): REFUSED[SHARED],
    ("api-token-revoke", "POST"): dict.fromkeys(["outsider", "annotator", "other_annotator", "adjudicator"], OUTSIDE),
}


def all_names(resolver=None):
    for pattern in (resolver or get_resolver()).url_patterns:
        if getattr(pattern, "app_name", None) == "admin":
            continue
        if hasattr(pattern, "url_patterns"):
            yield from all_names(pattern)
        elif pattern.name.startswith("api-"):
            yield pattern.name


def test_every_address_is_classified():
    assert sorted(all_names()) == sorted(ADDRESSES)


@pytest.fixture
def address(world, manager):
    """Return a function that gives the address of a name, of things in the world's pool."""
    known = {}
    for kwargs in world.kwargs.values():
        known |= {name: value for name, value in kwargs.items() if name != "token"}
    known |= {
        "slot_id": world.held.pk,
        "revealed": world.kwargs["slot-reveal"]["slot_id"],
        "filename": world.kwargs["export-file"]["filename"],
        "budget_id": Budget.objects.filter(pool=world.pool).first().pk,
        "token_id": create_token(name="old", by=manager, pool=world.pool)[0].pk,
    }

    def of(name):
        given = dict(known)
        if ADDRESSES[name][0] == DECIDER:
            given["slot_id"] = world.dispute.pk
        elif "reveal" in name:
            given["slot_id"] = known["revealed"]
        if name == "api-no-such-address":
            return reverse("api-pools") + "nowhere"
        pattern = next(iter(get_resolver().reverse_dict.getlist(name)))[0][0]
        return reverse(name, kwargs={parameter: given[parameter] for parameter in pattern[1]})

    return of


@contextmanager
def undone():
    """Undo what the request changed, so that one world serves all of them."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def ask(client, method, url):
    with undone():
        response = getattr(client, method.lower())(
            url, **({"content_type": "application/json"} if method == "POST" else {})
        )
        response.close()
    return response


def is_right(name, method, role, status):
    who = ADDRESSES[name][0]
    if who == EVERYBODY:
        return status in {401, 404}
    if role == "anonymous":
        return status == 401
    refused = STRICTER.get((name, method), REFUSED[who])
    if role in refused:
        return status == refused[role]
    return status in {200, 201, 400, 409, 415, 422}


@pytest.mark.parametrize("role", ROLES)
def test_each_role_at_each_address(role, world, address, request, login):
    client = login(None if role == "anonymous" else request.getfixturevalue(role))
    wrong = []

    for name, method, _ in REQUESTS:
        response = ask(client, method, address(name))
        if not is_right(name, method, role, response.status_code):
            wrong.append((method, name, response.status_code))
        if response.status_code >= 400:
            assert set(response.json()["error"]) == {"code", "message", "details"}, name

    assert wrong == []


@pytest.mark.parametrize("scope", ApiToken.Scope.values)
def test_a_token_opens_what_its_scope_says(scope, world, address, manager):
    _, token = create_token(name="program", by=manager, scopes=[scope])
    client, wrong = Client(headers={"Authorization": f"Bearer {token}"}), []

    for name, method, needed in REQUESTS:
        response = ask(client, method, address(name))
        is_refused_for_scope = response.status_code == 403 and "scope" in response.json()["error"]["message"]
        if name != "api-no-such-address" and is_refused_for_scope != (needed != scope):
            wrong.append((method, name, response.status_code))

    assert wrong == []


def test_what_belongs_to_another_pool_is_not_found_by_its_managers_nor_by_a_token_bound_elsewhere(
    world,
    address,
    manager,
    outsider,
):
    elsewhere = factories.make_pool(manager=outsider)
    mine = factories.make_pool(manager=manager)
    tokens = [
        create_token(name="theirs", by=outsider, pool=elsewhere, scopes=ApiToken.Scope.values)[1],
        create_token(name="mine, elsewhere", by=manager, pool=mine, scopes=ApiToken.Scope.values)[1],
    ]
    of_the_pool = [each for each in REQUESTS if ADDRESSES[each[0]][0] not in {EVERYBODY, LOGGED_IN, SHARED}]
    wrong = []

    for token, (name, method, _) in product(tokens, of_the_pool):
        response = ask(Client(headers={"Authorization": f"Bearer {token}"}), method, address(name))
        if response.status_code != 404:
            wrong.append((method, name, response.status_code))

    assert wrong == []


def test_what_pools_share_is_not_changed_by_a_token_of_one_pool(world, manager):
    _, token = create_token(name="bound", by=manager, pool=world.pool, scopes=ApiToken.Scope.values)
    client = Client(headers={"Authorization": f"Bearer {token}"})

    for name in ("api-pools", "api-models"):
        response = client.post(reverse(name), {"name": "New"}, content_type="application/json")
        assert response.json()["error"]["code"] == "token_of_one_pool"
    sets = client.post(reverse("api-calibration-imports") + "?name=New", b"{}", content_type="application/octet-stream")
    assert sets.json()["error"]["code"] == "token_of_one_pool"
    assert [row["slug"] for row in client.get(reverse("api-pools")).json()["results"]] == [world.pool.slug]


def test_a_method_that_an_address_does_not_know_is_refused(world, address, manager, login):
    client = login(manager)

    for name, (_, methods) in ADDRESSES.items():
        for method in {"get", "post", "put", "patch", "delete"} - {known.lower() for known in methods}:
            if name not in {"api-no-such-address", "api-schema", "api-root"}:
                response = getattr(client, method)(address(name))
                assert response.status_code == 405, (name, method)
                assert response.json()["error"]["code"] == "method_not_allowed"


def test_looking_changes_nothing(world, address, request, login):
    def everything():
        return AuditEvent.objects.count(), Annotation.objects.count(), list(Slot.objects.order_by("pk").values())

    for name, (who, methods) in ADDRESSES.items():
        if "GET" in methods:
            role = {HOLDER: "annotator", DECIDER: "adjudicator"}.get(who, "manager")
            client, before = login(request.getfixturevalue(role)), everything()

            client.get(address(name)).close()

            assert everything() == before, name


def test_a_token_makes_no_tokens(manager, pool):
    _, token = create_token(name="program", by=manager, scopes=ApiToken.Scope.values)
    client = Client(headers={"Authorization": f"Bearer {token}"})

    response = client.post(
        reverse("api-tokens"), {"name": "another", "scopes": ["read"]}, content_type="application/json"
    )

    assert response.status_code == 403
    assert ApiToken.objects.count() == 1
