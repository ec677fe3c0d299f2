"""Every address by every role. An address that is not classified here fails."""

from contextlib import contextmanager

import pytest
from django.db import transaction
from django.urls import get_resolver, reverse

from labeling.models import Annotation, AuditEvent, Role, Slot
from tests import factories
from tests.labeling.views.conftest import HX

EVERYBODY, LOGGED_IN, MEMBERS, MANAGERS, SHARED, ANNOTATORS, ADJUDICATORS, HOLDER, DECIDER, OWNERS = range(10)
ROLES = ["anonymous", "outsider", "annotator", "other_annotator", "adjudicator", "manager"]
# url name: who, and the methods it answers
ADDRESSES = {
    "home": (LOGGED_IN, "GET"),
    "login": (EVERYBODY, "GET POST"),
    "logout": (LOGGED_IN, "POST"),
    "javascript-catalog": (EVERYBODY, "GET"),
    "join": (EVERYBODY, "GET POST"),
    "invitation-revoke": (MANAGERS, "POST"),
    "pool-new": (SHARED, "GET POST"),
    "pool": (MEMBERS, "GET"),
    "pool-questions": (MANAGERS, "GET"),
    "pool-guideline": (MANAGERS, "GET POST"),
    "pool-people": (MANAGERS, "GET"),
    "invitation-new": (MANAGERS, "POST"),
    "member-remove": (MANAGERS, "POST"),
    "pool-import": (MANAGERS, "GET POST"),
    "votes-import": (MANAGERS, "GET POST"),
    "pool-runs": (MANAGERS, "GET"),
    "run-new": (MANAGERS, "GET POST"),
    "budget-new": (MANAGERS, "GET POST"),
    "budget": (MANAGERS, "GET"),
    "budget-add": (MANAGERS, "POST"),
    "pool-variance": (MANAGERS, "GET"),
    "set-variance": (MANAGERS, "GET"),
    "pool-export": (MANAGERS, "GET"),
    "export-new": (MANAGERS, "POST"),
    "import-preview": (MANAGERS, "GET POST"),
    "import-commit": (MANAGERS, "POST"),
    "import-discard": (MANAGERS, "POST"),
    "models": (SHARED, "GET"),
    "model-new": (SHARED, "GET POST"),
    "calibration-sets": (SHARED, "GET"),
    "calibration-import": (SHARED, "GET POST"),
    "run": (MANAGERS, "GET"),
    "run-pair": (MANAGERS, "GET"),
    "run-question": (MANAGERS, "GET"),
    "run-scores": (MANAGERS, "GET"),
    "run-progress": (MANAGERS, "GET"),
    "run-cancel": (MANAGERS, "POST"),
    "run-retry": (MANAGERS, "POST"),
    "run-complete": (MANAGERS, "POST"),
    "pool-comparisons": (MANAGERS, "GET"),
    "comparison-new": (MANAGERS, "GET POST"),
    "comparison": (MANAGERS, "GET"),
    "comparison-progress": (MANAGERS, "GET"),
    "comparison-cancel": (MANAGERS, "POST"),
    "comparison-retry": (MANAGERS, "POST"),
    "comparison-json": (MANAGERS, "GET"),
    "round-new": (MANAGERS, "GET POST"),
    "round": (MEMBERS, "GET"),
    "round-status": (MANAGERS, "POST"),
    "round-guideline": (MEMBERS, "POST"),
    "annotate": (ANNOTATORS, "POST"),
    "practice": (ANNOTATORS, "GET POST"),
    "practice-answer": (HOLDER, "GET"),
    "question-answers": (MANAGERS, "GET"),
    "answers-meaning": (MANAGERS, "POST"),
    "answer-buy": (MANAGERS, "POST"),
    "adjudicate": (ADJUDICATORS, "POST"),
    "slot": (HOLDER, "GET"),
    "slot-draft": (HOLDER, "POST"),
    "slot-read-as": (HOLDER, "POST"),
    "slot-submit": (HOLDER, "POST"),
    "slot-unanswerable": (HOLDER, "POST"),
    "slot-skip": (HOLDER, "POST"),
    "slot-undo": (HOLDER, "POST"),
    "slot-revise": (HOLDER, "GET POST"),
    "slot-flag": (HOLDER, "POST"),
    "slot-guideline": (HOLDER, "POST"),
    "slot-reveal": (HOLDER, "GET POST"),
    "adjudication": (DECIDER, "GET POST"),
    "export-file": (MANAGERS, "GET"),
    "pool-curricula": (MANAGERS, "GET"),
    "curriculum-new": (MANAGERS, "GET POST"),
    "curriculum": (MANAGERS, "GET"),
    "tokens": (LOGGED_IN, "GET POST"),
    "token-revoke": (OWNERS, "POST"),
}
OUTSIDE, WITHIN = 404, 403  # of the pool without being in it; in it without the role
REFUSED = {
    LOGGED_IN: {},
    MEMBERS: {"outsider": OUTSIDE},
    MANAGERS: {"outsider": OUTSIDE, "annotator": WITHIN, "other_annotator": WITHIN, "adjudicator": WITHIN},
    SHARED: {"annotator": WITHIN, "other_annotator": WITHIN, "adjudicator": WITHIN},
    ANNOTATORS: {"outsider": OUTSIDE, "adjudicator": WITHIN, "manager": WITHIN},
    ADJUDICATORS: {"outsider": OUTSIDE, "annotator": WITHIN, "other_annotator": WITHIN, "manager": WITHIN},
    HOLDER: dict.fromkeys(["outsider", "other_annotator", "adjudicator", "manager"], OUTSIDE),
    DECIDER: dict.fromkeys(["outsider", "annotator", "other_annotator", "manager"], OUTSIDE),
    OWNERS: dict.fromkeys(["outsider", "annotator", "other_annotator", "adjudicator"], OUTSIDE),
}


