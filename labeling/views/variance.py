"""Variance: which questions with known answers a model is sometimes right on, from answers that are stored."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from labeling.models import SelectionRun
from labeling.queries import variance as queries
from labeling.queries.variance import RolloutVariance
from labeling.views.access import managed_calibration_set, managed_pool
from labeling.views.respond import HtmxHttpRequest, page_of, redirect


@require_safe
def pool_variance(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """The pool's labeled questions, as the stored answers of one of its runs say."""
    pool = managed_pool(request.user, pool_slug)
    runs = queries.runs_with_rollouts(pool=pool)
    run = _chosen(request, runs)
    found = queries.variance_of_pool(run) if run else None
    category = request.GET.get("category", "")
    lines = [line for line in found.lines if not category or line.category == category] if found else []
    context = {
        "pool": pool,
        "page": page_of(request, lines) if found and found.report else None,
        "category": category,
        "category_words": next((each.words for each in found.categories if each.key == category), "") if found else "",
    }
    return _respond(request, run, runs, found, context)


@require_safe
def set_variance(request: HtmxHttpRequest, set_id: int) -> HttpResponse:
    """A calibration set as a whole; nothing of its single questions."""
    calibration_set = managed_calibration_set(request.user, set_id)
    runs = queries.runs_on_set(calibration_set=calibration_set, user=request.user)
    run = _chosen(request, runs)
    found = queries.variance_of_set(run) if run else None
    return _respond(request, run, runs, found, {"calibration_set": calibration_set})


def _chosen(request: HtmxHttpRequest, runs: list[SelectionRun]) -> SelectionRun | None:
    """The run asked for, by default the newest. Raises Http404 for another."""
    asked = request.GET.get("run", "")
    if not asked:
        return runs[0] if runs else None
    run = next((each for each in runs if str(each.pk) == asked), None)
    if run is None:
        raise Http404
    return run


def _respond(
    request: HtmxHttpRequest,
    run: SelectionRun | None,
    runs: list[SelectionRun],
    found: RolloutVariance | None,
    context: dict[str, Any],
) -> HttpResponse:
    """The page; for htmx, which asks while answers are being graded, the progress, and at the end the page anew."""
    query = {"run": str(run.pk)} if run else {}
    more = query | ({"category": context["category"]} if context.get("category") else {})
    context |= {
        "run": run,
        "runs": runs,
        "variance": found,
        "run_query": urlencode(query),
        "page_query": urlencode(more),
    }
    if request.htmx:
        if found is None or not found.n_left:
            return redirect(request, request.get_full_path())
        return render(request, "labeling/variance.html#progress", context)
    return render(request, "labeling/variance.html", context)
