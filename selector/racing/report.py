"""What a report says of a race: what it cost beside all answers, and how far each question went."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from selector.pipeline import SelectionResult
from selector.racing.costs import Costs, costs_of
from selector.racing.settings import RaceSettings
from selector.strategies import STRATEGIES
from selector.votes import QuestionVotes


def describe_costs(
    pool: Sequence[QuestionVotes], calibration: Sequence[QuestionVotes], result: SelectionResult, race: RaceSettings
) -> dict[str, object]:
    """Return the costs of the pool's answers, raced and all of them, and under ``race`` how the race went.

    ``tokens_used`` and ``tokens_full`` (in generated tokens: see ``cost_model``) and ``rollouts_used`` and
    ``rollouts_full`` (probes and outcomes; the chain comes on top) are of the pool alone; calibration is told apart.
    ``n_complete`` questions have all their answers; ``n_undrawn`` answers nobody had to ask for.
    """
    settings = result.report["settings"]
    source = STRATEGIES[str(settings["strategy"])].votes  # type: ignore[index]
    raced = result.raced
    row_of = {uid: row for row, uid in enumerate(result.scores.table.uids)}
    in_order = sorted(pool, key=lambda question: row_of[question.uid])
    costs = costs_of(in_order, source=source, n_outcomes=raced.n_outcomes if raced else None)
    n_questions, n_outcomes = costs.outcomes.shape
    n_probes = result.scores.table.n_probes
    n_drawn = np.full(n_questions, n_outcomes) if raced is None else raced.n_drawn
    told: dict[str, object] = {
        "tokens_used": round(costs.used(n_drawn)),
        "tokens_full": round(costs.full),
        "rollouts_used": n_questions * n_probes + int(n_drawn.sum()),
        "rollouts_full": n_questions * (n_probes + n_outcomes),
    }
    details: dict[str, object] = {"mode": race.mode, "cost_model": costs.describe()}
    if raced is not None:
        drawn, counts = np.unique(raced.n_drawn, return_counts=True)
        told |= {"n_complete": int(np.count_nonzero(raced.is_complete)), "n_undrawn": raced.n_undrawn}
        details |= {
            "questions_by_outcomes_drawn": {str(n): k for n, k in zip(drawn.tolist(), counts.tolist(), strict=True)},
            "replacements": list(raced.replacements),
        }
        details |= raced.told
    if result.calibration is not None:
        costs = costs_of(calibration, source=source)
        details["calibration"] = _calibration_costs(costs, calibration, result, n_probes)
    return {**told, "race": details}


def _calibration_costs(
    costs: Costs, votes: Sequence[QuestionVotes], result: SelectionResult, n_probes: int
) -> dict[str, object]:
    n_questions, n_outcomes = costs.outcomes.shape
    n_drawn = np.full(n_questions, n_outcomes)
    calibration = result.calibration
    if calibration is not None and calibration.n_drawn is not None:
        drawn_of = dict(zip(calibration.uids, calibration.n_drawn.tolist(), strict=True))
        n_drawn = np.array([drawn_of[question.uid] for question in votes], np.int64)
    return {
        "raced": bool(calibration is not None and calibration.n_drawn is not None),
        "tokens_used": round(costs.used(n_drawn)),
        "tokens_full": round(costs.full),
        "rollouts_used": n_questions * n_probes + int(n_drawn.sum()),
        "rollouts_full": n_questions * (n_probes + n_outcomes),
    }
