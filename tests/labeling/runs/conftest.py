"""Pools, calibration sets and scripted models on which runs take a fraction of a second."""

from collections.abc import Callable
from typing import Any

import pytest

from labeling.actions.runs import create_run
from labeling.models import CalibrationSet, PolicyModel, Pool, SelectionRun
from labeling.runs.execution import execute
from labeling.runs.lease import claim
from selector.rows import question_uid
from tests import factories

N_QUESTIONS = 12


def fill_pool(pool: Pool, order: list[int] | None = None) -> Pool:
    """Twelve questions in three clusters, in the given order."""
    for number in order or range(N_QUESTIONS):
        text = f"What is {number} plus {number * number}?"
        factories.make_question(
            pool=pool, uid=f"q{number}", text=text, fingerprint=question_uid(text, ()), metadata={"cluster": number % 3}
        )
    return pool


@pytest.fixture
def filled_pool(pool) -> Pool:
    return fill_pool(pool)


@pytest.fixture
def calibration_set(db) -> CalibrationSet:
    calibration_set = factories.make_calibration_set(name="Known")
    for number in range(N_QUESTIONS):
        text = f"What is {number} minus {number * number}?"
        factories.make_calibration_item(
            calibration_set=calibration_set, text=text, fingerprint=question_uid(text, ()), answer=str(1 + number % 4)
        )
    return calibration_set


@pytest.fixture
def scripted_model(db) -> Callable[..., PolicyModel]:
    """Make a scripted model; models that differ only in how they fail have the same generation fingerprint."""
    return lambda **options: factories.make_policy_model(model="script", options=options)


@pytest.fixture
def new_run(filled_pool, calibration_set) -> Callable[..., SelectionRun]:
    """Queue a run of 3 picks with 4 + 4 answers."""

    def make(**fields: Any) -> SelectionRun:
        defaults = {
            "pool": filled_pool,
            "calibration_set": calibration_set,
            "budget": 3,
            "alpha": "0.5",
            "n_outcomes": 4,
            "n_probes": 4,
            "embedder": "",
            "by": None,
        }
        return create_run(**{**defaults, **fields})

    return make


def run_to_its_end(run: SelectionRun, **options: Any) -> SelectionRun:
    """Claim and execute the run; return it as it is afterwards."""
    lease = claim(run.pk)
    assert lease is not None
    execute(lease, **options)
    run.refresh_from_db()
    return run


def picks_of(run: SelectionRun) -> list[tuple[Any, ...]]:
    """Everything about a run's picks that must not depend on chance."""
    return list(
        run.picks.values_list(
            "rank",
            "question__uid",
            "cluster",
            "set_size",
            "acquisition_score",
            "prediction_set",
            "tied_with",
            "tie_break",
        )
    )