def all_names(resolver=None, prefix=""):
    for pattern in (resolver or get_resolver()).url_patterns:
        if getattr(pattern, "app_name", None) == "admin":
            continue
        if hasattr(pattern, "url_patterns"):
            yield from all_names(pattern, prefix)
        elif not pattern.name.startswith("api-"):  # those are classified in tests/labeling/api
            yield pattern.name


def test_every_address_is_classified():
    assert sorted(all_names()) == sorted(ADDRESSES)


@contextmanager
def undone():
    """Undo what the request changed, so that one world serves all of them."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def url_of(name, world):
    return reverse(name, kwargs=world.kwargs.get(name))


def whoever_may(name, request):
    return request.getfixturevalue(
        {HOLDER: "annotator", DECIDER: "adjudicator", ANNOTATORS: "annotator"}.get(ADDRESSES[name][0], "manager")
    )


def is_right(name, role, response):
    who = ADDRESSES[name][0]
    if who == EVERYBODY:
        return response.status_code in {200, 302, 422}
    if role == "anonymous":
        return response.status_code == 302 and response["Location"].startswith(reverse("login"))
    if role in REFUSED[who]:
        return response.status_code == REFUSED[who][role]
    return response.status_code in {200, 302, 400, 409, 422}


@pytest.mark.parametrize("role", ROLES)
def test_each_role_at_each_address(role, world, request, login):
    client = login(None if role == "anonymous" else request.getfixturevalue(role))
    wrong = []

    for name, (_, methods) in ADDRESSES.items():
        for method in methods.split():
            with undone():
                response = getattr(client, method.lower())(url_of(name, world))
                response.close()
            if not is_right(name, role, response):
                wrong.append((method, name, response.status_code))
            if name == "logout" and role != "anonymous":
                client = login(request.getfixturevalue(role))

    assert wrong == []


def test_htmx_is_told_to_log_in_again_and_never_given_the_login_page(world, client):
    for name, (who, methods) in ADDRESSES.items():
        if who == EVERYBODY:
            continue
        response = getattr(client, methods.split()[-1].lower())(url_of(name, world), **HX)

        assert response.status_code == 401, name
        assert response["HX-Trigger"] == "reauth"
        assert response.content == b""


def test_what_changes_something_cannot_be_had_by_following_a_link(world, manager, login):
    client = login(manager)

    for name, (_, methods) in ADDRESSES.items():
        if "GET" not in methods:
            assert client.get(url_of(name, world)).status_code == 405, name


def test_looking_at_a_page_changes_nothing(world, request, login):
    def everything():
        return AuditEvent.objects.count(), Annotation.objects.count(), list(Slot.objects.order_by("pk").values())

    for name, (_, methods) in ADDRESSES.items():
        if "GET" not in methods:
            continue
        client, before = login(whoever_may(name, request)), everything()

        client.get(url_of(name, world)).close()
        client.get(url_of(name, world), **HX).close()

        assert everything() == before, name


def test_an_annotator_of_a_disputed_question_who_adjudicates_too_does_not_see_the_dispute(
    world, annotator, other_annotator, login
):
    for user in (annotator, other_annotator):
        factories.make_membership(pool=world.pool, user=user, role=Role.ADJUDICATOR)

        assert login(user).get(url_of("adjudication", world)).status_code == 404


def test_the_admin_is_for_staff(world, manager, login):
    assert login(manager).get("/admin/").status_code == 302
