from datetime import timedelta

import pytest
from django.utils import timezone

from labeling.models import GoldAnswer, SelectionRun
from labeling.queries.runs import (
    MODEL_STAGES,
    questions_spoken_for,
    recorded_settings_of,
    run_progress,
    runs_of,
)
from tests import factories

Status = SelectionRun.Status
LEASE = {"lease_token": "t", "started_at": timezone.now()}


def make_running(*, lapsed_seconds: float = -60, **fields: object) -> SelectionRun:
    now = timezone.now()
    return factories.make_run(
        policy_model=factories.make_policy_model(),
        embedder="minilm",
        status=Status.RUNNING,
        lease_token="t",
        lease_until=now - timedelta(seconds=lapsed_seconds),
        started_at=now - timedelta(minutes=5),
        **fields,
    )


@pytest.mark.parametrize("n_runs", [1, 20])
def test_the_list_of_runs_takes_one_query(pool, n_runs, django_assert_num_queries):
    for _ in range(n_runs):
        factories.make_run(pool=pool, n_picks=2, policy_model=factories.make_policy_model())

    with django_assert_num_queries(1):
        rows = [(run.n_picks, str(run.policy_model), run.calibration_set, run.created_by) for run in runs_of(pool)]

    assert len(rows) == n_runs
    assert rows[0][0] == 2


def test_progress_says_rate_and_time_left_of_the_stage_under_way(db, django_assert_num_queries):
    ten_seconds_ago = (timezone.now() - timedelta(seconds=10)).isoformat()
    run = make_running(
        calibration_set=factories.make_calibration_set(),
        stage="calibration: trajectories",
        stages=[
            {
                "name": "embedding",
                "done": 5,
                "total": 5,
                "done_before": 0,
                "started_at": ten_seconds_ago,
                "seconds": 1.5,
            },
            {
                "name": "calibration: trajectories",
                "done": 40,
                "total": 100,
                "done_before": 20,
                "started_at": ten_seconds_ago,
                "seconds": 30.0,
            },
        ],
    )

    with django_assert_num_queries(0):
        progress = run_progress(run)

    assert [line.name for line in progress.stages] == ["embedding", *MODEL_STAGES, "scoring"]
    first, _, current, *rest = progress.stages
    assert (first.is_done, first.is_current, first.rate) == (True, False, None)
    assert current.is_current
    assert current.share == 0.4
    assert current.rate == pytest.approx(2, rel=0.1)
    assert current.seconds_left == pytest.approx(30, rel=0.1)
    assert not any(line.is_done or line.is_current for line in rest)
    assert (progress.is_live, progress.needs_worker, progress.seconds) == (True, False, 31.5)


def test_a_run_that_nobody_takes_asks_for_a_worker(db):
    fresh = factories.make_run(status=Status.QUEUED)
    waiting = factories.make_run(status=Status.QUEUED)
    waiting.created_at -= timedelta(minutes=1)
    lapsed = make_running(lapsed_seconds=20)

    assert [run_progress(run).needs_worker for run in (fresh, waiting, lapsed)] == [False, True, True]


def test_a_cancelled_run_that_is_still_running_is_stopping(db):
    assert run_progress(make_running(cancel_requested=True)).is_stopping


def test_an_ended_run_is_not_live(db):
    for status in (Status.FINISHED, Status.FAILED, Status.CANCELLED):
        assert not run_progress(factories.make_run(status=status)).is_live


def test_questions_in_a_round_or_labeled_are_spoken_for(pool):
    factories.make_question(pool=pool, uid="free")
    round = factories.make_round(pool=pool, n_questions=2)
    in_round, labeled = (slot.question for slot in round.slots.all())
    GoldAnswer.objects.create(question=labeled, round=round, answer="1", source=GoldAnswer.Source.SINGLE)

    assert questions_spoken_for(pool) == {in_round.uid: "in_a_round", labeled.uid: "already_labeled"}


def test_recorded_settings_are_listed_with_how_many_questions_have_votes(pool):
    from labeling.models import RecordedVotes

    for question, fingerprint in zip(factories.make_questions(pool=pool, n=3), ["a", "b", "b"], strict=True):
        RecordedVotes.objects.create(
            question_fingerprint=question.fingerprint, generation_fingerprint=fingerprint, votes={}
        )

    assert recorded_settings_of(pool) == [("b", 2), ("a", 1)]
