from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from labeling.actions.annotation import claim_slot, mark_unanswerable, submit_annotation
from labeling.actions.people import create_invitation
from labeling.actions.pools import save_guideline
from labeling.models import Role, Slot
from labeling.queries.adjudication import disagreement
from labeling.queries.people import members_of, open_invitations
from labeling.queries.pools import (
    budgets_of,
    current_guideline,
    guideline_versions,
    pool_counts,
    pools_for,
    recent_events,
)
from labeling.queries.queue import empty_queue, read_answer, recent_annotations, slot_for, work_for
from labeling.queries.rounds import QuestionState, round_progress, rounds_of
from tests import factories


def n_queries(read) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        result = read()
        for row in result if hasattr(result, "__iter__") else ():
            str(row)
    return len(captured)


def submit(user, pool, text):
    slot = claim_slot(user=user, pool=pool)
    return submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=user)


def test_progress_says_where_each_question_stands(pool, annotator, other_annotator):
    round = factories.make_round(pool=pool, n_questions=3, overlap=2, units=7)
    submit(annotator, pool, "1/2")
    submit(other_annotator, pool, "0.5")
    submit(annotator, pool, "3")
    claim_slot(user=annotator, pool=pool)

    progress = round_progress(round=round)

    assert [question.state for question in progress.questions] == [
        QuestionState.GOLD,
        QuestionState.ANSWERING,
        QuestionState.ANSWERING,
    ]
    assert [question.n_answers for question in progress.questions] == [2, 1, 0]
    assert [question.rank for question in progress.questions] == [1, 2, 3]
    assert progress.questions[0].gold.answer == "1/2"
    (hold,) = progress.holds
    assert (hold.user, hold.has_lapsed) == (annotator, False)
    assert (progress.n_slots, progress.n_slots_done, progress.n_gold) == (6, 3, 1)
    assert (progress.budget.spent, progress.budget.reserved, progress.budget.free) == (3, 3, 1)
    assert not progress.is_finished


def test_progress_warns_of_missing_people(pool):
    warnings = round_progress(round=factories.make_round(pool=pool, overlap=2)).warnings

    assert [text for text in warnings if "wants 2 annotators; the pool has 0" in text]
    assert [text for text in warnings if "no adjudicator" in text]


def test_an_adjudicator_sees_groups_of_answers_without_names(pool, annotator, other_annotator, adjudicator):
    third = factories.make_user(username="third", pool=pool, roles=(Role.ANNOTATOR,))
    fourth = factories.make_user(username="fourth", pool=pool, roles=(Role.ANNOTATOR,))
    round = factories.make_round(pool=pool, overlap=4, units=5)
    for user, answer in ((annotator, "1/2"), (other_annotator, "0.50"), (third, "2")):
        submit(user, pool, answer)
    mark_unanswerable(
        slot=claim_slot(user=fourth, pool=pool),
        reason="ill_posed",
        note="no domain",
        idempotency_key=uuid4(),
        by=fourth,
    )
    slot = Slot.objects.get(purpose="adjudication")

    groups = disagreement(slot=slot).groups

    assert [group.letter for group in groups] == ["A", "B", "C"]
    assert sorted((group.answers, group.n_answers) for group in groups) == [((), 1), (("1/2", "0.50"), 2), (("2",), 1)]
    (unanswerable,) = (group for group in groups if group.is_unanswerable)
    assert (unanswerable.reasons, unanswerable.notes) == (("Ill-posed",), ("no domain",))
    for user in (annotator, other_annotator, third, fourth):
        assert user.username not in repr(groups)
    assert round_progress(round=round).questions[0].state == QuestionState.ADJUDICATING


def test_a_slot_is_found_by_those_it_was_given_to(pool, annotator, other_annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)

    assert slot_for(user=annotator, slot_id=slot.pk) == slot
    assert slot_for(user=other_annotator, slot_id=slot.pk) is None
    assert slot_for(user=annotator, slot_id=slot.pk + 1) is None


def test_an_answer_is_read_back_as_a_grader_reads_it(pool, annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)

    assert read_answer(slot=slot, answer=" 0.5 ").readable
    assert not read_answer(slot=slot, answer="about a dozen").readable


def test_the_queue_tells_adjudicators_why_it_is_empty(pool, adjudicator, annotator):
    def why():
        return empty_queue(user=adjudicator, pool=pool, purpose="adjudication").code

    assert why() == "no_round"
    factories.make_round(pool=pool)
    assert why() == "no_disagreement"
    submit(annotator, pool, "1")
    assert why() == "all_done"


