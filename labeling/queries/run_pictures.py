"""The pictures of a finished run, as the tables they are drawn from: set sizes, threshold, coverage, map, scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Count, ExpressionWrapper, F, OuterRef, Q, Subquery
from django.db.models.functions import Left

from labeling.models import Pick, QuestionScore, SelectionRun

MAP_POINTS = 2000  # of a larger pool the map shows an even share, and the first that many of the picks
TURNS, STEP = 1_000_003, 618_035  # of a golden angle: any run of rows falls evenly on the circle, whatever its order


@dataclass(frozen=True)
class SizeLine:
    """How many questions have a prediction set of one size, and how many of them were picked."""

    size: int
    n_questions: int
    n_picked: int


@dataclass(frozen=True)
class PoolMap:
    """The pool in two dimensions: ``points`` have x, y, question_id, uid, text (its beginning), set_size, cluster, and
    rank (None where not picked). ``share``: of the questions that were not picked, how many are shown, from 0 to 1."""

    points: list[dict[str, Any]]
    n_questions: int
    share: float
    n_picks_left_out: int


@dataclass(frozen=True)
class CoverageLine:
    """One alpha: in percent what it promises, what the check on halves of the calibration set covered, and between
    which bounds that was to be expected; the threshold (None: infinite) and the mean size of the sets it gives."""

    alpha: float
    wanted: float
    covered: float
    low: float
    high: float
    q_hat: float | None
    mean_set_size: float | None  # None after a race, which does not know every question's answers


def set_sizes(run: SelectionRun) -> list[SizeLine]:
    """From the smallest size to the largest, gaps filled with 0. One query."""
    counts = {int(size): n for size, n in _report(run).get("set_size_histogram", {}).items()}
    if not counts:
        return []
    picked = dict(run.picks.order_by().values_list("set_size").annotate(n=Count("pk")))
    sizes = [*counts, *picked]
    return [SizeLine(size, counts.get(size, 0), picked.get(size, 0)) for size in range(min(sizes), max(sizes) + 1)]


def coverage_lines(run: SelectionRun) -> list[CoverageLine]:
    """What other alphas would have given; empty where the run is not calibrated, too small to check, or older."""
    return [
        CoverageLine(
            alpha=each["alpha"],
            wanted=100 * (1 - each["alpha"]),
            covered=100 * each["coverage"],
            low=100 * each["band"][0],
            high=100 * each["band"][1],
            q_hat=each["q_hat"],
            mean_set_size=each["mean_set_size"],
        )
        for each in (_report(run).get("curve") or {}).get("alphas", [])
        if each["coverage"] is not None
    ]


def truth_scores(run: SelectionRun) -> list[dict[str, float]]:
    """How many right answers of the calibration set score from where to where; the absent ones are not among them."""
    return (_report(run).get("curve") or {}).get("scores", [])


def pool_map(run: SelectionRun) -> PoolMap:
    """The map, thinned by the database where the pool is large, never of its picks. Two queries.

    The share that is shown depends on the rows' numbers alone, in a way that no regular order of them can follow.
    """
    scores = QuestionScore.objects.filter(run=run, x__isnull=False)
    n_questions = scores.count()
    share = min(1.0, MAP_POINTS / max(1, n_questions))
    turn = ExpressionWrapper(F("id") * STEP % TURNS, output_field=BigIntegerField())
    rank = Pick.objects.filter(run=run, question=OuterRef("question")).values("rank")
    columns = ["x", "y", "set_size", "cluster", "rank", "question_id"]
    points = list(
        scores.annotate(rank=Subquery(rank), turn=turn)
        .filter(Q(turn__lt=int(share * TURNS)) | Q(rank__isnull=False))
        .order_by("id")
        .values(*columns, uid=F("question__uid"), text=Left("question__text", 120))
    )
    shown = [dict(point) for point in points if point["rank"] is None or point["rank"] <= MAP_POINTS]
    return PoolMap(shown, n_questions=n_questions, share=share, n_picks_left_out=len(points) - len(shown))


def score_rows(run: SelectionRun) -> Iterator[list[Any]]:
    """A head, then what the run found of every question, for a file; in the order they came. One query, streamed."""
    rank = Pick.objects.filter(run=run, question=OuterRef("question")).values("rank")
    columns = ["rank", "question__uid", "question__text", "set_size", "acquisition_score", "entropy", "n_readable"]
    columns += ["set_size_at_most", "n_drawn", "n_distinct", "cluster", "eligible", "ineligible_reason", "x", "y"]
    yield [name.replace("question__uid", "id").replace("question__text", "question") for name in columns]
    scores = QuestionScore.objects.filter(run=run).annotate(rank=Subquery(rank)).order_by("question_id")
    for row in scores.values_list(*columns).iterator(chunk_size=2000):
        yield list(row)


def _report(run: SelectionRun) -> Mapping[str, Any]:
    return run.report or {}
