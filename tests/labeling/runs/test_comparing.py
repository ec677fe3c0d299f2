"""Comparisons: who may ask, what is refused, and that a worker's death costs nothing but time."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from labeling.actions.comparisons import cancel_comparison, create_comparison, retry_comparison
from labeling.engine.internals import stored_internals
from labeling.errors import Conflict, EngineFailure, LabelingError, NotAllowed
from labeling.models import Comparison, GoldAnswer, SelectionRun, StoredCompletion
from labeling.queries.comparisons import comparison_progress
from labeling.runs import attempt
from labeling.runs.execution import execute
from labeling.runs.lease import LeaseLost, claim, claim_next
from labeling.runs.worker import work
from tests import factories
from tests.labeling.runs.conftest import run_to_its_end

Status = Comparison.Status
KEYS = ["const", "random", "entropy", "v2", "shift"]


@pytest.fixture
def finished_run(new_run, scripted_model) -> SelectionRun:
    return run_to_its_end(new_run(policy_model=scripted_model(), race="off"))


@pytest.fixture
def comparison(finished_run) -> Comparison:
    return create_comparison(run=finished_run, strategies=KEYS, budget=3, n_bootstrap=2, by=None)


def compare_to_its_end(comparison, **options) -> Comparison:
    lease = claim(comparison.pk, Comparison)
    assert lease is not None
    execute(lease, **options)
    comparison.refresh_from_db()
    return comparison


def test_a_worker_compares_and_its_own_strategy_picks_what_the_run_picked(comparison, finished_run):
    work(once=True)
    comparison.refresh_from_db()

    assert comparison.status == Status.FINISHED
    picks = {each["key"]: each["picks"] for each in comparison.result["strategies"]}
    assert picks.keys() == {"const", "random", "entropy", "v2"}
    assert picks["const"] == list(finished_run.picks.order_by("rank").values_list("question__uid", flat=True))
    assert [each["key"] for each in comparison.result["not_run"]] == ["shift"]
    assert comparison.result["backtest"] is None
    assert comparison_progress(comparison).status == "finished"
    assert all(stage["done"] == stage["total"] for stage in comparison.stages)


def test_it_asks_no_model_anything(comparison):
    before = StoredCompletion.objects.count()

    compare_to_its_end(comparison)

    assert StoredCompletion.objects.count() == before


def test_it_tells_how_many_answers_are_read(comparison, finished_run, monkeypatch):
    monkeypatch.setattr("labeling.runs.comparing.ROWS_PER_READ", 4)
    heard = []

    compare_to_its_end(comparison, listener=lambda *what: heard.append(what))

    read = [(done, total) for stage, done, total in heard if stage == "reading answers"]
    n_rows = finished_run.scores.count() + finished_run.calibration_set.items.count()
    assert [done for done, _ in read] == sorted({done for done, _ in read})
    assert {total for _, total in read} == {n_rows} == {read[-1][0]}
    assert len(read) > n_rows // 4


def test_the_same_comparison_again_finds_the_same(comparison, finished_run):
    again = create_comparison(run=finished_run, strategies=KEYS, budget=3, n_bootstrap=2, by=None)

    first, second = (compare_to_its_end(each).result for each in (comparison, again))

    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_gold_answers_judge_the_picks(comparison, finished_run):
    questions = list(finished_run.pool.questions.order_by("pk"))[:5]
    round = factories.make_round(run=finished_run)
    for question in questions:
        GoldAnswer.objects.create(question=question, round=round, answer="1", source=GoldAnswer.Source.SINGLE)

    result = compare_to_its_end(comparison).result

    assert result["backtest"]["pool"]["n"] == 5
    assert result["pool"]["n_truths"] == 5
    assert result["backtest"]["strategies"].keys() == {"const", "random", "entropy", "v2"}
    assert result["pool"]["n_eligible"] == result["pool"]["n"]  # labeled ones count like all others


def test_a_killed_worker_is_replaced_and_can_write_nothing(comparison):
    dead = claim_next()
    assert dead.kind is Comparison
    Comparison.objects.filter(pk=comparison.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    work(once=True)

    comparison.refresh_from_db()
    assert (comparison.status, comparison.attempts) == (Status.FINISHED, 2)
    with pytest.raises(LeaseLost):
        dead.end(Status.FAILED)


def test_cancelling_stops_it_under_way_and_retrying_finishes_it(comparison, monkeypatch):
    monkeypatch.setattr(attempt, "SECONDS_BETWEEN_CHECKS", 0.0)

    def cancel_at_choosing(stage, done, total):
        if stage == "choosing":
            Comparison.objects.filter(pk=comparison.pk).update(cancel_requested=True)

    compare_to_its_end(comparison, listener=cancel_at_choosing)
    assert comparison.status == Status.CANCELLED
    assert comparison.result is None

    retry_comparison(comparison, by=None)
    assert compare_to_its_end(comparison).status == Status.FINISHED


def test_a_worker_told_to_stop_puts_it_back(comparison):
    compare_to_its_end(comparison, should_stop=lambda: True)

    assert (comparison.status, comparison.attempts, comparison.lease_token) == (Status.QUEUED, 0, "")


def test_cancelling_a_queued_one_takes_it_out_and_again_changes_nothing(comparison):
    cancel_comparison(comparison, by=None)
    cancel_comparison(comparison, by=None)

    assert comparison.status == Status.CANCELLED
    assert claim_next() is None


def test_a_finished_one_can_be_neither_cancelled_nor_retried(comparison):
    compare_to_its_end(comparison)

    with pytest.raises(Conflict, match="comparison is finished"):
        cancel_comparison(comparison, by=None)
    with pytest.raises(Conflict, match="only a failed or cancelled comparison"):
        retry_comparison(comparison, by=None)


def test_answers_deleted_since_fail_it_with_a_reason(comparison):
    StoredCompletion.objects.all().delete()

    compare_to_its_end(comparison)

    assert (comparison.status, comparison.error_code) == (Status.FAILED, "no_answers")
    assert "no longer stored" in comparison.error


def test_the_older_work_comes_first_whatever_its_kind(comparison, new_run, scripted_model):
    new_run(policy_model=scripted_model())

    assert claim_next().kind is Comparison
    assert claim_next().kind is SelectionRun


@pytest.mark.parametrize(("budget", "strategies"), [(0, KEYS), (13, KEYS), (3, []), (3, ["nothing"])])
def test_what_cannot_be_compared_is_refused(finished_run, budget, strategies):
    with pytest.raises(LabelingError):
        create_comparison(run=finished_run, strategies=strategies, budget=budget, by=None)
    assert not Comparison.objects.exists()


def test_a_run_under_way_is_refused(new_run, scripted_model):
    with pytest.raises(LabelingError, match="queued"):
        create_comparison(run=new_run(policy_model=scripted_model()), strategies=KEYS, budget=3, by=None)


def test_only_managers_compare(comparison, finished_run, annotator, outsider):
    for user in (annotator, outsider):
        with pytest.raises(NotAllowed):
            create_comparison(run=finished_run, strategies=KEYS, budget=3, by=user)
        with pytest.raises(NotAllowed):
            cancel_comparison(comparison, by=user)


def test_the_database_wants_a_result_of_a_finished_one_and_only_then(comparison):
    rows = Comparison.objects.filter(pk=comparison.pk)
    for fields in ({"status": "finished"}, {"result": {}}, {"status": "running"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.update(**fields)


def test_internals_that_are_not_all_stored_are_none(finished_run):
    assert stored_internals(finished_run.generation_fingerprint, list(finished_run.pool.questions.all())) is None


def test_unknown_strategies_are_named(finished_run):
    with pytest.raises(EngineFailure, match="nothing"):
        create_comparison(run=finished_run, strategies=["nothing"], budget=1, by=None)
