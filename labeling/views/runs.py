"""Selection runs: asking for one, watching it, and reading what it found."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from labeling.actions import runs as actions
from labeling.engine.selection import presets, strategies, strategy_card
from labeling.errors import LabelingError
from labeling.forms import RunForm
from labeling.models import Pool, SelectionRun
from labeling.queries import run_pictures, run_results
from labeling.queries import runs as queries
from labeling.queries.shared import policy_models
from labeling.views.access import managed_pool, managed_run
from labeling.views.respond import HtmxHttpRequest, page_of, redirect, say

LINKED = ("alpha", "continues", "strategy")  # settings that a link to the form may bring


@require_safe
def pool_runs(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    pool = managed_pool(request.user, pool_slug)
    return render(
        request,
        "labeling/runs.html",
        {"pool": pool, "page": page_of(request, queries.runs_of(pool).order_by("-created_at", "-id"))},
    )


@require_http_methods(["GET", "POST"])
def run_new(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Ask for a run; everything is checked before a model is asked anything."""
    pool = managed_pool(request.user, pool_slug)
    form = RunForm(
        request.POST or None,
        pool=pool,
        sources=_sources(pool),
        strategies=[strategy_card(key) for key in strategies()],
        runs=queries.runs_to_go_on_from(pool),
        presets=[(name, name) for name in presets()],
        embedder=actions.DEFAULT_EMBEDDER,
        initial={"alpha": "0.1", **{name: request.GET[name] for name in LINKED if name in request.GET}},
    )
    if request.method == "POST" and form.is_valid():
        asked = dict(form.cleaned_data)
        kind, _colon, name = asked.pop("answers_from").partition(":")
        source: dict[str, Any] = {}
        if kind == "model":
            source["policy_model"] = policy_models().get(pk=name)
        elif kind == "votes":
            source["generation_fingerprint"] = name
        asked |= {name: asked[name] or None for name in ("control_share", "race")}
        try:
            run = actions.create_run(pool=pool, by=request.user, **asked, **source)
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            return redirect(request, "run", run_id=run.pk)
    context = {
        "pool": pool,
        "form": form,
        "n_questions": pool.questions.count(),
        "can_ask": len(form.fields["answers_from"].choices) > 1,  # type: ignore[attr-defined]
    }
    return render(request, "labeling/run_new.html", context, status=422 if form.errors else 200)


def _sources(pool: Pool) -> list[tuple[str, str]]:
    models = [
        (
            f"model:{model.pk}",
            _("%(model)s (demo only)") % {"model": model} if model.model == "assay-tiny" else str(model),
        )
        for model in policy_models()
        if model.engine != model.EngineKind.SCRIPTED
    ]
    recorded = [
        (
            f"votes:{fingerprint}",
            ngettext(
                "Imported votes of %(n)s question (%(fingerprint)s)",
                "Imported votes of %(n)s questions (%(fingerprint)s)",
                n,
            )
            % {"n": n, "fingerprint": fingerprint[:12]},
        )
        for fingerprint, n in queries.recorded_settings_of(pool)
    ]
    return [*models, *recorded, ("none", _("Nowhere: for strategies that read no answers"))]


@require_safe
def run(request: HtmxHttpRequest, run_id: int) -> HttpResponse:
    """How far the run is, and once it is finished what it found."""
    run = managed_run(request.user, run_id)
    context: dict[str, Any] = {"run": run, "pool": run.pool, "progress": queries.run_progress(run)}
    if run.status == SelectionRun.Status.FINISHED:
        page = page_of(request, run_results.ranked_picks(run))
        context |= {
            "threshold": run_results.threshold_in_words(run),
            "notices": run_results.notices_of(run),
            "coverage": run_results.coverage_check_in_words(run),
            "comparison": run_results.comparison_of(run),
            "set_sizes": run_pictures.set_sizes(run),
            "raced": run_results.raced(run),
            "coverage_lines": run_pictures.coverage_lines(run),
            "truth_scores": run_pictures.truth_scores(run),
            "page": page,
            "picks": run_results.picks_of(run, page.object_list),
            "map": run_pictures.pool_map(run),
            "not_picked": run_results.not_picked(run),
            "rounds": run.rounds.order_by("-id"),
        }
    return render(request, "labeling/run.html", context)


@require_safe
def run_progress(request: HtmxHttpRequest, run_id: int) -> HttpResponse:
    """The progress alone, asked for again and again; when the run has ended the whole page is loaded anew."""
    run = managed_run(request.user, run_id)
    progress = queries.run_progress(run)
    if not progress.is_live or not request.htmx:
        return redirect(request, "run", run_id=run.pk)
    return render(request, "labeling/run.html#progress", {"run": run, "pool": run.pool, "progress": progress})


@require_POST
def run_cancel(request: HtmxHttpRequest, run_id: int) -> HttpResponse:
    run = actions.cancel_run(managed_run(request.user, run_id), by=request.user)
    say(request, _("The run stops after the answers in flight; all it has is kept."))
    return redirect(request, "run", run_id=run.pk)


@require_POST
def run_complete(request: HtmxHttpRequest, run_id: int) -> HttpResponse:
    """A new run that asks for what a race left out."""
    run = actions.complete_run(managed_run(request.user, run_id), by=request.user)
    return redirect(request, "run", run_id=run.pk)


@require_POST
def run_retry(request: HtmxHttpRequest, run_id: int) -> HttpResponse:
    run = actions.retry_run(managed_run(request.user, run_id), by=request.user)
    say(request, _("The run is queued again and goes on from the stored answers."))
    return redirect(request, "run", run_id=run.pk)
