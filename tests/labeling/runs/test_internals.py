"""Runs whose strategy looks inside the model: read once, resumed, refused where the model does not show it."""

import pytest
from django.urls import reverse

from labeling.errors import EngineFailure
from labeling.models import SelectionRun, StoredCompletion, StoredInternals
from labeling.queries.runs import model_stages
from selector.internals import reading
from tests import factories
from tests.labeling.runs.conftest import N_QUESTIONS, picks_of, run_to_its_end

Status = SelectionRun.Status


@pytest.fixture
def tiny_model(db):
    return factories.make_policy_model(
        name="tiny", engine="transformers", model="assay-tiny", max_tokens=40, probe_max_tokens=8
    )


@pytest.mark.parametrize("strategy", ["shift", "badge", "pivot_trace"])
def test_a_run_needs_one_chain_a_question_and_no_calibration(new_run, tiny_model, strategy):
    run = run_to_its_end(new_run(policy_model=tiny_model, strategy=strategy))

    assert (run.status, run.error) == (Status.FINISHED, ""), run.traceback
    assert len(picks_of(run)) == 3
    assert set(StoredCompletion.objects.values_list("kind", flat=True)) == {"trajectory"}
    assert StoredCompletion.objects.count() == StoredInternals.objects.count() == N_QUESTIONS
    assert (run.q_hat, run.q_hat_infinite, run.report["calibration"]) == (None, False, None)
    assert run.report["fingerprints"]["internals"] == run.generation_fingerprint
    assert [stage["name"] for stage in run.stages] == [*model_stages(run), "scoring"]
    assert run.stages[-2] | {"done": N_QUESTIONS, "total": N_QUESTIONS} == run.stages[-2]


def test_a_second_run_reads_nothing_again(new_run, tiny_model, monkeypatch):
    first = run_to_its_end(new_run(policy_model=tiny_model, strategy="shift"))
    monkeypatch.setattr(reading.ModelReader, "read", lambda *arguments: pytest.fail("read again"))

    second = run_to_its_end(new_run(policy_model=tiny_model, strategy="shift"))

    assert second.status == Status.FINISHED, second.traceback
    assert picks_of(first) == picks_of(second)


def test_a_run_that_was_stopped_goes_on_from_what_was_read(new_run, tiny_model, monkeypatch):
    monkeypatch.setattr(reading, "QUESTIONS_BETWEEN_SAVES", 1)
    run = new_run(policy_model=tiny_model, strategy="shift")
    run = run_to_its_end(run, should_stop=lambda: StoredInternals.objects.count() == 5)
    assert (run.status, StoredInternals.objects.count()) == (Status.QUEUED, 5)

    run = run_to_its_end(run)

    assert run.status == Status.FINISHED, run.traceback
    assert StoredInternals.objects.count() == N_QUESTIONS
    assert run.stages[-2]["done_before"] == 5


def test_a_model_elsewhere_or_recorded_votes_are_refused_before_anything_is_asked(new_run, scripted_model):
    for source in ({"policy_model": scripted_model()}, {"generation_fingerprint": "abc"}):
        with pytest.raises(EngineFailure) as caught:
            new_run(strategy="pivot_trace", **source)

        assert caught.value.code == "missing_evidence"
        assert "needs attention" in caught.value.message
        assert "Transformers, on this machine" in caught.value.message


def test_the_page_says_that_there_is_no_threshold(new_run, tiny_model, client, manager):
    run = run_to_its_end(new_run(policy_model=tiny_model, strategy="shift"))
    client.force_login(manager)

    page = client.get(reverse("run", args=[run.pk])).content.decode()

    assert "nothing was calibrated" in page
    assert "Smallest attainable alpha" not in page
