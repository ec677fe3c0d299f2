"""Asking for a run, cancelling it and trying it again: what is refused, and what repeating does."""

from datetime import timedelta

import pytest
from django.utils import timezone

from labeling.actions.runs import cancel_run, create_run, retry_run
from labeling.errors import Conflict, EngineFailure, LabelingError, NotAllowed
from labeling.models import AuditEvent, RecordedVotes, SelectionRun
from labeling.runs.lease import claim
from tests import factories

Status = SelectionRun.Status


@pytest.fixture
def run(new_run, scripted_model) -> SelectionRun:
    return new_run(policy_model=scripted_model())


def test_a_manager_queues_a_run(new_run, scripted_model, manager):
    run = new_run(policy_model=scripted_model(), by=manager, strategy="entropy", seed=7)

    assert (run.status, run.created_by) == (Status.QUEUED, manager)
    assert (run.config["strategy"], run.config["seed"], run.config["preset_name"]) == ("entropy", 7, "recommended")
    assert AuditEvent.objects.filter(action="run.created", actor=manager, pool=run.pool).exists()


def test_nobody_else_does(new_run, scripted_model, annotator, outsider):
    for person in (annotator, outsider):
        with pytest.raises(NotAllowed):
            new_run(policy_model=scripted_model(), by=person)


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"budget": 13}, "pool_too_small", "12 questions"),
        ({"budget": 8, "question_limit": 7}, "pool_too_small", "7 questions"),
        ({"alpha": "0.05"}, "calibration_set_too_small", "needs at least 19"),
        ({"alpha": "1.5"}, "invalid_config", "alpha"),
        ({"strategy": "best"}, "invalid_config", "strategy"),
        ({"seed": 2**32}, "invalid_config", "4294967295"),
        ({"question_limit": 0}, "invalid_run", "between 1 and"),
        ({"question_limit": 10**30}, "invalid_run", "between 1 and"),
        ({"n_clusters": 5}, "invalid_config", "bring 3 clusters"),
        ({"embedder": "no-such/embedder-of-anybody"}, "model_not_found", "no-such/embedder-of-anybody"),
        ({"embedder": ""}, "invalid_run", "Name an embedder"),
        ({"generation_fingerprint": "both"}, "invalid_run", "either a policy model or recorded votes"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_queued(
    new_run, scripted_model, filled_pool, fields, code, words
):
    if "embedder" in fields:
        filled_pool.questions.update(metadata={})

    with pytest.raises(LabelingError) as refused:
        new_run(policy_model=scripted_model(), **fields)

    assert refused.value.code == code
    assert words in refused.value.message
    assert not SelectionRun.objects.exists()


def test_questions_that_cannot_be_picked_do_not_count_towards_the_budget(new_run, scripted_model, filled_pool):
    known = filled_pool.questions.first()
    labeled = factories.make_calibration_set(n_items=11)
    factories.make_calibration_item(calibration_set=labeled, text=known.text, fingerprint=known.fingerprint)
    run = factories.make_run(pool=filled_pool, questions=list(filled_pool.questions.all()[1:5]))
    factories.make_round(run=run)

    with pytest.raises(EngineFailure, match="Of 12 questions 7 can be picked; the budget asks for 8"):
        new_run(policy_model=scripted_model(), budget=8, calibration_set=labeled)
    assert new_run(policy_model=scripted_model(), budget=7, calibration_set=labeled).pk


def test_recorded_votes_without_clusters_need_an_embedder(new_run, filled_pool, calibration_set):
    filled_pool.questions.update(metadata={})
    rows = [*filled_pool.questions.all(), *calibration_set.items.all()]
    for row in rows:
        votes = {"id": row.uid, "outcome_answers": ["1"], "probe_answers": ["1"]}
        RecordedVotes.objects.create(
            question_fingerprint=row.fingerprint, question_uid=row.uid, generation_fingerprint="gpu", votes=votes
        )

    with pytest.raises(LabelingError, match="Name an embedder"):
        new_run(generation_fingerprint="gpu")

    for recorded in RecordedVotes.objects.all():
        recorded.votes["cluster"] = recorded.pk % 3
        recorded.save()
    assert new_run(generation_fingerprint="gpu").pk


def test_another_pools_calibration_set_is_refused(new_run, scripted_model):
    other = factories.make_calibration_set(pool=factories.make_pool(name="Geometry"), n_items=12)

    with pytest.raises(LabelingError, match="belongs to the pool “Geometry”"):
        new_run(policy_model=scripted_model(), calibration_set=other)


def test_a_run_without_any_source_of_answers_is_refused(new_run):
    with pytest.raises(LabelingError, match="where the answers come from"):
        new_run()


def test_a_queued_run_is_cancelled_at_once_and_cancelling_again_changes_nothing(run, manager):
    assert cancel_run(run, by=manager).status == Status.CANCELLED
    n_events = AuditEvent.objects.count()

    assert cancel_run(run, by=manager).status == Status.CANCELLED
    assert AuditEvent.objects.count() == n_events
    assert claim(run.pk) is None


def test_a_running_run_is_told_to_stop(run, manager):
    lease = claim(run.pk)

    run = cancel_run(run, by=manager)

    assert (run.status, run.cancel_requested) == (Status.RUNNING, True)
    assert lease.is_cancelled()


def test_a_run_whose_worker_died_is_cancelled_at_once(run, manager):
    claim(run.pk)
    SelectionRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    assert cancel_run(run, by=manager).status == Status.CANCELLED


@pytest.mark.parametrize("status", [Status.FINISHED, Status.FAILED])
def test_an_ended_run_cannot_be_cancelled(run, manager, status):
    claim(run.pk).end(status)

    with pytest.raises(Conflict, match="nothing to cancel"):
        cancel_run(run, by=manager)


def test_a_failed_run_is_retried_with_a_clean_slate(run, manager):
    claim(run.pk).end(Status.FAILED, error_code="unexpected", error="Oh", traceback="Traceback")

    run = retry_run(run, by=manager)

    assert (run.status, run.error_code, run.error, run.traceback, run.attempts) == (Status.QUEUED, "", "", "", 0)


def test_only_failed_and_cancelled_runs_are_retried_and_only_once(run, manager):
    with pytest.raises(Conflict, match="queued"):
        retry_run(run, by=manager)
    cancel_run(run, by=manager)
    retry_run(run, by=manager)

    with pytest.raises(Conflict):
        retry_run(run, by=manager)


def test_what_would_fail_the_same_way_is_not_retried(run, manager):
    SelectionRun.objects.filter(pk=run.pk).update(
        status=Status.FAILED, error_code="invalid_config", error="seed is too large."
    )
    run.refresh_from_db()

    assert not run.may_be_retried
    with pytest.raises(Conflict, match=r"seed is too large\. Start a new run instead"):
        retry_run(run, by=manager)


def test_outsiders_neither_cancel_nor_retry(run, outsider):
    for action in (cancel_run, retry_run):
        with pytest.raises(NotAllowed):
            action(run, by=outsider)


def test_an_alpha_that_the_calibration_set_cannot_give_says_how_many_are_needed(filled_pool, scripted_model):
    small = factories.make_calibration_set(n_items=3)

    with pytest.raises(EngineFailure, match=r"has 3 questions; alpha = 0\.1 needs at least 9"):
        create_run(pool=filled_pool, calibration_set=small, policy_model=scripted_model(), budget=2, by=None)
