"""Comparisons of strategies: asking for one, watching it, and reading what it found."""

import json
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from labeling.actions import comparisons as actions
from labeling.engine.comparing import listed_strategies
from labeling.errors import Conflict, LabelingError
from labeling.forms.comparisons import ComparisonForm
from labeling.models import Comparison
from labeling.queries import comparisons as queries
from labeling.views.access import managed_comparison, managed_pool
from labeling.views.respond import HtmxHttpRequest, page_of, redirect, say


@require_safe
def pool_comparisons(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    pool = managed_pool(request.user, pool_slug)
    page = page_of(request, queries.comparisons_of(pool).order_by("-created_at", "-id"))
    return render(request, "labeling/comparisons.html", {"pool": pool, "page": page})


@require_http_methods(["GET", "POST"])
def comparison_new(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Ask for a comparison on the answers of a finished run."""
    pool = managed_pool(request.user, pool_slug)
    initial = {"run": request.GET["run"]} if request.GET.get("run", "").isdecimal() else {}
    form = ComparisonForm(request.POST or None, pool=pool, strategies=listed_strategies(), initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            comparison = actions.create_comparison(by=request.user, **form.cleaned_data)
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            return redirect(request, "comparison", comparison_id=comparison.pk)
    return render(
        request,
        "labeling/comparison_new.html",
        {"pool": pool, "form": form},
        status=422 if form.errors else 200,
    )


@require_safe
def comparison(request: HtmxHttpRequest, comparison_id: int) -> HttpResponse:
    """How far the comparison is, and once it is finished what it found."""
    found = managed_comparison(request.user, comparison_id)
    pool = found.run.pool
    context: dict[str, Any] = {"comparison": found, "pool": pool, "progress": queries.comparison_progress(found)}
    if result := found.result:
        sides = queries.sides_of(result)
        keys = [side[0] for side in sides]
        first = request.GET.get("a", keys[0] if keys else "")
        second = request.GET.get("b", keys[min(1, len(keys) - 1)] if keys else "")
        context |= {
            "result": result,
            "summary": queries.summary_of(result),
            "not_run": queries.not_run_of(result),
            "overlap": queries.overlap_pictures(result),
            "profiles": queries.profile_pictures(result),
            "spread": queries.spread_pictures(result),
            "cost": queries.cost_picture(result),
            "stability": queries.stability_picture(result),
            "backtest": queries.backtest_pictures(result),
            "sides": sides,
            "side": queries.side_by_side(found, first, second),
        }
    return render(request, "labeling/comparison.html", context)


@require_safe
def comparison_progress(request: HtmxHttpRequest, comparison_id: int) -> HttpResponse:
    """The progress alone, asked for again and again; when the work has ended the whole page is loaded anew."""
    found = managed_comparison(request.user, comparison_id)
    progress = queries.comparison_progress(found)
    if not progress.is_live or not request.htmx:
        return redirect(request, "comparison", comparison_id=found.pk)
    context = {"comparison": found, "pool": found.run.pool, "progress": progress}
    return render(request, "labeling/comparison.html#progress", context)


@require_safe
def comparison_json(request: HtmxHttpRequest, comparison_id: int) -> HttpResponse:
    """The whole result as a file."""
    found = managed_comparison(request.user, comparison_id)
    if found.status != Comparison.Status.FINISHED:
        raise Conflict(
            _("The comparison is %(status)s; there is no result to download yet.")
            % {"status": found.get_status_display().lower()}
        )
    text = json.dumps(found.result, indent=2, ensure_ascii=False)
    headers = {"Content-Disposition": f'attachment; filename="comparison-{found.pk}.json"'}
    return HttpResponse(text, content_type="application/json", headers=headers)


@require_POST
def comparison_cancel(request: HtmxHttpRequest, comparison_id: int) -> HttpResponse:
    found = actions.cancel_comparison(managed_comparison(request.user, comparison_id), by=request.user)
    say(request, _("The comparison stops."))
    return redirect(request, "comparison", comparison_id=found.pk)


@require_POST
def comparison_retry(request: HtmxHttpRequest, comparison_id: int) -> HttpResponse:
    found = actions.retry_comparison(managed_comparison(request.user, comparison_id), by=request.user)
    say(request, _("The comparison is queued again."))
    return redirect(request, "comparison", comparison_id=found.pk)
