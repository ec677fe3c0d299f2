"""Asking for a run, cancelling it and trying it again: what is refused, and what repeating does."""

from datetime import timedelta

import pytest
from django.utils import timezone

from labeling.actions.runs import cancel_run, create_run, retry_run
from labeling.errors import Conflict, EngineFailure, LabelingError, NotAllowed
from labeling.models import AuditEvent, SelectionRun
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


def test_outsiders_neither_cancel_nor_retry(run, outsider):
    for action in (cancel_run, retry_run):
        with pytest.raises(NotAllowed):
            action(run, by=outsider)


def test_an_alpha_that_the_calibration_set_cannot_give_says_how_many_are_needed(filled_pool, scripted_model):
    small = factories.make_calibration_set(n_items=3)

    with pytest.raises(EngineFailure, match=r"has 3 questions; alpha = 0\.1 needs at least 9"):
        create_run(pool=filled_pool, calibration_set=small, policy_model=scripted_model(), budget=2, by=None)
