"""How an attempt ends, and that nothing answered is lost or asked again."""

from datetime import timedelta

from django.utils import timezone

from labeling.actions.runs import cancel_run, retry_run
from labeling.models import GenerationSettings, SelectionRun, StoredCompletion
from labeling.queries.runs import MODEL_STAGES
from labeling.runs import attempt
from labeling.runs.lease import claim
from labeling.runs.worker import work
from tests import factories
from tests.labeling.runs.conftest import N_QUESTIONS, picks_of, run_to_its_end

Status = SelectionRun.Status
N_TRAJECTORIES = N_QUESTIONS  # of pool or calibration set


def test_a_run_finishes_with_picks_scores_threshold_and_report(new_run, scripted_model):
    run = run_to_its_end(new_run(policy_model=scripted_model()))

    assert (run.status, run.error, run.lease_token) == (Status.FINISHED, "", "")
    assert [pick.rank for pick in run.picks.all()] == [1, 2, 3]
    assert {pick.cluster for pick in run.picks.all()} == {0, 1, 2}
    assert run.scores.count() == N_QUESTIONS
    assert run.q_hat == run.report["q_hat"]
    assert run.report["generation"]["temperature"] == 0.6
    assert run.report["generation"]["fingerprint"] == run.generation_fingerprint
    assert [stage["name"] for stage in run.stages] == [*MODEL_STAGES[:-1], "scoring", "racing"]
    assert all(stage["done"] == stage["total"] for stage in run.stages)
    assert set(run.report["seconds"]) == {stage["name"] for stage in run.stages}
    assert run.report["tokens"]["pool: outcomes"] > 0


def test_a_second_run_asks_the_model_nothing_and_reports_the_same(new_run, scripted_model):
    first = run_to_its_end(new_run(policy_model=scripted_model()))
    second = run_to_its_end(new_run(policy_model=scripted_model(crash_after=0)))

    assert second.status == Status.FINISHED, second.traceback
    assert picks_of(first) == picks_of(second)
    assert {**first.report, "seconds": None} == {**second.report, "seconds": None}


def test_a_model_may_keep_its_answers_alone(new_run, scripted_model):
    model = scripted_model()
    whole = run_to_its_end(new_run(policy_model=model))
    StoredCompletion.objects.all().delete()
    model.keep = "answers"
    model.save()

    run = run_to_its_end(new_run(policy_model=model))

    texts = [each.text for each in StoredCompletion.objects.filter(kind="outcome")]
    assert texts
    assert all(text.startswith("\\boxed{") for text in texts)
    assert picks_of(run) == picks_of(whole)


def test_a_crash_is_recorded_and_a_retry_goes_on_from_what_was_answered(new_run, scripted_model):
    model = scripted_model(crash_after=20)
    run = run_to_its_end(new_run(policy_model=model))
    assert (run.status, run.error_code) == (Status.FAILED, "unexpected")
    assert "ScriptedCrash" in run.traceback
    assert "Retry" in run.error
    n_answered = StoredCompletion.objects.count()
    assert n_answered == 20

    model.options = {}
    model.save()
    run = run_to_its_end(retry_run(run, by=None))

    assert (run.status, run.error, run.traceback) == (Status.FINISHED, "", "")
    assert run.stages[2]["done_before"] == n_answered - N_TRAJECTORIES
    assert picks_of(run) == picks_of(run_to_its_end(new_run(policy_model=scripted_model(crash_after=0))))


def test_a_server_that_fails_half_of_the_time_loses_nothing(new_run, scripted_model):
    run = new_run(policy_model=scripted_model(fails_half=True))
    n_before = -1
    for _ in range(60):
        run = run_to_its_end(run)
        if run.status == Status.FINISHED:
            break
        assert run.error_code == "engine_unavailable"
        assert "everything answered so far is kept" in run.error
        assert StoredCompletion.objects.count() > n_before
        n_before = StoredCompletion.objects.count()
        run = retry_run(run, by=None)

    assert run.status == Status.FINISHED
    assert picks_of(run) == picks_of(run_to_its_end(new_run(policy_model=scripted_model(crash_after=0))))


def test_cancelling_stops_between_chunks_and_a_retry_goes_on(new_run, scripted_model, monkeypatch):
    monkeypatch.setattr(attempt, "SECONDS_BETWEEN_CHECKS", 0.0)
    run = new_run(policy_model=scripted_model())

    def cancel_when_probing(stage: str, done: int, total: int) -> None:
        if stage == "calibration: probes":
            cancel_run(run, by=None)

    run = run_to_its_end(run, listener=cancel_when_probing)

    assert (run.status, run.lease_token) == (Status.CANCELLED, "")
    assert StoredCompletion.objects.count() == N_TRAJECTORIES
    assert run_to_its_end(retry_run(run, by=None)).status == Status.FINISHED


