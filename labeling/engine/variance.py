"""Gold answers against stored rollouts: which questions a model is sometimes right on. No model is asked.

A question's scores are kept once computed, so that only the first look at a page has anything to grade.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from labeling.engine.answers import AnswerPolicy, grader
from labeling.models import CalibrationItem, Question, RecordedVotes, RolloutScores, SelectionRun, StoredCompletion
from selector.answers import GRADER_VERSION, extract_answer
from selector.generation.contract import CompletionKind
from selector.variance import KEEPS, VarianceReport, rewards_of, variance_report
from selector.variance_advice import report_as_json
from selector.votes import QuestionVotes

__all__ = [
    "KEEPS",
    "MIN_RUNS_TO_JUDGE",
    "Gold",
    "Scores",
    "VarianceReport",
    "aggregates",
    "described",
    "left_out",
    "rollout_scores",
]

Gold = tuple[Question | CalibrationItem, str]  # what was asked, and its right answer
QUESTIONS_PER_QUERY = 500
QUESTIONS_PER_STEP = 20  # graded and kept at a time
MIN_RUNS_TO_JUDGE = 2  # one run never shows variance


@dataclass(frozen=True)
class Scores:
    """The rewards of the questions that have rollouts, by uid; who has none; how many are still to be graded."""

    rewards: Mapping[str, Sequence[float]]
    without_rollouts: Sequence[str]
    n_left: int


def rollout_scores(
    run: SelectionRun, golds: Sequence[Gold], *, policy: AnswerPolicy, seconds: float | None = None
) -> Scores:
    """Grade the run's stored outcome answers against the gold answers: 1.0 for right, 0.0 for wrong or unread.

    With ``seconds``, stop grading after about that long; what is graded is kept, and the next call goes on from there.
    """
    key_of = {row.uid: _key(run, row, gold, policy) for row, gold in golds}
    keys = {key_of[row.uid]: (row, gold) for row, gold in golds}  # equal questions share one
    kept = {
        key: rewards
        for chunk in _chunks(sorted(keys))
        for key, rewards in RolloutScores.objects.filter(pk__in=chunk).values_list("key", "rewards")
    }
    missing = {key: each for key, each in keys.items() if key not in kept}
    stored = _asked(run, {row.fingerprint for row, _ in missing.values()})
    to_grade = [(key, row, gold) for key, (row, gold) in missing.items() if row.fingerprint in stored]
    n_graded, end = 0, None if seconds is None else time.monotonic() + seconds
    for start in range(0, len(to_grade), QUESTIONS_PER_STEP):
        step = to_grade[start : start + QUESTIONS_PER_STEP]
        answers = _outcomes(run, {row.fingerprint for _, row, _ in step})
        fresh = {}
        for key, row, gold in step:
            fresh[key] = rewards_of(
                gold, answers[row.fingerprint], kind=row.answer_kind or None, grader=grader(), policy=policy
            )
            n_graded += 1
            if end is not None and time.monotonic() >= end:
                break
        RolloutScores.objects.bulk_create(
            [RolloutScores(key=key, rewards=rewards) for key, rewards in fresh.items()], ignore_conflicts=True
        )
        kept |= fresh
        if end is not None and time.monotonic() >= end:
            break
    return Scores(
        rewards={uid: kept[key] for uid, key in key_of.items() if key in kept},
        without_rollouts=[row.uid for row, _ in golds if key_of[row.uid] in missing and row.fingerprint not in stored],
        n_left=len(to_grade) - n_graded,
    )


def described(golds: Sequence[Gold], scores: Scores) -> VarianceReport | None:
    """Return the report of the questions that have scores, in their order; None where there are none."""
    rows = [row for row, _ in golds if row.uid in scores.rewards]
    if not rows:
        return None
    return variance_report(
        [scores.rewards[row.uid] for row in rows],
        [row.uid for row in rows],
        n_choices=[len(row.choices) for row in rows],
    )


def aggregates(report: VarianceReport) -> dict[str, Any]:
    """Return all of a report but its single questions, as JSON types."""
    return report_as_json(report, questions=False)


def left_out(rewards: Mapping[str, Sequence[float]], keep: str) -> dict[str, str]:
    """Return which uids ``keep`` (of KEEPS) leaves out, with their category; fewer than two runs decide nothing."""
    judged = {uid: each for uid, each in rewards.items() if len(each) >= MIN_RUNS_TO_JUDGE}
    if not judged:
        return {}
    report = variance_report(list(judged.values()), list(judged))
    each = zip(report.uids, report.categories, strict=True)
    return {uid: category.value for uid, category in each if category not in KEEPS[keep]}


def _n_outcomes(run: SelectionRun) -> int | None:
    """How many of the stored outcomes are the run's; None: all that were recorded."""
    return None if run.policy_model_id is None else int(run.config["n_outcomes"])


def _key(run: SelectionRun, row: Question | CalibrationItem, gold: str, policy: AnswerPolicy) -> str:
    parts = [
        *(GRADER_VERSION, row.fingerprint, run.generation_fingerprint, _n_outcomes(run)),
        *(gold, row.answer_kind, policy.to_json()),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _asked(run: SelectionRun, fingerprints: set[str]) -> set[str]:
    """Which questions have every outcome answer of the run stored."""
    found: set[str] = set()
    n_outcomes = _n_outcomes(run)
    for chunk in _chunks(sorted(fingerprints)):
        if n_outcomes is None:
            rows = RecordedVotes.objects.filter(
                generation_fingerprint=run.generation_fingerprint, question_fingerprint__in=chunk
            )
            votes = rows.values_list("question_fingerprint", "votes")
            found |= {fingerprint for fingerprint, recorded in votes if recorded.get("outcome_answers")}
        else:
            numbers: dict[str, int] = defaultdict(int)
            for fingerprint in _completions(run, chunk).values_list("question_fingerprint", flat=True):
                numbers[fingerprint] += 1
            found |= {fingerprint for fingerprint, n in numbers.items() if n == n_outcomes > 0}
    return found


def _outcomes(run: SelectionRun, fingerprints: set[str]) -> dict[str, list[str]]:
    """The outcome answers of questions that have them, by fingerprint; "" where unread."""
    if _n_outcomes(run) is None:
        rows = RecordedVotes.objects.filter(
            generation_fingerprint=run.generation_fingerprint, question_fingerprint__in=fingerprints
        )
        return {
            fingerprint: list(QuestionVotes.from_json(votes).outcome_answers)
            for fingerprint, votes in rows.values_list("question_fingerprint", "votes")
        }
    found: dict[str, list[str]] = defaultdict(list)
    for row in _completions(run, sorted(fingerprints)).order_by("question_fingerprint", "index"):
        found[row.question_fingerprint].append(extract_answer(str(row.text)))
    return found


def _completions(run: SelectionRun, fingerprints: Sequence[str]) -> QuerySet[StoredCompletion]:
    return StoredCompletion.objects.filter(
        generation_fingerprint=run.generation_fingerprint,
        question_fingerprint__in=fingerprints,
        kind=CompletionKind.OUTCOME.value,
        index__lt=_n_outcomes(run),
    )


def _chunks(values: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(values), QUESTIONS_PER_QUERY):
        yield values[start : start + QUESTIONS_PER_QUERY]
