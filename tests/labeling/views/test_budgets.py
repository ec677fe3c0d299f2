"""The page of a budget: where its units are, and every movement of them."""

from uuid import uuid4

import pytest
from django.urls import reverse

from labeling.actions.adjudication import claim_adjudication, decide
from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.budgets import add_units, grant_budget
from labeling.actions.revising import undo
from labeling.actions.rounds import close_round, open_round
from tests import factories


@pytest.fixture
def spent(pool, manager, annotator, other_annotator, adjudicator):
    """A budget that paid for a disagreement, its decision, and a second question that nobody answered."""
    budget = grant_budget(pool=pool, name="Autumn", units=6, by=manager)
    add_units(budget=budget, units=2, by=manager)
    round = open_round(run=factories.make_run(pool=pool, n_picks=2), budget=budget, overlap=2, by=manager)
    for user, text in ((annotator, "1"), (other_annotator, "2")):
        slot = claim_slot(user=user, pool=pool)
        submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user)
    undo(slot=slot, by=other_annotator)
    submit_annotation(slot=slot, answer="2", idempotency_key=uuid4(), by=other_annotator)
    dispute = claim_adjudication(user=adjudicator, pool=pool)
    decide(slot=dispute, answer="1", idempotency_key=uuid4(), by=adjudicator)
    close_round(round=round, by=manager)
    return budget, round


def test_every_movement_is_listed_with_who_and_what_for(client, manager, spent):
    budget, round = spent
    question = round.slots.order_by("priority")[0].question.uid
    client.force_login(manager)

    response = client.get(reverse("budget", args=[budget.pk]))

    movements = [(each.who, each.what, each.effect) for each in reversed(response.context["movements"])]
    assert movements == [
        ("manager", "Granted", "+6 granted"),
        ("manager", "Units added", "+2 granted"),
        ("manager", f"Round {round.pk} opened: 2 × 2", "4 reserved, 2 held back"),
        ("annotator", f"Answer to {question}", "1 spent"),
        ("other_annotator", f"Answer to {question}", "1 spent"),
        ("", f"Disagreement on {question} goes to an adjudicator", "1 reserved"),
        ("other_annotator", f"No disagreement on {question} any more", "1 given back"),
        ("other_annotator", f"Answer to {question} taken back", "1 reserved again"),
        ("other_annotator", f"Answer to {question}", "1 spent"),
        ("", f"Disagreement on {question} goes to an adjudicator", "1 reserved"),
        ("adjudicator", f"Decision on {question}", "1 spent"),
        ("manager", f"Round {round.pk} closed", "2 given back, 1 no longer held back"),
    ]


def test_the_figures_add_up_and_the_bar_shows_them(client, manager, spent):
    budget, _ = spent
    client.force_login(manager)

    response = client.get(reverse("budget", args=[budget.pk]))

    row = response.context["row"]
    assert (row.granted, row.spent, row.reserved, row.held, row.free, row.refunded) == (8, 3, 0, 0, 5, 3)
    assert sum(part["width"] for part in response.context["parts"]) == pytest.approx(1000)
    assert "3 spent, 0 reserved, 0 held back and 5 free, of 8" in response.content.decode()


def test_the_queries_do_not_grow_with_the_movements(client, manager, spent, django_assert_max_num_queries):
    budget, _ = spent
    client.force_login(manager)
    address = reverse("budget", args=[budget.pk])
    with django_assert_max_num_queries(12) as first:
        client.get(address)
    for _ in range(20):
        add_units(budget=budget, units=1, by=manager)

    with django_assert_max_num_queries(len(first)):
        client.get(address)


def test_the_cost_is_shown_before_a_round_opens(client, manager, pool):
    run = factories.make_run(pool=pool, n_picks=3)
    factories.make_budget(pool=pool, name="Small", units=8)
    client.force_login(manager)

    response = client.get(reverse("round-new", args=[run.pk]))

    costs = response.context["costs"]
    assert [(cost.answers, cost.held, cost.total) for cost in costs] == [(3, 0, 3), (6, 3, 9), (9, 3, 12)]
    assert [(on.missing, on.held, on.left) for cost in costs for on in cost.budgets] == [
        (0, 0, 5),
        (0, 2, 0),
        (1, 0, 0),
    ]
    page = response.content.decode()
    assert "3 × 2 + 3 held back = 9" in page
    assert "holds 2 of 3" in page
    assert "1 missing" in page


def test_a_round_that_is_to_hold_more_than_there_is_is_refused_on_the_form(client, manager, pool):
    run = factories.make_run(pool=pool, n_picks=3)
    budget = factories.make_budget(pool=pool, units=8)
    client.force_login(manager)
    form = {"budget": budget.pk, "overlap": 2, "held": 4, "blindness": "blind", "control_share": 0}

    response = client.post(reverse("round-new", args=[run.pk]), form)

    assert response.status_code == 422
    assert "need 10 units" in response.content.decode()
    assert not run.rounds.exists()
