"""Runs ask what their strategy needs and nothing else, draw controls, and go on from earlier rounds."""

import pytest
from django.db import IntegrityError, transaction

from labeling.actions.runs import create_run
from labeling.errors import LabelingError
from labeling.models import GoldAnswer, SelectionRun, StoredCompletion
from labeling.queries.run_results import picks_of as explained_picks
from labeling.queries.run_results import threshold_in_words
from labeling.queries.runs import picks_gone_on_from, run_progress
from tests import factories
from tests.labeling.runs.conftest import run_to_its_end


def uids_of(run):
    return list(run.picks.order_by("rank").values_list("question__uid", flat=True))


@pytest.fixture
def bare_run(filled_pool):
    """Queue a run of 3 picks without calibration set, model or votes."""
    return lambda **fields: create_run(**{"pool": filled_pool, "budget": 3, "embedder": "", "by": None, **fields})


@pytest.mark.parametrize("strategy", ["random", "v1"])
def test_a_strategy_that_needs_no_answers_asks_no_model(bare_run, strategy):
    run = run_to_its_end(bare_run(strategy=strategy))

    assert (run.status, run.error) == (SelectionRun.Status.FINISHED, "")
    assert (run.q_hat, run.q_hat_infinite, run.report["calibration"]) == (None, False, None)
    assert (run.config["n_outcomes"], run.config["n_probes"]) == (0, 0)
    assert run.picks.count() == 3
    assert not StoredCompletion.objects.exists()
    assert [line.name for line in run_progress(run).stages] == ["scoring"]
    assert "nothing was calibrated" in threshold_in_words(run)


def test_full_picks_the_whole_pool_whatever_the_budget(bare_run):
    run = run_to_its_end(bare_run(strategy="full", budget=1))

    assert run.picks.count() == 12
    assert run.config["budget"] == 12


@pytest.mark.parametrize("strategy", ["entropy", "scf", "ews", "care_proxy"])
def test_a_strategy_on_sampled_answers_asks_for_those_alone(bare_run, scripted_model, strategy):
    run = run_to_its_end(bare_run(strategy=strategy, policy_model=scripted_model(), n_outcomes=4, min_readable=0.0))

    assert (run.status, run.error) == (SelectionRun.Status.FINISHED, "")
    assert set(StoredCompletion.objects.values_list("kind", flat=True)) == {"outcome"}
    assert StoredCompletion.objects.count() == 12 * 4
    expected = ["opening the model", "pool: outcomes", "scoring"]
    assert [stage["name"] for stage in run.stages] == expected == [line.name for line in run_progress(run).stages]


@pytest.mark.parametrize(
    ("strategy", "with_model", "words"),
    [
        ("const", True, "needs a calibration set"),
        ("entropy", False, "reads the model's answers"),
        ("shift", False, "looks inside the model"),
        ("cec", True, "makes its own clusters"),
    ],
)
def test_a_strategy_without_what_it_needs_is_refused_with_what_to_do(
    bare_run, scripted_model, strategy, with_model, words
):
    with pytest.raises(LabelingError) as caught:
        bare_run(strategy=strategy, policy_model=scripted_model() if with_model else None)

    assert words in caught.value.message
    assert "another strategy" in caught.value.message
    assert not SelectionRun.objects.exists()


def test_controls_are_kept_with_their_chance_and_explained(bare_run):
    run = run_to_its_end(bare_run(strategy="random", budget=4, control_share="0.5"))

    picks = list(run.picks.order_by("rank").values_list("taken_by", "inclusion_probability"))
    assert picks == [("cluster", None)] * 2 + [("control", 2 / 12)] * 2
    assert explained_picks(run)[-1].why == [
        "Drawn at random, as a control: each eligible question had a chance of 0.1667."
    ]
    assert explained_picks(run)[0].why[0] == "Among the best of the pool (Random)."


def test_a_second_round_goes_on_from_the_first_and_a_third_from_both(bare_run):
    first = run_to_its_end(bare_run(strategy="random"))
    second = run_to_its_end(bare_run(strategy="random", continues=first))
    third = run_to_its_end(bare_run(strategy="random", continues=second))
    whole = run_to_its_end(bare_run(strategy="random", budget=9))

    assert uids_of(first) + uids_of(second) + uids_of(third) == uids_of(whole)
    assert picks_gone_on_from(third) == {*uids_of(first), *uids_of(second)}
    assert third.report["labeled"] == {"given": 6, "in_pool": 6}


def test_another_first_round_knows_nothing_of_picks_that_nobody_was_asked(bare_run):
    first, again = (run_to_its_end(bare_run(strategy="random")) for _ in range(2))

    assert uids_of(first) == uids_of(again)


def test_questions_with_gold_answers_or_in_a_round_are_not_picked_again(bare_run):
    first = run_to_its_end(bare_run(strategy="random"))
    labeled, *in_a_round = (pick.question for pick in first.picks.order_by("rank"))
    round = factories.make_round(run=first)
    GoldAnswer.objects.create(question=labeled, round=round, answer="1", source=GoldAnswer.Source.SINGLE)

    again = run_to_its_end(bare_run(strategy="random"))

    assert not set(uids_of(first)) & set(uids_of(again))
    reasons = again.report["pool"]["ineligible"]
    assert reasons["already_labeled"]["ids"] == [labeled.uid]
    assert reasons["in_a_round"]["ids"] == sorted(question.uid for question in in_a_round)


def test_only_a_finished_run_of_the_same_pool_is_gone_on_from(bare_run):
    queued, elsewhere = bare_run(strategy="random"), factories.make_run(pool=factories.make_pool(name="Other"))

    for run in (queued, elsewhere):
        with pytest.raises(LabelingError, match="Choose a finished run of this pool"):
            bare_run(strategy="random", continues=run)


def test_the_database_refuses_calibration_without_answers(pool, calibration_set):
    with pytest.raises(IntegrityError, match="run_is_calibrated_on_answers"), transaction.atomic():
        SelectionRun.objects.create(pool=pool, calibration_set=calibration_set, config={})
