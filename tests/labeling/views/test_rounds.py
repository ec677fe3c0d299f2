"""Budgets, rounds, exports: what they cost before they start, how far they are, what comes out."""

import uuid

import pytest
from django.urls import reverse

from labeling.actions import annotation
from labeling.models import Budget, Export, GoldAnswer, Round
from tests import factories
from tests.labeling.views.conftest import HX, make_export


def test_a_budget_is_granted_and_enlarged_once_however_often_the_form_is_sent(pool, manager, login):
    client = login(manager)

    client.post(reverse("budget-new", args=[pool.slug]), {"name": "Spring", "units": 10})
    budget = Budget.objects.get()
    more = {"units": 5, "granted_before": 10}
    client.post(reverse("budget-add", args=[budget.pk]), more)
    again = client.post(reverse("budget-add", args=[budget.pk]), more)

    assert budget.units.count() == 15
    assert again.status_code == 409


@pytest.mark.parametrize("data", [{"name": "", "units": 4}, {"name": "x", "units": 0}, {"name": "x", "units": "lots"}])
def test_a_budget_without_name_or_size_is_sent_back(data, pool, manager, login):
    response = login(manager).post(reverse("budget-new", args=[pool.slug]), data)

    assert response.status_code == 422
    assert not Budget.objects.exists()


def test_the_cost_of_a_round_is_shown_before_it_is_opened(pool, manager, login):
    run = factories.make_run(pool=pool, n_picks=4)
    factories.make_budget(pool=pool, units=10)

    html = login(manager).get(reverse("round-new", args=[run.pk])).content.decode()

    assert "4 × 2 + 4 held back = 12" in html
    assert "holds 2 of 4" in html  # for disagreements
    assert "2 missing" in html  # with three answers each
    assert "25.0% of the training set" in html


def test_a_round_is_opened_or_refused_with_what_is_missing(pool, manager, login):
    run, budget = factories.make_run(pool=pool, n_picks=4), factories.make_budget(pool=pool, units=10)
    client, url = login(manager), reverse("round-new", args=[run.pk])

    given = {"budget": budget.pk, "blindness": "reveal_after", "control_share": 0.1}
    refused = client.post(url, {**given, "overlap": 3})
    opened = client.post(url, {**given, "overlap": 2})

    assert refused.status_code == 422
    assert "2 too few" in refused.content.decode()
    assert opened["Location"] == reverse("round", args=[Round.objects.get().pk])


def test_another_pools_budget_cannot_pay(pool, manager, login):
    run, elsewhere = factories.make_run(pool=pool, n_picks=1), factories.make_budget(units=10)

    response = login(manager).post(
        reverse("round-new", args=[run.pk]),
        {"budget": elsewhere.pk, "overlap": 1, "blindness": "blind", "control_share": 0},
    )

    assert response.status_code == 422
    assert not Round.objects.exists()


def test_a_round_page_says_who_holds_what_and_polls_itself(world, manager, annotator, login):
    client, url = login(manager), reverse("round", args=[world.round.pk])

    page, part = client.get(url).content.decode(), client.get(url, **HX).content.decode()

    assert f"{annotator} until <time" in page
    assert "With an adjudicator" in page
    assert "Annotators agree on 1 of 2 questions; so few say little" in page
    assert part.strip().startswith('<div id="round-progress"')
    assert "every 5s" in part


def test_a_round_is_paused_resumed_and_closed(world, manager, annotator, login):
    client, url = login(manager), reverse("round-status", args=[world.round.pk])

    for to, status in (("pause", "paused"), ("resume", "live"), ("close", "closed"), ("resume", "closed")):
        client.post(url, {"to": to})
        assert Round.objects.get().status == status

    assert "every 5s" not in client.get(reverse("round", args=[world.round.pk])).content.decode()


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        ("paused", "The round is paused"),
        ("held", "held by others"),
        ("done", "You have done everything you are eligible for"),
    ],
)
def test_an_empty_queue_says_which_kind_of_empty(prepare, said, pool, annotator, other_annotator, login):
    round = factories.make_round(pool=pool, overlap=2 if prepare == "done" else 1)
    if prepare == "paused":
        Round.objects.update(status="paused")
    elif prepare == "held":
        factories.make_held_slot(round=round, user=other_annotator)
    else:
        slot = annotation.claim_slot(round=round, user=annotator)
        annotation.submit_annotation(slot=slot, answer="1", idempotency_key=uuid.uuid4(), by=annotator)

    page = login(annotator).post(reverse("annotate", args=[round.pk]), follow=True)

    assert said in page.content.decode()


def test_the_start_page_offers_the_next_question(pool, annotator, adjudicator, login):
    factories.make_round(pool=pool, n_questions=3)

    assert "3 questions for you" in login(annotator).get("/").content.decode()
    assert "Nothing for you just now" in login(adjudicator).get("/").content.decode()


def test_exporting_without_gold_answers_says_why_not(pool, manager, login):
    response = login(manager).post(reverse("export-new", args=[pool.slug]), {"format": "trl"})

    assert response.status_code == 422
    assert "gold answer" in response.content.decode()
    assert not Export.objects.exists()


def test_gold_answers_are_written_and_handed_out_byte_by_byte(world, manager, login, settings, tmp_path):
    client = login(manager)

    page = client.post(reverse("export-new", args=[world.pool.slug]), {"format": "trl"}, follow=True)
    export = Export.objects.get(format="trl")

    assert "Written for TRL" in page.content.decode()
    for file in export.files:
        assert file["sha256"] in page.content.decode()
        response = client.get(reverse("export-file", args=[export.pk, file["name"]]))
        assert response["Content-Disposition"] == f'attachment; filename="{file["name"]}"'
        assert len(b"".join(response.streaming_content)) == file["bytes"]


def test_a_gold_answer_that_does_not_verify_is_named(world, manager, login):
    gold = GoldAnswer.objects.get()
    gold.answer = "{1, 2"
    gold.save()

    response = login(manager).post(reverse("export-new", args=[world.pool.slug]), {"format": "trl"})

    assert response.status_code == 422
    assert f"<code>{gold.question.uid}</code>" in response.content.decode()


def test_only_files_of_the_export_are_handed_out(world, manager, login, tmp_path):
    export = make_export(pool=world.pool, directory=tmp_path)
    (tmp_path / "secret.txt").write_text("x")
    client = login(manager)

    for name in ("secret.txt", "../secret.txt", "train.jsonl/../secret.txt"):
        assert client.get(f"/exports/{export.pk}/{name}").status_code == 404

    (tmp_path / "train.jsonl").write_text("changed")
    assert client.get(f"/exports/{export.pk}/train.jsonl").status_code == 409
