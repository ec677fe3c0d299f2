"""From votes to picks, through the engine; and the settings of a run, checked before anything is asked of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeling.engine.answers import grader, policy_of
from labeling.engine.errors import translated_errors
from labeling.models import Pick, Question, QuestionScore, SelectionRun
from selector.config import PRESETS, SelectionConfig
from selector.conformal import THRESHOLDS
from selector.diversity import embedder_fingerprint, project_2d, resolve_embedder
from selector.pipeline import SelectionResult, run_selection
from selector.strategies import STRATEGIES
from selector.votes import QuestionVotes


@dataclass(frozen=True)
class Selected:
    """What a selection found: rows to be saved, and the report."""

    scores: list[QuestionScore]
    picks: list[Pick]
    q_hat: float | None
    q_hat_infinite: bool
    report: dict[str, Any]


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
    """Raise EngineFailure when a packaged embedder is not installed."""
    with translated_errors():
        resolve_embedder(embedder)


def needs_clusters(config: Mapping[str, object]) -> bool:
    """Whether the strategy picks from clusters, so that questions need an embedder or clusters of their own."""
    return STRATEGIES[str(config["strategy"])].uses_clusters


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
    ineligible: Mapping[str, str],
    progress: Callable[[int, int], None],
) -> Selected:
    """Score the questions and pick some. ``questions``, ``pool_votes`` and ``embeddings`` [N, D] are aligned.

    ``ineligible`` maps uids that must not be picked to a reason code. ``progress`` hears how many questions of pool
    and calibration set have had their answers grouped. Raises EngineFailure.
    """
    stage_starts = {"grouping calibration answers": 0, "grouping pool answers": len(calibration_votes)}
    n_all = len(calibration_votes) + len(pool_votes)

    def report_progress(stage: str, done: int, _total: int) -> None:
        if stage in stage_starts:
            progress(stage_starts[stage] + done, n_all)

    with translated_errors():
        result = run_selection(
            pool_votes,
            calibration_votes,
            config=SelectionConfig.from_json(run.config),
            embeddings=embeddings,
            embedder=embedder_fingerprint(run.embedder) if run.embedder else "",
            grader=grader(),
            policy=policy_of(run.pool),
            ineligible=ineligible,
            progress=report_progress,
        )
    of_uid = {question.uid: row for row, question in enumerate(questions)}
    points = None if embeddings is None else project_2d(embeddings, [question.uid for question in questions])
    q_hat = None if result.calibration is None else result.calibration.q_hat
    return Selected(
        scores=_scores(run, questions, of_uid, result, points),
        picks=_picks(run, questions, of_uid, result),
        q_hat=None if q_hat is None or isinf(q_hat) else q_hat,
        q_hat_infinite=q_hat is not None and isinf(q_hat),
        report=result.report,
    )


def _scores(
    run: SelectionRun,
    questions: Sequence[Question],
    of_uid: Mapping[str, int],
    result: SelectionResult,
    points: NDArray[np.float64] | None,
) -> list[QuestionScore]:
    rows = []
    for i, uid in enumerate(result.scores.table.uids):
        point = None if points is None else points[of_uid[uid]]
        rows.append(
            QuestionScore(
                run=run,
                question=questions[of_uid[uid]],
                set_size=int(result.scores.set_size[i]),
                acquisition_score=float(result.acquisition_scores[i]),
                entropy=float(result.scores.entropy[i]),
                n_readable=int(result.scores.n_readable[i]),
                n_distinct=int(result.scores.n_distinct[i]),
                cluster=int(result.labels[i]),
                eligible=not result.ineligible[i],
                ineligible_reason=result.ineligible[i],
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
        )
        for pick in result.picks
    ]
