"""Runs that ask a model for full answers only where the picks depend on them."""

import pytest
from django.urls import reverse

from labeling.actions.comparisons import create_comparison
from labeling.actions.runs import complete_run, retry_run
from labeling.errors import Conflict, LabelingError
from labeling.models import QuestionScore, Role, SelectionRun, StoredCompletion
from labeling.queries.run_results import raced
from labeling.runs.worker import work
from selector.rows import question_uid
from tests import factories
from tests.labeling.runs.conftest import picks_of, run_to_its_end

N_OUTCOMES, N_MANY = 10, 150
IN_FLIGHT = 40  # a race that begins again may ask for a few others
Race, Status = SelectionRun.Race, SelectionRun.Status


@pytest.fixture
def many():
    """A pool of which a race need not know everything."""
    pool = factories.make_pool()
    for row in range(N_MANY):
        text = f"Item {row}"
        fingerprint, metadata = question_uid(text, ()), {"cluster": row % 3}
        factories.make_question(pool=pool, uid=f"m{row}", text=text, fingerprint=fingerprint, metadata=metadata)
    return pool


def known_of_picks(run):
    """What a race knows of picks: not with how many others they tie."""
    names = ("question_id", "cluster", "set_size", "acquisition_score", "prediction_set", "taken_by")
    return list(run.picks.order_by("rank").values_list(*names, "inclusion_probability"))


def n_outcomes_stored():
    return StoredCompletion.objects.filter(kind="outcome").count()


@pytest.mark.parametrize("control_share", ["0", "0.4"])
def test_a_raced_run_picks_what_a_whole_one_picks_from_fewer_answers(new_run, scripted_model, many, control_share):
    settings = {"pool": many, "n_outcomes": N_OUTCOMES, "control_share": control_share, "budget": 6}
    quick = run_to_its_end(new_run(policy_model=scripted_model(), **settings))
    n_asked = n_outcomes_stored()
    assert (quick.status, quick.race) == (Status.FINISHED, Race.EXACT), quick.error
    saved = raced(quick)
    assert saved.n_undrawn > 0
    assert saved.n_asked + saved.n_undrawn == N_MANY * N_OUTCOMES
    assert sum(line.n_questions for line in saved.by_drawn) == saved.n_questions == N_MANY
    assert quick.race_history[-1]["outcomes"] <= saved.n_asked
    n_calibration = quick.calibration_set.items.count() * N_OUTCOMES
    assert n_asked - n_calibration == saved.n_asked

    whole = run_to_its_end(complete_run(quick, by=None))

    assert whole.race == Race.OFF
    assert n_outcomes_stored() == n_calibration + N_MANY * N_OUTCOMES
    assert known_of_picks(quick) == known_of_picks(whole)
    known = {score.question_id: score.set_size for score in whole.scores.all()}
    for score in QuestionScore.objects.filter(run=quick):
        assert score.set_size <= known[score.question_id] <= score.set_size_at_most
        if score.n_drawn == N_OUTCOMES:
            assert score.set_size == known[score.question_id]
    with pytest.raises(Conflict, match="all answers already"):
        complete_run(whole, by=None)


def test_a_race_that_breaks_off_goes_on_and_asks_for_nothing_twice(new_run, scripted_model, many):
    once = run_to_its_end(new_run(policy_model=scripted_model(), pool=many, n_outcomes=N_OUTCOMES))
    n_made = StoredCompletion.objects.count()
    StoredCompletion.objects.all().delete()
    model = scripted_model(crash_after=n_made - 150)
    run = run_to_its_end(new_run(policy_model=model, pool=many, n_outcomes=N_OUTCOMES))
    assert run.status == Status.FAILED
    assert run.stages[-1]["name"] == "racing"
    assert 0 < StoredCompletion.objects.count() < n_made

    model.options = {"crash_after": 150 + IN_FLIGHT}
    model.save()
    run = run_to_its_end(retry_run(run, by=None))

    assert run.status == Status.FINISHED, run.error
    assert abs(StoredCompletion.objects.count() - n_made) <= IN_FLIGHT
    assert picks_of(run) == picks_of(once)


def test_what_needs_all_answers_is_not_raced(new_run, scripted_model):
    assert new_run(policy_model=scripted_model(), preset="paper").race == Race.OFF
    assert new_run(policy_model=scripted_model(), preset="paper", race="exact").race == Race.EXACT
    assert new_run(policy_model=scripted_model(), strategy="entropy").race == Race.OFF
    with pytest.raises(LabelingError, match="cannot be raced"):
        new_run(policy_model=scripted_model(), strategy="entropy", race="exact")


def test_a_comparison_says_what_a_race_left_out(new_run, scripted_model, many):
    run = run_to_its_end(new_run(policy_model=scripted_model(), pool=many, n_outcomes=N_OUTCOMES))
    comparison = create_comparison(run=run, strategies=["const", "random"], budget=3, by=None)

    work(once=True)

    comparison.refresh_from_db()
    assert (comparison.status, comparison.error_code) == (Status.FAILED, "run_was_raced")
    assert "Ask for the rest" in comparison.error


def test_the_page_of_a_run_says_what_the_race_saved(new_run, scripted_model, many, client):
    run = run_to_its_end(new_run(policy_model=scripted_model(), pool=many, n_outcomes=N_OUTCOMES))
    client.force_login(factories.make_user(pool=many, roles=(Role.MANAGER,)))

    page = client.get(reverse("run", args=[run.pk])).content.decode()

    assert "What the race saved" in page
    assert f"{raced(run).n_undrawn:,}" in page
    client.post(reverse("run-complete", args=[run.pk]))
    assert SelectionRun.objects.latest("pk").race == Race.OFF