def test_a_worker_that_shuts_down_puts_the_run_back_into_the_queue(new_run, scripted_model):
    run = run_to_its_end(new_run(policy_model=scripted_model()), should_stop=lambda: True)

    assert (run.status, run.lease_token, run.attempts) == (Status.QUEUED, "", 0)
    work(once=True)
    run.refresh_from_db()
    assert run.status == Status.FINISHED


def test_a_worker_whose_run_was_taken_over_stops_without_a_trace(new_run, scripted_model):
    run = new_run(policy_model=scripted_model())
    taken_over = []

    def take_over(stage: str, done: int, total: int) -> None:
        if stage == "pool: trajectories" and done == 0 and not taken_over:
            SelectionRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
            taken_over.append(claim(run.pk))

    run = run_to_its_end(run, listener=take_over)

    assert (run.status, run.lease_token) == (Status.RUNNING, taken_over[0].token)
    n_of_calibration = sum(stage["total"] for stage in run.stages if stage["name"].startswith("calibration"))
    assert StoredCompletion.objects.count() == n_of_calibration


def test_a_run_whose_workers_keep_dying_is_given_up(new_run, scripted_model):
    run = new_run(policy_model=scripted_model())
    for _ in range(5):
        claim(run.pk)
        SelectionRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    run = run_to_its_end(run)

    assert (run.status, run.error_code) == (Status.FAILED, "worker_died")
    assert "5 times" in run.error


def test_questions_that_cannot_be_asked_are_named_and_do_not_fail_the_run(new_run, scripted_model, filled_pool):
    filled_pool.questions.filter(uid="q3").update(text="word " * 50, fingerprint="long")

    run = run_to_its_end(new_run(policy_model=scripted_model(max_prompt_words=20)))

    assert run.status == Status.FINISHED
    (set_aside,) = run.report["set_aside"]
    assert (set_aside["where"], set_aside["id"], set_aside["code"]) == ("pool", "q3", "prompt_too_long")
    assert run.scores.count() == N_QUESTIONS - 1


def test_going_on_with_other_settings_is_refused_and_says_what_differs(new_run, scripted_model):
    model = scripted_model()
    heard: list[str] = []
    run = run_to_its_end(
        new_run(policy_model=model),
        listener=lambda stage, done, total: heard.append(stage),
        should_stop=lambda: "calibration: probes" in heard,
    )
    assert run.status == Status.QUEUED
    model.temperature = 1.0
    model.save()

    run = run_to_its_end(run)

    assert (run.status, run.error_code) == (Status.FAILED, "fingerprint_mismatch")
    assert "temperature: 1.0 against 0.6" in run.error
    assert GenerationSettings.objects.count() == 2
    assert run_to_its_end(retry_run(run, by=None)).status == Status.FINISHED


def test_a_pool_that_shrinks_below_the_budget_fails_with_the_reason(new_run, scripted_model, filled_pool):
    run = new_run(policy_model=scripted_model(), budget=12)
    filled_pool.questions.filter(uid="q3").delete()

    run = run_to_its_end(run)

    assert (run.status, run.error_code) == (Status.FAILED, "pool_too_small")


def test_a_model_that_can_be_asked_nothing_fails_the_run_with_the_reason(new_run, scripted_model):
    run = run_to_its_end(new_run(policy_model=scripted_model(max_prompt_words=1)))

    assert (run.status, run.error_code) == (Status.FAILED, "no_answers")
    assert "calibration set" in run.error
    assert "room for 1" in run.error


def test_a_pool_that_was_emptied_fails_the_run_with_the_reason(new_run, scripted_model, filled_pool):
    run = new_run(policy_model=scripted_model())
    filled_pool.questions.all().delete()

    run = run_to_its_end(run)

    assert (run.status, run.error_code) == (Status.FAILED, "pool_too_small")


def test_questions_in_a_round_are_not_picked_again(new_run, scripted_model, filled_pool):
    first = run_to_its_end(new_run(policy_model=scripted_model()))
    factories.make_round(run=first)

    second = run_to_its_end(new_run(policy_model=scripted_model()))

    taken, free = (set(run.picks.values_list("question_id", flat=True)) for run in (first, second))
    assert len(free) == 3
    assert not taken & free
    assert second.report["pool"]["ineligible"]["in_a_round"]["n"] == 3
