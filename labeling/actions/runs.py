"""Selection runs: asking for one, cancelling it, and trying it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django.db import transaction
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions import work
from labeling.audit import record_event
from labeling.engine.generation import check_same_settings
from labeling.engine.internals import check_shows_internals
from labeling.engine.selection import (
    StrategyCard,
    can_be_raced,
    check_calibration_size,
    check_embedder,
    config_as_json,
    fit_to_strategy,
    is_raced_by_default,
    n_given_clusters,
    needs_budget,
    reads_answers,
    strategy_card,
)
from labeling.errors import Conflict, EngineFailure, LabelingError
from labeling.models import CalibrationSet, PolicyModel, Pool, RecordedVotes, SelectionRun, User
from labeling.queries.runs import picks_gone_on_from, questions_chosen, questions_spoken_for, recorded_clusters

DEFAULT_EMBEDDER = "minilm"
MOST_QUESTIONS = 10**9
MOST_ANSWERS = 10_000  # of each kind, to one question


def create_run(
    *,
    pool: Pool,
    budget: int,
    by: User | None,
    calibration_set: CalibrationSet | None = None,
    policy_model: PolicyModel | None = None,
    generation_fingerprint: str = "",
    embedder: str = DEFAULT_EMBEDDER,
    question_limit: int | None = None,
    continues: SelectionRun | None = None,
    race: str | None = None,
    **config: Any,
) -> SelectionRun:
    """Queue a selection run; a worker takes it up.

    Answers come either from ``policy_model`` or from votes recorded under ``generation_fingerprint``; a strategy that
    reads none does without either, and one that needs no threshold without a calibration set: then only what it needs
    is asked. ``config`` holds further fields of the selection's settings (preset, strategy, alpha, lam, n_outcomes,
    n_probes, n_clusters, per_cluster, control_share, seed, min_readable, ...); None leaves one as the preset has it.
    ``question_limit`` takes only that many questions of the pool, always the same ones. The picks of ``continues``, and
    of the runs that it went on from, count as labeled. ``race``: "exact" asks a model for full answers only where the
    picks depend on them, "off" for all; None is exact where it can be, "off" for the published rules. ``by`` is None
    from the shell.
    Refused before anything is asked of a model: settings without meaning, fewer questions that may be picked than the
    budget, a strategy without what it needs, an embedder that is not there, clusters that do not fit, a calibration set
    too small for alpha, votes of pool and calibration set from different settings. An embedder on the model hub is
    asked for; never call this inside a transaction.
    """
    policies.check_can_manage(pool, by)
    if policy_model is not None and generation_fingerprint:
        raise LabelingError(
            _("Choose where the answers come from: either a policy model or recorded votes."), code="invalid_run"
        )
    if calibration_set is not None and calibration_set.pool_id not in {None, pool.pk}:
        raise LabelingError(
            _(
                "The calibration set “%(calibration_set)s” belongs to the pool “%(pool)s”. Choose one that "
                "belongs to this pool or is shared."
            )
            % {"calibration_set": calibration_set, "pool": calibration_set.pool},
            code="invalid_run",
        )
    if continues is not None and (continues.pool_id != pool.pk or continues.status != SelectionRun.Status.FINISHED):
        raise LabelingError(
            _("%(continues)s cannot be gone on from. Choose a finished run of this pool.") % {"continues": continues},
            code="invalid_run",
        )
    if question_limit is not None and not 1 <= question_limit <= MOST_QUESTIONS:
        raise LabelingError(
            _("Found %(question_limit)s questions to look at; it must be between 1 and %(most_questions)s.")
            % {"question_limit": f"{question_limit:,}", "most_questions": f"{MOST_QUESTIONS:,}"},
            code="invalid_run",
        )
    for name in ("n_outcomes", "n_probes"):
        if (config.get(name) or 0) > MOST_ANSWERS:
            raise LabelingError(
                _("Found %(config)s answers to each question; the most is %(most_answers)s.")
                % {"config": f"{config[name]:,}", "most_answers": f"{MOST_ANSWERS:,}"},
                code="invalid_run",
            )
    chosen = questions_chosen(pool, question_limit)
    n_questions = len(chosen)
    asks_answers = policy_model is not None or bool(generation_fingerprint)
    settings = fit_to_strategy(
        config_as_json(budget=budget, **config),
        is_calibrated=calibration_set is not None and asks_answers,
        n_questions=n_questions,
    )
    if n_questions < cast(int, settings["budget"]):
        raise EngineFailure(
            _(
                "The pool has %(n_questions)s questions to choose from; the budget asks for %(budget)s. Lower "
                "the budget or add questions."
            )
            % {"n_questions": n_questions, "budget": settings["budget"]},
            code="pool_too_small",
        )
    card = strategy_card(str(settings["strategy"]))
    _check_sources(card, has_answers=asks_answers, has_calibration=calibration_set is not None)
    check_shows_internals(policy_model, settings)
    if calibration_set is not None and asks_answers and reads_answers(settings):
        check_calibration_size(calibration_set.items.count(), settings)
    if generation_fingerprint:
        _check_recorded_votes(pool, calibration_set, generation_fingerprint)
    brings_clusters = card.uses_clusters and _n_clusters(pool, chosen, generation_fingerprint, settings) > 0
    if card.needs_embeddings and not embedder and not brings_clusters:
        if card.uses_clusters:
            words = _(
                "The strategy “%(key)s” picks from clusters, and the questions bring none. Name an embedder to make "
                "them with, or choose another strategy."
            )
        else:
            words = _(
                "The strategy “%(key)s” makes its own clusters. Name an embedder to make them with, or choose another "
                "strategy."
            )
        raise LabelingError(words % {"key": card.key}, code="invalid_run")
    if needs_budget(settings):
        _check_enough_to_pick(pool, chosen, calibration_set if asks_answers else None, continues, settings)
    if embedder:
        check_embedder(embedder)
    race = _race(race, card, settings, asks_model=policy_model is not None, is_calibrated=calibration_set is not None)
    with transaction.atomic():
        run = SelectionRun.objects.create(
            race=race,
            pool=pool,
            calibration_set=calibration_set if asks_answers else None,
            continues=continues,
            policy_model=policy_model,
            generation_fingerprint=generation_fingerprint,
            embedder=embedder,
            question_limit=question_limit,
            config=settings,
            created_by=by,
        )
        record_event("run.created", target=run, by=by, pool=pool, config=settings, race=race)
    return run


def complete_run(run: SelectionRun, *, by: User | None) -> SelectionRun:
    """Queue a run with the settings of a raced one and all answers: only those that the race left out are asked.

    Raises Conflict run_not_raced for a run that asks for all answers anyway, run_not_finished for one that goes on.
    """
    policies.check_can_manage(run.pool, by)
    if run.status != SelectionRun.Status.FINISHED:
        raise Conflict(_("%(run)s has not finished yet.") % {"run": run}, code="run_not_finished")
    if run.race == SelectionRun.Race.OFF:
        raise Conflict(_("%(run)s asks for all answers already.") % {"run": run}, code="run_not_raced")
    return create_run(
        pool=run.pool,
        by=by,
        calibration_set=run.calibration_set,
        policy_model=run.policy_model,
        embedder=run.embedder,
        question_limit=run.question_limit,
        continues=run.continues,
        race=SelectionRun.Race.OFF,
        preset=run.config["preset_name"],
        **{name: value for name, value in run.config.items() if name != "preset_name"},
    )


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


def _race(
    wanted: str | None, card: StrategyCard, settings: Mapping[str, object], *, asks_model: bool, is_calibrated: bool
) -> str:
    """Return how the run is raced. Raises LabelingError where a race is wanted and there is none."""
    may_be_raced = asks_model and is_calibrated and can_be_raced(settings)
    if wanted == SelectionRun.Race.EXACT and not may_be_raced:
        words = _(
            "The run cannot be raced: a race asks a model for the answers that the largest prediction sets depend on. "
            "“%(title)s” needs all of them, or there is no model or no calibration set. Ask for all answers."
        )
        raise LabelingError(words % {"title": card.title}, code="invalid_run")
    if wanted is not None:
        return wanted
    return SelectionRun.Race.EXACT if may_be_raced and is_raced_by_default(settings) else SelectionRun.Race.OFF


def _check_sources(card: StrategyCard, *, has_answers: bool, has_calibration: bool) -> None:
    """Raise LabelingError where the strategy needs answers or a calibration set and is given none."""
    if (card.needs_answers or card.needs_internals) and not has_answers:
        if card.needs_internals:
            words = _(
                "The strategy “%(title)s” looks inside the model. Choose where the answers come from, or another "
                "strategy."
            )
        else:
            words = _(
                "The strategy “%(title)s” reads the model's answers. Choose where the answers come from, or another "
                "strategy."
            )
        raise LabelingError(words % {"title": card.title}, code="missing_evidence")
    if card.needs_calibration and not has_calibration:
        raise LabelingError(
            _(
                "The strategy “%(title)s” needs a calibration set: questions with known answers, like the "
                "pool's. Choose one, or another strategy."
            )
            % {"title": card.title},
            code="missing_evidence",
        )


def _n_clusters(
    pool: Pool, chosen: list[tuple[str, str, object]], generation_fingerprint: str, settings: Mapping[str, object]
) -> int:
    """How many clusters the questions bring, in the file or in their recorded votes; 0 for none."""
    recorded = recorded_clusters(pool, generation_fingerprint) if generation_fingerprint else None
    clusters: dict[str, int | None] = {}
    for uid, fingerprint, cluster in chosen:
        if recorded is None or fingerprint in recorded:  # a question without votes is left out of the run
            label = cluster if cluster is not None or recorded is None else recorded[fingerprint]
            clusters[uid] = label if isinstance(label, int) and not isinstance(label, bool) else None
    return n_given_clusters(clusters, settings)


def _check_enough_to_pick(
    pool: Pool,
    chosen: list[tuple[str, str, object]],
    calibration_set: CalibrationSet | None,
    continues: SelectionRun | None,
    settings: Mapping[str, object],
) -> None:
    """Raise where fewer questions than the budget are new: unlabeled, in no round, each once, with unknown answers."""
    spoken_for = questions_spoken_for(pool).keys() | picks_gone_on_from(SelectionRun(continues=continues))
    free = [fingerprint for uid, fingerprint, _cluster in chosen if uid not in spoken_for]
    if settings["exclude_repeats"]:
        items = None if calibration_set is None else calibration_set.items.values_list("fingerprint", flat=True)
        free = list(set(free) - set(items or ()))
    if len(free) < cast(int, settings["budget"]):
        raise EngineFailure(
            _(
                "Of %(n_chosen)s questions %(n_free)s can be picked; the budget asks for %(budget)s. The others "
                "are labeled, in a round, picked before, asked twice, or in the calibration set. Lower the "
                "budget or add questions."
            )
            % {"n_chosen": len(chosen), "n_free": len(free), "budget": settings["budget"]},
            code="pool_too_small",
        )


def _check_recorded_votes(pool: Pool, calibration_set: CalibrationSet | None, fingerprint: str) -> None:
    """Raise unless the pool, and the calibration set where there is one, have votes recorded under the fingerprint."""
    of_pool = RecordedVotes.objects.filter(question_fingerprint__in=pool.questions.values("fingerprint"))
    if not of_pool.filter(generation_fingerprint=fingerprint).exists():
        raise LabelingError(
            _("No votes are recorded for this pool under %(fingerprint)s. Import a votes file for the pool first.")
            % {"fingerprint": fingerprint},
            code="no_recorded_votes",
        )
    if calibration_set is None:
        return
    of_set = RecordedVotes.objects.filter(question_fingerprint__in=calibration_set.items.values("fingerprint"))
    if of_set.filter(generation_fingerprint=fingerprint).exists():
        return
    other = of_set.values_list("generation_fingerprint", flat=True).first()
    if other is None:
        raise LabelingError(
            _("No votes are recorded for the calibration set “%(calibration_set)s”. Import a votes file for it first.")
            % {"calibration_set": calibration_set},
            code="no_recorded_votes",
        )
    check_same_settings(pool=fingerprint, calibration=other)
