"""What every address does alike: errors in one shape, pages of rows, keys that make a request count once."""

import json
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from labeling.actions.tokens import create_token
from labeling.models import AnsweredRequest, ApiToken, Budget, Invitation, Pool
from tests import factories
from tests.labeling.api.conftest import Api


@pytest.fixture
def api(manager, pool):
    return Api(manager)


def error_of(response):
    found = response.json()
    assert set(found) == {"error"}
    assert set(found["error"]) == {"code", "message", "details"}
    return found["error"]


def test_every_refusal_has_the_one_shape(api, pool):
    pools, questions = reverse("api-pools"), reverse("api-questions", args=[pool.slug])
    send = {"content_type": "application/json"}
    found = {
        "validation": api.client.post(pools, {"name": ""}, **send),
        "parse": api.client.post(pools, "{", **send),
        "deep": api.client.post(pools, "[" * 100_000, **send),
        "not finite": api.client.post(pools, '{"name": 1e999}', **send),
        "media type": api.client.post(pools, b"x", content_type="application/xml"),
        "method": api.client.delete(pools),
        "format": api.client.get(pools, headers={"Accept": "text/csv"}),
        "address": api.client.get("/api/v1/pools"),
        "object": api.client.get(reverse("api-pool", args=["nowhere"])),
        "page": api.client.get(questions, {"page": 7}),
        "conflict": api.client.post(pools, {"name": pool.name}, **send),
        "token": Client(headers={"Authorization": "Bearer assay_wrong"}).get(pools),
        "nobody": Client().get(pools),
    }

    codes = {name: (response.status_code, error_of(response)["code"]) for name, response in found.items()}
    assert codes == {
        "validation": (400, "invalid"),
        "parse": (400, "parse_error"),
        "deep": (400, "parse_error"),
        "not finite": (400, "parse_error"),
        "media type": (415, "unsupported_media_type"),
        "method": (405, "method_not_allowed"),
        "format": (406, "not_acceptable"),
        "address": (404, "not_found"),
        "object": (404, "not_found"),
        "page": (404, "not_found"),
        "conflict": (409, "pool_exists"),
        "token": (401, "authentication_failed"),
        "nobody": (401, "not_authenticated"),
    }
    assert error_of(found["validation"])["details"] == {"name": ["This field may not be blank."]}


def test_a_failure_of_the_server_has_the_shape_too(api, monkeypatch):
    monkeypatch.setattr("labeling.queries.pools.pools_for", lambda **_: 1 / 0)
    api.client.raise_request_exception = False

    response = api.client.get(reverse("api-pools"))

    assert response.status_code == 500
    assert error_of(response)["code"] == "internal_error"


def test_who_asks_too_often_is_told_when_to_come_back(api, settings):
    settings.ASSAY_API_RATE = "3/min"

    statuses = [api.client.get(reverse("api-work")).status_code for _ in range(4)]

    assert statuses == [200, 200, 200, 429]
    response = api.client.get(reverse("api-work"))
    assert error_of(response)["code"] == "throttled"
    assert int(response["Retry-After"]) > 0


def test_who_tries_tokens_is_slowed_down_and_right_ones_from_there_are_not(api, settings):
    settings.ASSAY_API_WRONG_TOKENS = "5/min"
    guesser = Client(headers={"Authorization": "Bearer assay_guess"})

    statuses = [guesser.get(reverse("api-work")).status_code for _ in range(7)]

    assert statuses == [401] * 5 + [429] * 2
    assert "Retry-After" in guesser.get(reverse("api-work"))
    api.get("work/")


def test_rows_come_in_pages_of_one_shape(api, pool):
    factories.make_questions(pool=pool, n=5)

    first = api.get(f"pools/{pool.slug}/questions/", page_size=2)
    last = api.get(f"pools/{pool.slug}/questions/", page_size=2, page=3)

    assert (first["count"], len(first["results"]), first["previous"]) == (5, 2, None)
    assert first["next"].endswith("page=2&page_size=2")
    assert (len(last["results"]), last["next"]) == (1, None)


LISTS = ["questions", "members", "invitations", "imports", "budgets", "runs", "comparisons", "rounds", "exports"]


def add_rows(pool, n):
    for _ in range(n):
        factories.make_user(pool=pool, roles=("annotator",))
        factories.make_policy_model()
        factories.make_calibration_set(pool=pool, n_items=1)
        factories.make_pool(manager=pool.created_by)
        questions = factories.make_questions(pool=pool, n=2)
        run = factories.make_run(pool=pool, questions=questions)
        factories.make_round(run=run, budget=factories.make_budget(pool=pool))
        create_token(name="program", by=pool.created_by, pool=pool)


@pytest.mark.parametrize("what", LISTS)
def test_a_list_takes_as_many_queries_however_long_it_is(what, api, pool, django_assert_num_queries):
    counted(f"/api/v1/pools/{pool.slug}/{what}/", api, pool, django_assert_num_queries)


@pytest.mark.parametrize("what", ["pools", "models", "calibration-sets", "tokens", "work"])
def test_a_list_of_what_pools_share_does_too(what, api, pool, django_assert_num_queries):
    counted(f"/api/v1/{what}/", api, pool, django_assert_num_queries)


def counted(url, api, pool, django_assert_num_queries):
    add_rows(pool, 1)
    api.client.get(url)  # the token's last use is noted
    with CaptureQueriesContext(connection) as few:
        assert api.client.get(url).status_code == 200
    add_rows(pool, 9)
    with django_assert_num_queries(len(few.captured_queries)):
        assert api.client.get(url).status_code == 200