def test_work_lists_what_is_free_for_the_person(pool, annotator, adjudicator, outsider):
    round = factories.make_round(pool=pool, n_questions=3, overlap=2)
    factories.make_round(pool=pool, status="paused")
    submit(annotator, pool, "1")
    held = claim_slot(user=annotator, pool=pool)

    (row,) = work_for(user=annotator)
    (theirs,) = work_for(user=adjudicator)

    assert (row.round, row.role, row.n_free, row.held, row.n_done) == (round, Role.ANNOTATOR, 1, held, 1)
    assert (theirs.role, theirs.n_free, theirs.held, theirs.n_done) == (Role.ADJUDICATOR, 0, None, 0)
    assert work_for(user=outsider) == []


def test_pools_are_listed_for_their_people_only(pool, manager, outsider):
    factories.make_question(pool=pool)
    other = factories.make_pool()

    (row,) = pools_for(user=manager)

    assert (row.pool, row.roles, row.n_questions, row.n_labeled) == (pool, {Role.MANAGER}, 1, 0)
    assert pools_for(user=outsider) == []
    root = factories.make_user(is_superuser=True)
    assert [row.pool for row in pools_for(user=root)] == [pool, other]


def test_a_pool_is_counted(pool, manager, annotator):
    factories.make_round(pool=pool, n_questions=2)
    submit(annotator, pool, "1")

    counts = pool_counts(pool=pool)

    assert (counts.n_questions, counts.n_labeled, counts.n_runs, counts.n_rounds, counts.n_members) == (2, 1, 1, 1, 2)


def test_guidelines_and_events_come_newest_first(pool, manager):
    assert current_guideline(pool=pool) is None
    save_guideline(pool=pool, text="One", by=manager)
    latest = save_guideline(pool=pool, text="Two", by=manager)

    assert current_guideline(pool=pool) == latest
    assert [guideline.version for guideline in guideline_versions(pool=pool)] == [2, 1]
    assert [event.details["version"] for event in recent_events(pool=pool)] == [2, 1]


def test_members_are_listed_with_what_they_did(pool, manager, annotator):
    factories.make_membership(pool=pool, user=annotator, role=Role.ADJUDICATOR)
    factories.make_round(pool=pool)
    submit(annotator, pool, "1")
    elsewhere = factories.make_pool()
    factories.make_membership(pool=elsewhere, user=annotator)
    factories.make_round(pool=elsewhere)
    submit(annotator, elsewhere, "1")

    rows = {member.user: member for member in members_of(pool=pool)}

    assert (rows[annotator].roles, rows[annotator].n_answers) == ((Role.ANNOTATOR, Role.ADJUDICATOR), 1)
    assert rows[annotator].last_answer_at is not None
    assert (rows[manager].n_answers, rows[manager].last_answer_at) == (0, None)


@pytest.fixture
def lists(pool, manager, annotator):
    """Every list query, by name."""
    round = factories.make_round(pool=pool)
    return {
        "pools_for": lambda: pools_for(user=annotator),
        "budgets_of": lambda: budgets_of(pool=pool),
        "guideline_versions": lambda: guideline_versions(pool=pool),
        "recent_events": lambda: recent_events(pool=pool),
        "members_of": lambda: members_of(pool=pool),
        "open_invitations": lambda: open_invitations(pool=pool),
        "rounds_of": lambda: rounds_of(pool=pool),
        "round_progress": lambda: round_progress(round=round).questions,
        "recent_annotations": lambda: recent_annotations(user=annotator, pool=pool),
        "work_for": lambda: work_for(user=annotator),
    }


def add_rows(n, pool, manager, annotator):
    for _ in range(n):
        other = factories.make_pool()
        factories.make_membership(pool=other, user=annotator)
        factories.make_user(pool=pool, roles=(Role.ANNOTATOR,))
        create_invitation(pool=pool, role="annotator", by=manager)
        save_guideline(pool=pool, text=f"Version {n} {_}", by=manager)
        round = factories.make_round(pool=pool, n_questions=2)
        factories.make_held_slot(round=round, user=annotator)
        submit(annotator, pool, "1")


def test_lists_take_as_many_queries_for_twenty_rows_as_for_one(lists, pool, manager, annotator):
    add_rows(1, pool, manager, annotator)
    at_one = {name: n_queries(read) for name, read in lists.items()}
    add_rows(19, pool, manager, annotator)

    at_twenty = {name: n_queries(read) for name, read in lists.items()}

    assert at_twenty == at_one
    assert max(at_one.values()) <= 9


def test_progress_of_a_long_round_takes_as_many_queries_as_of_a_short_one(pool, annotator):
    short = factories.make_round(pool=pool, n_questions=1, overlap=2)
    long = factories.make_round(pool=pool, n_questions=20, overlap=2)
    submit(annotator, pool, "1")

    assert n_queries(lambda: round_progress(round=short).holds) == n_queries(lambda: round_progress(round=long).holds)
