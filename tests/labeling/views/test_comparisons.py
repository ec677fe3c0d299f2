"""The comparison pages: asking, watching, reading, two side by side, and the file."""

import json

import pytest
from django.urls import reverse

from labeling.models import Comparison
from tests.labeling.views.conftest import HX, make_comparison

Status = Comparison.Status


@pytest.fixture
def client(login, manager):
    return login(manager)


def url(name, comparison):
    return reverse(name, kwargs={"comparison_id": comparison.pk})


def text_of(response):
    return response.content.decode()


def test_asking_for_one_queues_it_and_shows_how_far_it_is(world, client):
    form = {"run": world.run.pk, "budget": 2, "n_bootstrap": 5, "strategies": ["const", "random"]}

    response = client.post(reverse("comparison-new", kwargs={"pool_slug": world.pool.slug}), form)

    made = Comparison.objects.exclude(pk=world.comparison.pk).get()
    assert response["Location"] == url("comparison", made)
    assert (made.status, made.strategies, made.budget, made.n_bootstrap) == (Status.QUEUED, ["const", "random"], 2, 5)
    page = text_of(client.get(url("comparison", made)))
    assert "Waiting for a worker" in page
    assert "Cancel the comparison" in page
    assert "data-chart" not in page


def test_what_the_action_refuses_stands_on_the_form(world, client):
    form = {"run": world.run.pk, "budget": 500, "n_bootstrap": 5, "strategies": ["const"]}

    response = client.post(reverse("comparison-new", kwargs={"pool_slug": world.pool.slug}), form)

    assert response.status_code == 422
    assert "looked at 4 questions; 500 cannot be picked" in text_of(response)


def test_nothing_ticked_is_refused(world, client):
    form = {"run": world.run.pk, "budget": 1, "n_bootstrap": 5}

    response = client.post(reverse("comparison-new", kwargs={"pool_slug": world.pool.slug}), form)

    assert response.status_code == 422
    assert Comparison.objects.count() == 1


def test_runs_of_other_pools_are_not_offered(world, outsider, login):
    elsewhere = outsider.memberships.get().pool

    page = text_of(login(outsider).get(reverse("comparison-new", kwargs={"pool_slug": elsewhere.slug})))

    assert "There is no finished run" in page


def test_every_picture_has_its_numbers_in_a_table(world, client):
    page = text_of(client.get(url("comparison", world.comparison)))

    kinds = ("shares", "signed", "stacked", "bars", "intervals")
    assert all(f'data-chart="{kind}"' in page for kind in kinds)
    assert page.count("<figure") == page.count("As a table") == 4 + 3 + 2 + 2 + 2
    assert "Random selections below it" in page
    assert "3 of 4 questions have a gold answer" in page


def test_what_could_not_run_is_named_with_what_it_lacks(world, client):
    page = text_of(client.get(url("comparison", world.comparison)))

    assert "Not run" in page
    assert "SHIFT" in page
    assert "look inside the model" in page
    assert "--internals" not in page


def test_a_reconstruction_is_called_one(world, client):
    assert "SCF: self-consistency filtering (reconstruction)" in text_of(
        client.get(url("comparison", world.comparison))
    )


def test_two_side_by_side_show_what_one_has_and_the_other_lacks(world, client):
    result = world.comparison.result
    picks = {each["key"]: each["picks"] for each in result["strategies"]}
    both = [uid for uid in picks["const"] if uid in picks["random"]]

    side = client.get(url("comparison", world.comparison), {"a": "const", "b": "random"}).context["side"]

    assert [line.question.uid for line in side.both] == both
    assert [line.question.uid for line in side.only_first] == [uid for uid in picks["const"] if uid not in both]
    assert [line.question.uid for line in side.only_second] == [uid for uid in picks["random"] if uid not in both]
    assert [line.rank for line in side.only_first] == [
        picks["const"].index(line.question.uid) + 1 for line in side.only_first
    ]


@pytest.mark.parametrize("pair", [{"a": "const", "b": "shift"}, {"a": "<script>", "b": "x"}])
def test_a_pair_that_did_not_run_is_said_so(world, client, pair):
    response = client.get(url("comparison", world.comparison), pair)

    assert response.status_code == 200
    assert "There is no such pair" in text_of(response)


def test_the_file_is_the_whole_result(world, client):
    response = client.get(url("comparison-json", world.comparison))

    assert json.loads(response.content) == world.comparison.result
    assert response["Content-Disposition"] == f'attachment; filename="comparison-{world.comparison.pk}.json"'


def test_there_is_no_file_before_there_is_a_result(world, client):
    waiting = Comparison.objects.create(run=world.run, strategies=["const"], budget=1, n_bootstrap=1)

    assert client.get(url("comparison-json", waiting)).status_code == 409


def test_the_progress_is_a_part_of_the_page_until_it_has_ended(world, client):
    waiting = Comparison.objects.create(run=world.run, strategies=["const"], budget=1, n_bootstrap=1)

    part = client.get(url("comparison-progress", waiting), **HX)
    ended = client.get(url("comparison-progress", world.comparison), **HX)

    assert 'id="comparison-progress"' in text_of(part)
    assert "<html" not in text_of(part)
    assert ended["HX-Redirect"] == url("comparison", world.comparison)


def test_cancelling_and_trying_again_from_the_page(world, client):
    waiting = Comparison.objects.create(run=world.run, strategies=["const"], budget=1, n_bootstrap=1)

    client.post(url("comparison-cancel", waiting))
    waiting.refresh_from_db()
    assert waiting.status == Status.CANCELLED

    client.post(url("comparison-retry", waiting))
    waiting.refresh_from_db()
    assert waiting.status == Status.QUEUED


def test_a_long_list_costs_no_more_queries(world, client, django_assert_max_num_queries):
    address = reverse("pool-comparisons", kwargs={"pool_slug": world.pool.slug})
    client.get(address)
    with django_assert_max_num_queries(12):
        client.get(address)

    for _ in range(19):
        make_comparison(run=world.run)

    with django_assert_max_num_queries(12):
        assert text_of(client.get(address)).count("Comparison ") >= 20


def test_more_picks_cost_no_more_queries(world, client, django_assert_max_num_queries):
    many = make_comparison(run=world.run, budget=4)
    client.get(url("comparison", many))

    for comparison in (world.comparison, many):
        with django_assert_max_num_queries(12):
            client.get(url("comparison", comparison))