def test_a_request_sent_again_under_its_key_is_done_once(api, pool):
    path = f"pools/{pool.slug}/budgets/"

    answers = [api.post(path, {"name": "autumn", "units": 3}, status=201, key="k1") for _ in range(3)]

    assert answers[0] == answers[1] == answers[2]
    assert Budget.objects.count() == 1
    again = api.client.post(
        f"/api/v1/{path}",
        {"units": 3, "name": "autumn"},
        content_type="application/json",
        headers={"Idempotency-Key": "k1"},
    )
    assert again["Idempotent-Replayed"] == "true"


def test_a_key_that_comes_with_another_body_is_a_conflict(api, pool):
    path = f"pools/{pool.slug}/budgets/"
    api.post(path, {"name": "autumn", "units": 3}, status=201, key="k1")

    refused = api.post(path, {"name": "winter", "units": 3}, status=409, key="k1")

    assert refused["error"]["code"] == "key_reused"
    assert Budget.objects.count() == 1


def test_a_key_is_its_owners(pool, manager, api):
    other = factories.make_user(pool=pool, roles=("manager",))
    path = f"pools/{pool.slug}/budgets/"

    api.post(path, {"name": "autumn", "units": 3}, status=201, key="k1")
    Api(other).post(path, {"name": "winter", "units": 3}, status=201, key="k1")

    assert Budget.objects.count() == 2


def test_what_was_refused_can_be_put_right_under_the_same_key(api, pool):
    path = f"pools/{pool.slug}/budgets/"
    api.post(path, {"name": "autumn", "units": 0}, status=400, key="k1")

    api.post(path, {"name": "autumn", "units": 3}, status=201, key="k1")


def test_a_request_that_is_under_way_or_broke_off_is_not_done_twice(api, pool, manager, monkeypatch):
    path = f"pools/{pool.slug}/budgets/"
    api.client.raise_request_exception = False
    monkeypatch.setattr("labeling.api.budgets.budget_row", lambda **_: 1 / 0)
    api.post(path, {"name": "autumn", "units": 3}, status=500, key="k1")
    monkeypatch.undo()

    at_once = api.post(path, {"name": "autumn", "units": 3}, status=409, key="k1")
    AnsweredRequest.objects.update(created_at=timezone.now() - timedelta(hours=1))
    later = api.post(path, {"name": "autumn", "units": 3}, status=409, key="k1")

    assert at_once["error"]["code"] == "request_in_progress"
    assert later["error"]["code"] == "outcome_unknown"
    assert Budget.objects.count() == 1


def test_keys_are_forgotten_after_two_days(api, pool):
    path = f"pools/{pool.slug}/budgets/"
    api.post(path, {"name": "autumn", "units": 3}, status=201, key="k1")
    AnsweredRequest.objects.update(created_at=timezone.now() - timedelta(days=3))

    api.post(path, {"name": "winter", "units": 3}, status=201, key="k1")

    assert AnsweredRequest.objects.count() == 1


@pytest.mark.parametrize("key", ["é", "x" * 201, "a\tb"])
def test_a_key_that_is_no_key_is_refused(key, api, pool):
    response = api.client.post(
        f"/api/v1/pools/{pool.slug}/budgets/",
        {"name": "a", "units": 1},
        content_type="application/json",
        HTTP_IDEMPOTENCY_KEY=key,
    )

    assert response.status_code == 400
    assert "Idempotency-Key" in error_of(response)["details"]


def test_a_file_sent_again_under_its_key_is_kept_once(api, pool, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    url = f"/api/v1/pools/{pool.slug}/imports/?filename=a.jsonl"

    def upload(content):
        return api.client.post(
            url, content, content_type="application/octet-stream", headers={"Idempotency-Key": "file"}
        )

    first, again, other = [upload(f'{{"question": "{text}"}}\n'.encode()) for text in ("1?", "1?", "2?")]

    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 409)
    assert first.json() == again.json()
    assert pool.imports.count() == 1


def test_an_invitations_link_is_shown_once_and_kept_nowhere(api, pool):
    path = f"pools/{pool.slug}/invitations/"

    first = api.post(path, {"role": "annotator"}, status=201, key="k1")
    again = api.post(path, {"role": "annotator"}, status=201, key="k1")

    secret = first["link"].rstrip("/").rpartition("/")[2]
    assert again == {**first, "link": None}
    assert secret not in json.dumps(list(AnsweredRequest.objects.values()), default=str)
    assert Invitation.objects.count() == 1


def test_a_person_who_is_logged_in_needs_the_csrf_token(manager, pool):
    client = Client(enforce_csrf_checks=True)
    client.force_login(manager, backend="django.contrib.auth.backends.ModelBackend")

    refused = client.post(reverse("api-pools"), {"name": "New"}, content_type="application/json")
    page = client.get(reverse("api-pools"), headers={"Accept": "text/html"})
    token = client.cookies["csrftoken"].value
    taken = client.post(
        reverse("api-pools"),
        {"name": "New"},
        content_type="application/json",
        headers={"X-CSRFToken": token},
    )

    assert (refused.status_code, page.status_code, taken.status_code) == (403, 200, 201)


def test_the_form_on_an_addresss_page_works_and_a_double_click_counts_once(manager, pool):
    client = Client(headers={"Accept": "text/html"})
    client.force_login(manager, backend="django.contrib.auth.backends.ModelBackend")
    form = urlencode({"content": '{"name": "Winter"}', "idempotency_key": "once"})

    answers = [
        client.post(reverse("api-pools"), form, content_type="application/x-www-form-urlencoded") for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert "&quot;slug&quot;: &quot;winter&quot;" in answers[0].content.decode()
    assert Pool.objects.filter(name="Winter").count() == 1


def test_last_use_is_noted(api, manager):
    assert ApiToken.objects.get().last_used_at is None

    api.get("work/")

    assert ApiToken.objects.get().last_used_at is not None
