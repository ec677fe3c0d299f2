"""The start page and a round's page: what a manager must know to act, and nobody else is shown."""

from uuid import uuid4

import pytest
from django.urls import reverse

from labeling.actions.annotation import claim_slot, submit_annotation
from tests import factories
from tests.labeling.views.conftest import HX

ONLY_MANAGERS = ("What needs you", "Who is waiting for whom", "Time per question", "has it in hand")


@pytest.fixture
def round(pool, annotator, other_annotator):
    """One question answered once, one in hand, one untouched."""
    round = factories.make_round(pool=pool, n_questions=3, overlap=2, units=7)
    slot = claim_slot(user=annotator, round=round)
    submit_annotation(slot=slot, answer="3", idempotency_key=uuid4(), by=annotator, seconds_spent=90.0)
    claim_slot(user=annotator, round=round)
    return round


def test_a_manager_sees_who_waits_for_whom_and_how_long_answers_take(round, manager, login):
    html = login(manager).get(reverse("round", args=[round.pk])).content.decode()

    for shown in (
        "<strong>annotator</strong> has it in hand",
        "other_annotator could take it",
        "1 more question has not been taken",
        "median 1 min 30 s",
        'data-chart="bars"',
        '<td class="number">1.5</td>',
    ):
        assert shown in html, shown


def test_polling_a_round_keeps_who_waits_fresh_and_leaves_the_picture_alone(round, manager, login):
    part = login(manager).get(reverse("round", args=[round.pk]), **HX).content.decode()

    assert "Who is waiting for whom" in part
    assert "data-chart" not in part


def test_a_question_that_nobody_is_left_to_answer_leads_to_inviting_somebody(pool, manager, annotator, login):
    round = factories.make_round(pool=pool, overlap=2)
    slot = claim_slot(user=annotator, round=round)
    submit_annotation(slot=slot, answer="3", idempotency_key=uuid4(), by=annotator)

    html = login(manager).get(reverse("round", args=[round.pk])).content.decode()

    assert "1 cannot go on" in html
    assert f'<a href="{reverse("pool-people", args=[pool.slug])}">Invite somebody</a>' in html


def test_the_start_page_lists_what_needs_a_manager_with_where_to_act(round, pool, manager, login):
    run = factories.make_run(pool=pool, status="failed", error="It <broke>.")
    degenerate = {"calibration": {"degenerate": True, "smallest_useful_alpha": {"alpha": "0.25"}}}
    factories.make_run(pool=pool, report=degenerate)

    html = login(manager).get(reverse("home")).content.decode()

    assert "It &lt;broke&gt;." in html
    assert f'href="{reverse("run", args=[run.pk])}"' in html
    assert f'href="{reverse("run-new", args=[pool.slug])}?alpha=0.25"' in html
    assert "1 of 6 answers are in." in html


def test_a_manager_for_whom_nothing_waits_is_told_so(pool, manager, login):
    assert "Nothing needs you just now" in login(manager).get(reverse("home")).content.decode()


@pytest.mark.parametrize("who", ["annotator", "other_annotator", "adjudicator"])
def test_nobody_else_is_shown_any_of_it(who, round, pool, request, login):
    factories.make_run(pool=pool, status="failed", error="It broke.")
    client = login(request.getfixturevalue(who))

    for url in (reverse("home"), reverse("round", args=[round.pk]), reverse("pool", args=[pool.slug])):
        html = client.get(url).content.decode()
        for secret in (*ONLY_MANAGERS, "It broke."):
            assert secret not in html, (url, secret)
