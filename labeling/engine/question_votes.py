"""One question's votes, answer by answer, as a run's threshold sees them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from labeling.engine.answers import grader, policy_of
from labeling.engine.errors import translated_errors
from labeling.engine.evidence import stored_votes
from labeling.models import Question, SelectionRun
from selector.config import SelectionConfig
from selector.picking import answer_scores_of
from selector.strategies import STRATEGIES
from selector.votes import build_table


@dataclass(frozen=True)
class AnswerVotes:
    """One answer of a question, equal ones counted together.

    ``answer``: "" for completions from which none could be read. ``cuts``: at which cuts of the chain it was forced,
    from 1. ``share`` of the votes that count. ``is_plausible``: within the prediction set; None without a threshold.
    """

    answer: str
    cuts: tuple[int, ...]
    n_outcomes: int
    share: float
    is_plausible: bool | None


@dataclass(frozen=True)
class VotesOfQuestion:
    """All answers of a question, the most frequent first, unread ones last."""

    answers: tuple[AnswerVotes, ...]
    n_cuts: int
    n_outcomes: int


def votes_of_question(run: SelectionRun, question: Question) -> VotesOfQuestion | None:
    """Return what the run's stored answers to the question are; None where none are stored (any more).

    Comparing answers may take seconds where a verdict is not stored yet. Raises EngineFailure.
    """
    with translated_errors():
        found = stored_votes(run, [question])
        if not found:
            return None
        (votes,) = found
        config = SelectionConfig.from_json(run.config)
        table = build_table(found, grouping=config.grouping, policy=policy_of(run.pool), grader=grader())
        counted = table.of(STRATEGIES[config.strategy].votes)
        ((_, counts, scores),) = answer_scores_of(counted, config)
    q_hat = q_hat_of(run, question)
    codes, n_cuts = table.codes[0], len(votes.probe_answers)
    n_of = dict(zip(*np.unique(counted.codes[0], return_counts=True), strict=True))
    n_votes = max(1, int(counts.n_votes[0]))
    answers = []
    for code in np.unique(codes).tolist():
        score = float(scores[0, code]) if 0 <= code < scores.shape[1] else inf
        answers.append(
            AnswerVotes(
                answer=table.representatives[0][code] if code >= 0 else "",
                cuts=tuple(int(at) + 1 for at in np.flatnonzero(codes[:n_cuts] == code)),
                n_outcomes=int(np.count_nonzero(codes[n_cuts:] == code)),
                share=int(n_of.get(code, 0)) / n_votes if code >= 0 or config.unread == "symbol" else 0.0,
                is_plausible=None if q_hat is None or code < 0 else score < inf and score <= q_hat,
            )
        )
    answers.sort(key=lambda each: (not each.answer, -each.share, each.answer))
    return VotesOfQuestion(tuple(answers), n_cuts=n_cuts, n_outcomes=len(votes.outcome_answers))


def q_hat_of(run: SelectionRun, question: Question) -> float | None:
    """Return the threshold that the run had for the question, its group's where there are groups; None without one."""
    groups = (run.report or {}).get("groups") or {}
    own = groups.get(question.answer_kind) or groups.get("other")
    q_hat, infinite = (own["q_hat"], own["q_hat_infinite"]) if own else (run.q_hat, run.q_hat_infinite)
    return inf if infinite else q_hat
