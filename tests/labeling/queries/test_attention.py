"""What the start page says needs a manager: each kind, when it shows, when it is over, and where it leads."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.models import Comparison, Flag, ImportBatch, Role, Round, SelectionRun, Slot
from labeling.queries.attention import matters, runs_under_way, unfinished_rounds
from tests import factories

NOW = timezone.now


def kinds(user):
    return [matter.kind for matter in matters(user)]


def the(user, kind):
    (found,) = (matter for matter in matters(user) if matter.kind == kind)
    reverse(found.address[0], args=[found.address[1]])  # leads somewhere
    return found


@pytest.fixture
def two(pool, annotator, other_annotator):
    """Two annotators, so that a round of overlap 2 has all its people."""
    return annotator, other_annotator


def answer(user, round, text):
    slot = claim_slot(user=user, round=round)
    submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user)


def disagree(round, users):
    for user, text in zip(users, ("1", "2"), strict=True):
        answer(user, round, text)


def test_nothing_needs_a_manager_of_an_empty_pool_or_anybody_else(pool, manager, annotator, outsider):
    factories.make_run(pool=pool, status="failed", error="It broke.")

    assert kinds(manager) == ["failed_run"]
    assert (kinds(annotator), kinds(outsider)) == ([], [])
    assert list(runs_under_way(annotator)) == list(unfinished_rounds(annotator)) == []


def test_a_failed_comparison_until_it_is_tried_again(pool, manager, outsider):
    run = factories.make_run(pool=pool)
    comparison = Comparison.objects.create(
        run=run, strategies=["const", "random"], budget=1, n_bootstrap=10, status="failed", error="It broke."
    )

    found = the(manager, "failed_comparison")
    assert (found.title, found.words, found.address) == (
        f"Comparison {comparison.pk}",
        "It broke.",
        ("comparison", comparison.pk),
    )
    assert "failed_comparison" not in kinds(outsider)

    Comparison.objects.filter(pk=comparison.pk).update(status="queued")
    assert "failed_comparison" not in kinds(manager)


def test_a_failed_run_until_it_is_tried_again(pool, manager):
    run = factories.make_run(pool=pool, status="failed", error="It broke.")

    found = the(manager, "failed_run")
    assert (found.words, found.address, found.action) == ("It broke.", ("run", run.pk), "Look and retry")

    SelectionRun.objects.filter(pk=run.pk).update(status="queued")
    assert kinds(manager) == []
    assert list(runs_under_way(manager)) == [run]


def test_a_run_that_no_worker_takes(pool, manager):
    run = factories.make_run(pool=pool, status="queued")
    SelectionRun.objects.filter(pk=run.pk).update(created_at=NOW() - timedelta(minutes=1))

    assert the(manager, "no_worker").address == ("run", run.pk)


def test_finished_runs_are_one_matter_a_pool_until_a_round_is_opened(pool, manager, annotator):
    factories.make_run(pool=pool, n_picks=1)
    newest = factories.make_run(pool=pool, n_picks=2)

    found = the(manager, "no_round")
    assert found.address == ("round-new", newest.pk)
    assert "It picked 2 questions" in found.words
    assert "1 earlier run did too" in found.words

    factories.make_round(run=newest, pool=pool)
    assert kinds(manager) == []


@pytest.mark.parametrize(
    ("useful", "address", "query"), [({"alpha": "0.25"}, "run-new", "alpha=0.25"), (None, "run", "")]
)
def test_a_degenerate_calibration_leads_to_the_alpha_that_is_not(useful, address, query, pool, manager):
    report = {"calibration": {"degenerate": True, "smallest_useful_alpha": useful}}
    factories.make_run(pool=pool, n_picks=1, report=report)

    found = the(manager, "degenerate")
    assert (found.tone, found.address[0], found.query) == ("danger", address, query)
    assert ("0.25" in found.words) == bool(useful)
    assert "no_round" not in kinds(manager)


def test_a_calibration_that_is_not_degenerate_is_no_matter(pool, manager):
    factories.make_run(pool=pool, n_picks=1, report={"calibration": {"degenerate": False}})

    assert kinds(manager) == ["no_round"]


def test_a_disagreement_waits_for_an_adjudicator_or_for_there_to_be_one(pool, manager, two):
    round = factories.make_round(pool=pool, overlap=2, units=4)
    disagree(round, two)

    assert the(manager, "no_adjudicator").address == ("pool-people", pool.slug)

    adjudicator = factories.make_user(pool=pool, roles=(Role.ADJUDICATOR,))
    found = the(manager, "disputes")
    assert (found.words, found.address) == ("1 disagreement waits for an adjudicator.", ("round", round.pk))

    slot = round.slots.get(purpose="adjudication")
    factories.make_held_slot(round=round, user=adjudicator, slot=slot)
    assert kinds(manager) == []


def test_a_disagreement_that_no_unit_can_pay(pool, manager, two):
    round = factories.make_round(pool=pool, overlap=2, units=2)
    disagree(round, two)

    found = the(manager, "no_unit")
    assert "1 disagreement waits" in found.words
    assert found.address == ("budget-new", pool.slug)
    assert "settled" not in kinds(manager)


def test_a_budget_that_is_nearly_spent_while_disagreements_may_come(pool, manager, two):
    factories.make_round(pool=pool, n_questions=5, overlap=2, units=11)

    assert "1 unit of 11 is left" in the(manager, "nearly_spent").words

    Round.objects.update(status="closed", closed_at=NOW())
    assert kinds(manager) == []


def test_a_budget_with_something_left_or_a_round_without_overlap_is_no_matter(pool, manager, two):
    factories.make_round(pool=pool, n_questions=5, overlap=2, units=12)
    factories.make_round(pool=pool, n_questions=5, overlap=1)

    assert kinds(manager) == []


def test_units_held_back_for_another_round_do_not_count(pool, manager, two):
    budget = factories.make_budget(pool=pool, units=10)
    first = factories.make_round(pool=pool, overlap=2, budget=budget)
    other = factories.make_round(pool=pool, overlap=2, budget=budget)
    budget.units.untaken().update(held_for=other)

    assert [matter.title for matter in matters(manager) if matter.kind == "nearly_spent"] == [str(first)]


def test_a_flag_that_somebody_raised_of_late(pool, manager, two):
    round = factories.make_round(pool=pool)
    slot = claim_slot(user=two[0], round=round)
    Flag.objects.create(slot=slot, by=two[0], note="The figure is missing.")

    assert the(manager, "flags").words == "1 flag raised: somebody wants you to look at a question."


def test_a_round_with_too_few_people(pool, manager, annotator):
    factories.make_round(pool=pool, overlap=2, units=9)

    found = the(manager, "no_annotator")
    assert found.words == "Each question wants 2 annotators; the pool has 1."
    assert found.address == ("pool-people", pool.slug)


def test_a_round_in_which_nobody_takes_a_question(pool, manager, two):
    round = factories.make_round(pool=pool, n_questions=3)
    assert kinds(manager) == []

    SelectionRun.objects.update(created_at=NOW() - timedelta(days=4))
    Round.objects.filter(pk=round.pk).update(created_at=NOW() - timedelta(days=3))
    found = the(manager, "stuck")
    assert found.words == "Nobody has taken a question for 3 days; 3 answers wait."
    assert found.address == ("round", round.pk)

    claim_slot(user=two[0], round=round)
    assert kinds(manager) == []


def test_questions_whose_time_ran_out(pool, manager, two):
    round = factories.make_round(pool=pool, n_questions=3)
    slot = factories.make_held_slot(round=round, user=two[0], lapsed=True)
    assert kinds(manager) == []  # a minute late is late for nobody

    Slot.objects.filter(pk=slot.pk).update(lease_until=NOW() - timedelta(hours=2))
    assert "1 question taken" in the(manager, "lapsed").words


def test_a_paused_round_and_one_that_is_done(pool, manager, two):
    paused = factories.make_round(pool=pool, n_questions=2, status="paused")
    done = factories.make_round(pool=pool)
    answer(two[0], done, "3")

    assert the(manager, "paused").address == ("round", paused.pk)
    assert the(manager, "settled").address == ("round", done.pk)


def test_imports_that_wait_or_left_lines_behind(pool, manager):
    elsewhere = factories.make_pool()
    made = {"filename": "a.jsonl", "sha256": "0" * 64}
    pending = ImportBatch.objects.create(pool=pool, counts={"new": 3}, **made)
    committed = ImportBatch.objects.create(
        pool=pool, counts={"rejected": 2}, status="committed", committed_at=NOW(), **made
    )
    ImportBatch.objects.create(pool=pool, counts={"rejected": 0}, status="committed", committed_at=NOW(), **made)
    ImportBatch.objects.create(
        pool=pool, counts={"rejected": 2}, status="committed", committed_at=NOW() - timedelta(days=8), **made
    )
    ImportBatch.objects.create(pool=elsewhere, counts={"new": 3}, **made)
    ImportBatch.objects.create(new_set="Keys", new_set_pool=pool, counts={"new": 1}, **made)

    found = [(matter.kind, matter.where, matter.words) for matter in matters(manager)]

    assert found == [
        ("pending_import", "Keys", "1 new row in it; nothing is imported before you say so."),
        ("pending_import", pool, "3 new rows in it; nothing is imported before you say so."),
        ("rejected_lines", pool, "2 lines could not be imported."),
    ]
    assert [matter.address for matter in matters(manager)][1:] == [
        ("import-preview", pending.pk),
        ("import-preview", committed.pk),
    ]


def test_what_stands_still_comes_before_what_waits(pool, manager, two):
    factories.make_round(pool=pool, status="paused")
    factories.make_run(pool=pool, status="failed")

    assert [matter.tone for matter in matters(manager)] == ["danger", "gold"]


def test_many_matters_take_as_many_queries_as_few(
    pool, manager, two, django_assert_num_queries, django_assert_max_num_queries
):
    def more(n):
        for _ in range(n):
            factories.make_run(pool=pool, status="failed")
            disagree(factories.make_round(pool=pool, overlap=2, units=2), two)

    more(1)
    with django_assert_max_num_queries(13) as few:
        matters(manager)
    more(6)

    with django_assert_num_queries(len(few.captured_queries)):
        assert kinds(manager).count("no_unit") == 7
