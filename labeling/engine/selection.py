"""From votes to picks, through the engine; and the settings of a run, checked before anything is asked of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeling.engine.answers import grader, policy_of
from labeling.engine.errors import translated_errors
from labeling.models import Pick, Question, QuestionScore, SelectionRun
from selector import diversity, pipeline
from selector.config import MOST_SEED as MOST_SEED
from selector.config import PRESETS, SelectionConfig
from selector.conformal import THRESHOLDS
from selector.coverage_curve import coverage_curve, score_histogram
from selector.diversity import ClusteringStore, embedder_fingerprint, project_2d
from selector.internals import Internals
from selector.outcomes import ModelOutcomes
from selector.picking import draw_controls
from selector.pipeline import SelectionResult, run_selection
from selector.racing.report import describe_costs
from selector.racing.settings import RaceSettings
from selector.strategies import STRATEGIES, Need
from selector.strategies.contract import INTERNAL_NEEDS
from selector.votes import QuestionVotes

NEEDS_IN_WORDS: Mapping[Need, str] = MappingProxyType(
    {
        Need.CALIBRATION: "a calibration set",
        Need.VOTES: "the model’s answers",
        Need.COMPLETE_VOTES: "all of the model’s answers",
        Need.EMBEDDINGS: "embeddings",
        Need.HIDDEN_STATES: "hidden states",
        Need.ATTENTION: "attention",
        Need.TOKEN_PROBABILITIES: "token probabilities",
        Need.LABELS: "right answers to some questions of the pool",
    }
)


@dataclass(frozen=True)
class StrategyCard:
    """What a person who chooses a strategy should know. ``needs`` and ``cost`` are words; "" costs nothing."""

    key: str
    title: str
    is_reconstruction: bool
    needs: list[str]
    cost: str
    needs_calibration: bool
    needs_answers: bool
    needs_internals: bool
    needs_embeddings: bool
    uses_clusters: bool


@dataclass(frozen=True)
class Selected:
    """What a selection found: rows to be saved, and the report."""

    scores: list[QuestionScore]
    picks: list[Pick]
    q_hat: float | None
    q_hat_infinite: bool
    report: dict[str, Any]
    race_history: list[dict[str, int]]


def config_as_json(*, preset: str | None = None, **fields: Any) -> dict[str, object]:
    """Check the settings of a selection and return them as JSON; None leaves one as the preset has it."""
    with translated_errors():
        return SelectionConfig.preset(preset or "recommended", **fields).to_json()


def check_calibration_size(n_items: int, config: Mapping[str, object]) -> None:
    """Raise EngineFailure when no set of that size can give a threshold for the alpha in the settings."""
    with translated_errors():
        settings = SelectionConfig.from_json(config)
        THRESHOLDS[settings.quantile](np.zeros(n_items), settings.alpha_fraction)


def check_embedder(embedder: str) -> None:
    """Raise EngineFailure when there is no such embedder; one on the model hub is asked for, so in no transaction."""
    with translated_errors():
        diversity.check_embedder(embedder)


def n_given_clusters(clusters: Mapping[str, int | None], config: Mapping[str, object]) -> int:
    """Return how many clusters the questions bring, 0 for none. Raises EngineFailure where they do not fit."""
    with translated_errors():
        return pipeline.n_given_clusters(clusters, SelectionConfig.from_json(config))


def needs_budget(config: Mapping[str, object]) -> bool:
    """Whether the strategy takes as many questions as the budget says, not all there are."""
    return STRATEGIES[str(config["strategy"])].needs_budget


def reads_answers(config: Mapping[str, object]) -> bool:
    """Whether a run with these settings asks for answers: not where the strategy looks inside the model instead."""
    strategy = STRATEGIES[str(config["strategy"])]
    return strategy.needs_votes() or Need.CALIBRATION in strategy.needs or not strategy.needs & INTERNAL_NEEDS


def fit_to_strategy(config: Mapping[str, object], *, is_calibrated: bool, n_questions: int) -> dict[str, object]:
    """Return the settings with only the answers that the strategy needs, where there is no calibration set to ask all
    of them for; and with a budget of the whole pool where the strategy takes it whatever the budget says."""
    with translated_errors():
        settings = SelectionConfig.from_json(config)
        strategy = STRATEGIES[settings.strategy]
        if not is_calibrated:
            cost = strategy.cost(settings.n_outcomes, settings.n_probes)
            settings = settings.replace(n_outcomes=cost.outcomes, n_probes=cost.probes)
        if not strategy.needs_budget:
            settings = settings.replace(budget=max(n_questions, 1))
        return settings.to_json()


def can_be_raced(config: Mapping[str, object]) -> bool:
    """Whether the picks can be known before every question has all its full answers."""
    return STRATEGIES[str(config["strategy"])].can_be_raced


def is_raced_by_default(config: Mapping[str, object]) -> bool:
    """Whether a model is asked only what the picks depend on unless somebody wants more: not by the published rules,
    whose figures rest on all answers."""
    return can_be_raced(config) and config["preset_name"] == "recommended"


def needs_trajectories(config: Mapping[str, object]) -> bool:
    """Whether a run with these settings needs a chain of every question: to cut it, or to look inside the model."""
    return bool(config["n_probes"]) or bool(STRATEGIES[str(config["strategy"])].needs & INTERNAL_NEEDS)


def strategy_card(key: str, *, n_outcomes: int = 20, n_probes: int = 20) -> StrategyCard:
    """Describe one strategy; its cost a question where so many answers of each kind are asked for."""
    strategy = STRATEGIES[key]
    cost = strategy.cost(n_outcomes, n_probes)
    parts = [
        (cost.outcomes, "full answer"),
        (cost.trajectories, "chain of thought"),
        (cost.probes, "forced answer"),
        (cost.forward_passes, "pass over it"),
    ]
    needs = [
        "embeddings or given clusters" if need is Need.EMBEDDINGS and strategy.uses_clusters else NEEDS_IN_WORDS[need]
        for need in Need
        if need in strategy.needs
    ]
    return StrategyCard(
        key=key,
        title=strategy.title,
        is_reconstruction=strategy.provenance == "reconstruction",
        needs=[*needs, *(["a model on the worker’s machine"] if strategy.needs & INTERNAL_NEEDS else [])],
        cost=", ".join(f"{n} {what}{'' if n == 1 else _plural(what)}" for n, what in parts if n),
        needs_calibration=Need.CALIBRATION in strategy.needs,
        needs_answers=strategy.needs_votes(),
        needs_internals=bool(strategy.needs & INTERNAL_NEEDS),
        needs_embeddings=Need.EMBEDDINGS in strategy.needs,
        uses_clusters=strategy.uses_clusters,
    )


def _plural(what: str) -> str:
    return "" if what == "chain of thought" else "s"


def presets() -> Mapping[str, Mapping[str, object]]:
    """The presets by name, with the settings in which each differs from the defaults."""
    return PRESETS


def strategies() -> Mapping[str, str]:
    """The titles of the strategies by key."""
    return {key: strategy.title for key, strategy in STRATEGIES.items()}


def select_questions(
    run: SelectionRun,
    questions: Sequence[Question],
    pool_votes: Sequence[QuestionVotes],
    calibration_votes: Sequence[QuestionVotes],
    *,
    embeddings: NDArray[np.float32] | None,
    internals: Internals | None,
    ineligible: Mapping[str, str],
    labeled: Collection[str] = (),
    outcomes: ModelOutcomes | None = None,
    clusterings: ClusteringStore | None = None,
    progress: Callable[[str, int, int], None],
) -> Selected:
    """Score the questions and pick some. ``questions``, ``pool_votes`` and ``embeddings`` [N, D] are aligned;
    ``internals`` go by uid.

    ``ineligible`` maps uids that must not be picked to a reason code; the picks go on from those in ``labeled``.
    ``outcomes``, where the run is raced, gives the answers that the pool's votes still lack; ``clusterings`` keeps
    which clusters were found. ``progress`` hears, under "scoring", how many questions have had
    their answers grouped, and under "racing" of how many clusters the best are known. Raises EngineFailure.
    """
    race = RaceSettings(run.race)
    stage_starts = {"grouping calibration answers": 0, "grouping pool answers": len(calibration_votes)}
    n_all = len(calibration_votes) + len(pool_votes)

    def report_progress(stage: str, done: int, total: int) -> None:
        if stage in stage_starts:
            progress("scoring", stage_starts[stage] + done, n_all)
        elif stage == "racing":
            progress("racing", done, total)

    with translated_errors():
        result = run_selection(
            pool_votes,
            calibration_votes,
            config=SelectionConfig.from_json(run.config),
            embeddings=embeddings,
            embedder=embedder_fingerprint(run.embedder) if run.embedder else "",
            internals=internals,
            grader=grader(),
            policy=policy_of(run.pool),
            ineligible=ineligible,
            labeled=labeled,
            race=race,
            outcomes=outcomes,
            clusterings=clusterings,
            progress=report_progress,
        )
        report = {**result.report, "curve": _curve(result, SelectionConfig.from_json(run.config))}
        if result.raced:
            report |= describe_costs(result.pool_votes, calibration_votes, result, race)
    of_uid = {question.uid: row for row, question in enumerate(questions)}
    points = None if embeddings is None else project_2d(embeddings, [question.uid for question in questions])
    q_hat = None if result.calibration is None else result.calibration.q_hat
    return Selected(
        scores=_scores(run, questions, of_uid, result, points),
        picks=_picks(run, questions, of_uid, result),
        q_hat=None if q_hat is None or isinf(q_hat) else q_hat,
        q_hat_infinite=q_hat is not None and isinf(q_hat),
        report=report,
        race_history=[dict(moment) for moment in result.race_history],
    )


def control_order(uids: Sequence[str], seed: int) -> list[str]:
    """Return uids in the order in which a run with this seed draws its controls from them."""
    drawn = draw_controls(uids, np.ones(len(uids), bool), len(uids), seed)
    return [uids[row] for row in drawn]


def _curve(result: SelectionResult, config: SelectionConfig) -> dict[str, Any] | None:
    """What the pictures of a calibration show: other alphas, and where its right answers score; None without one."""
    if result.calibration is None:
        return None
    return {
        "alphas": coverage_curve(result.calibration, None if result.raced else result.scores.table, config),
        "scores": score_histogram(result.calibration),
    }


def _scores(
    run: SelectionRun,
    questions: Sequence[Question],
    of_uid: Mapping[str, int],
    result: SelectionResult,
    points: NDArray[np.float64] | None,
) -> list[QuestionScore]:
    rows, raced = [], result.raced
    known = None if raced is None else {*(pick.uid for pick in result.picks), *raced.replacements}
    for i, uid in enumerate(result.scores.table.uids):
        point = None if points is None else points[of_uid[uid]]
        rows.append(
            QuestionScore(
                run=run,
                question=questions[of_uid[uid]],
                set_size=int(result.scores.set_size[i]),
                set_size_at_most=None if raced is None else max(0, int(raced.upper[i])),
                n_drawn=None if raced is None else int(raced.n_drawn[i]),
                acquisition_score=float(result.acquisition_scores[i]),
                entropy=float(result.scores.entropy[i]),
                n_readable=int(result.scores.n_readable[i]),
                n_distinct=int(result.scores.n_distinct[i]),
                cluster=int(result.labels[i]),
                eligible=not result.ineligible[i],
                ineligible_reason=result.ineligible[i],
                place=int(result.places[i]) + 1 if known is None or uid in known else None,
                x=None if point is None else float(point[0]),
                y=None if point is None else float(point[1]),
            )
        )
    return rows


def _picks(
    run: SelectionRun, questions: Sequence[Question], of_uid: Mapping[str, int], result: SelectionResult
) -> list[Pick]:
    return [
        Pick(
            run=run,
            question=questions[of_uid[pick.uid]],
            rank=pick.rank,
            cluster=pick.cluster,
            set_size=pick.set_size,
            acquisition_score=pick.acquisition_score,
            prediction_set=[{"answer": each.answer, "frequency": each.frequency} for each in pick.prediction_set],
            tied_with=pick.tied_with,
            tie_break=pick.tie_break_reason,
            taken_by=pick.taken_by,
            inclusion_probability=pick.inclusion_probability,
        )
        for pick in result.picks
    ]
