"""Selection runs: asking for one, cancelling it, and trying it again."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from labeling import policies
from labeling.actions import work
from labeling.audit import record_event
from labeling.engine.generation import check_same_settings
from labeling.engine.selection import check_calibration_size, check_embedder, config_as_json, needs_clusters
from labeling.errors import EngineFailure, LabelingError
from labeling.models import CalibrationSet, PolicyModel, Pool, RecordedVotes, SelectionRun, User

DEFAULT_EMBEDDER = "minilm"


@transaction.atomic
def create_run(
    *,
    pool: Pool,
    calibration_set: CalibrationSet,
    budget: int,
    by: User | None,
    policy_model: PolicyModel | None = None,
    generation_fingerprint: str = "",
    embedder: str = DEFAULT_EMBEDDER,
    question_limit: int | None = None,
    **config: Any,
) -> SelectionRun:
    """Queue a selection run; a worker takes it up.

    Answers come either from ``policy_model`` or from votes recorded under ``generation_fingerprint``. ``config`` holds
    further fields of the selection's settings (preset, strategy, alpha, lam, n_outcomes, n_probes, n_clusters, seed,
    min_readable, ...); None leaves one as the preset has it. ``question_limit`` takes only that many questions of the
    pool, always the same ones. ``by`` is None from the shell.
    Refused before anything is asked of a model: settings without meaning, a pool smaller than the budget, a
    calibration set too small for alpha, votes of pool and calibration set from different settings.
    """
    policies.check_can_manage(pool, by)
    if (policy_model is None) == (not generation_fingerprint):
        raise LabelingError(
            "Choose where the answers come from: either a policy model or recorded votes.", code="invalid_run"
        )
    if calibration_set.pool_id not in {None, pool.pk}:
        raise LabelingError(
            f"The calibration set “{calibration_set}” belongs to the pool “{calibration_set.pool}”. "
            "Choose one that belongs to this pool or is shared.",
            code="invalid_run",
        )
    settings = config_as_json(budget=budget, **config)
    n_questions = pool.questions.count()
    if question_limit is not None:
        n_questions = min(n_questions, question_limit)
    if n_questions < budget:
        raise EngineFailure(
            f"The pool has {n_questions} questions to choose from; the budget asks for {budget}. "
            "Lower the budget or add questions.",
            code="pool_too_small",
        )
    check_calibration_size(calibration_set.items.count(), settings)
    check_embedder(embedder)
    if policy_model and needs_clusters(settings) and not embedder and _lacks_clusters(pool):
        raise LabelingError(
            f"The strategy “{settings['strategy']}” picks from clusters, and the questions bring none. "
            "Name an embedder to make them with, or choose another strategy.",
            code="invalid_run",
        )
    if generation_fingerprint:
        _check_recorded_votes(pool, calibration_set, generation_fingerprint)
    run = SelectionRun.objects.create(
        pool=pool,
        calibration_set=calibration_set,
        policy_model=policy_model,
        generation_fingerprint=generation_fingerprint,
        embedder=embedder,
        question_limit=question_limit,
        config=settings,
        created_by=by,
    )
    record_event("run.created", target=run, by=by, pool=pool, config=settings)
    return run


@transaction.atomic
def cancel_run(run: SelectionRun, *, by: User | None) -> SelectionRun:
    """Stop a run after the chunk in flight, or at once where no worker has it. Cancelling twice changes nothing.

    What was answered so far is kept, and ``retry_run`` goes on from there.
    """
    policies.check_can_manage(run.pool, by)
    if work.cancel(run):
        record_event("run.cancelled", target=run, by=by, pool=run.pool)
    return run


@transaction.atomic
def retry_run(run: SelectionRun, *, by: User | None) -> SelectionRun:
    """Queue a failed or cancelled run again. It goes on from the stored answers; nothing is asked twice."""
    policies.check_can_manage(run.pool, by)
    work.retry(run, generation_fingerprint="" if run.policy_model_id else run.generation_fingerprint)
    record_event("run.retried", target=run, by=by, pool=run.pool)
    return run


def _lacks_clusters(pool: Pool) -> bool:
    return pool.questions.exclude(metadata__has_key="cluster").exists()


def _check_recorded_votes(pool: Pool, calibration_set: CalibrationSet, fingerprint: str) -> None:
    """Raise unless both pool and calibration set have votes recorded under the fingerprint."""
    of_pool = RecordedVotes.objects.filter(question_fingerprint__in=pool.questions.values("fingerprint"))
    of_set = RecordedVotes.objects.filter(question_fingerprint__in=calibration_set.items.values("fingerprint"))
    if not of_pool.filter(generation_fingerprint=fingerprint).exists():
        raise LabelingError(
            f"No votes are recorded for this pool under {fingerprint}. Import a votes file for the pool first.",
            code="no_recorded_votes",
        )
    if of_set.filter(generation_fingerprint=fingerprint).exists():
        return
    other = of_set.values_list("generation_fingerprint", flat=True).first()
    if other is None:
        raise LabelingError(
            f"No votes are recorded for the calibration set “{calibration_set}”. Import a votes file for it first.",
            code="no_recorded_votes",
        )
    check_same_settings(pool=fingerprint, calibration=other)
