"""Which labeled questions a model is sometimes right on, from stored rollouts; no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from labeling.engine.answers import policy_of
from labeling.engine.variance import Gold, VarianceReport, aggregates, described, rollout_scores
from labeling.models import CalibrationSet, GoldAnswer, Pool, Question, SelectionRun, User

SECONDS_PER_LOOK = 0.8  # of grading while somebody waits for the page; the page then shows how far it is
CATEGORIES = {
    "useful": _("useful"),
    "always_right": _("always right"),
    "always_wrong": _("always wrong"),
    "constant": _("constant"),
}
WHAT_TO_DO = {
    "useful": _("Train on these: their rollouts earn different rewards."),
    "always_right": _("Mastered. Leave them out, or keep some to see that nothing is forgotten."),
    "always_wrong": _("Too hard for now. Check the answers, give hints, or come back after training."),
    "constant": _("The reward hardly moves. Leave them out."),
}


@dataclass(frozen=True)
class CategoryLine:
    """One category, how many questions it has, and what to do with them."""

    key: str
    words: str
    n: int
    advice: str


@dataclass(frozen=True)
class QuestionLine:
    """One labeled question and what its rollouts earned."""

    question: Question
    n_runs: int
    mean: float
    variance: float
    category: str
    words: str


@dataclass(frozen=True)
class RolloutVariance:
    """What stored rollouts say about questions with known answers.

    ``n_left`` of them are still to be graded; until then there is no ``report``, nor where no question has rollouts.
    ``cells``: mean, variance, category, its words, number of questions there.
    """

    n_known: int
    n_graded: int
    n_left: int
    n_without_rollouts: int
    report: dict[str, Any] | None = None
    categories: Sequence[CategoryLine] = ()
    cells: Sequence[tuple[float, float, str, str, int]] = ()
    lines: Sequence[QuestionLine] = ()


def runs_with_rollouts(
    *, pool: Pool | None = None, calibration_set: CalibrationSet | None = None
) -> list[SelectionRun]:
    """The finished runs of a pool or with a calibration set, newest first, one for each way of sampling answers."""
    runs = SelectionRun.objects.filter(status=SelectionRun.Status.FINISHED).exclude(generation_fingerprint="")
    if pool is not None:
        runs = runs.filter(pool=pool)
    if calibration_set is not None:
        runs = runs.filter(calibration_set=calibration_set)
    found: dict[tuple[Any, ...], SelectionRun] = {}
    for run in runs.select_related("pool", "policy_model").defer("report", "traceback").order_by("-created_at", "-id"):
        pool_id = None if pool is not None else run.pool_id
        found.setdefault((pool_id, run.generation_fingerprint, run.config.get("n_outcomes")), run)
    return list(found.values())


def runs_on_set(*, calibration_set: CalibrationSet, user: User) -> list[SelectionRun]:
    """The same for a calibration set, of the pools that the person manages."""
    managed = set(Pool.objects.managed_by(user).values_list("pk", flat=True))
    return [run for run in runs_with_rollouts(calibration_set=calibration_set) if run.pool_id in managed]


def variance_of_pool(run: SelectionRun, *, seconds: float | None = SECONDS_PER_LOOK) -> RolloutVariance:
    """The pool's gold answers against the run's stored answers, question by question, most varied first."""
    golds = GoldAnswer.objects.filter(question__pool=run.pool).select_related("question").order_by("question__uid")
    questions = {gold.question.uid: gold.question for gold in golds}
    found, report = _variance(run, [(gold.question, gold.answer) for gold in golds], seconds=seconds)
    if report is None:
        return found
    lines = [
        QuestionLine(
            question=questions[uid],
            n_runs=int(report.n_runs[row]),
            mean=float(report.means[row]),
            variance=float(report.variances[row]),
            category=report.categories[row].value,
            words=str(CATEGORIES[report.categories[row].value]),
        )
        for row, uid in enumerate(report.uids)
    ]
    return replace(found, lines=sorted(lines, key=lambda line: (-line.variance, line.mean, line.question.uid)))


def variance_of_set(run: SelectionRun, *, seconds: float | None = SECONDS_PER_LOOK) -> RolloutVariance:
    """The calibration set's sealed answers against the run's stored answers: aggregates only."""
    items = run.calibration_set.items.order_by("uid") if run.calibration_set else []
    return _variance(run, [(item, item.answer) for item in items], seconds=seconds)[0]


def _variance(
    run: SelectionRun, golds: Sequence[Gold], *, seconds: float | None
) -> tuple[RolloutVariance, VarianceReport | None]:
    scores = rollout_scores(run, golds, policy=policy_of(run.pool), seconds=seconds)
    counts = RolloutVariance(
        n_known=len(golds),
        n_graded=len(scores.rewards),
        n_left=scores.n_left,
        n_without_rollouts=len(scores.without_rollouts),
    )
    report = None if scores.n_left else described(golds, scores)
    if report is None:
        return counts, None
    figures = aggregates(report)
    found = replace(
        counts,
        report=figures,
        categories=[
            CategoryLine(key, str(CATEGORIES[key]), n, str(WHAT_TO_DO[key]))
            for key, n in figures["categories"].items()
            if n or key != "constant"
        ],
        cells=[
            (mean, variance, category.value, str(CATEGORIES[category.value]), n)
            for mean, variance, category, n in report.cells()
        ],
    )
    return found, report
