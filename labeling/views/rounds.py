"""Budgets and rounds: granting answers, opening the picks of a run, and watching them being answered."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from labeling import policies
from labeling.actions import rounds as actions
from labeling.actions.budgets import MOST_UNITS, add_units, grant_budget
from labeling.errors import LabelingError
from labeling.forms import BudgetForm, RoundForm, RoundStatusForm, UnitsForm
from labeling.models import Round, Slot
from labeling.queries.agreement import agreement_in_words
from labeling.queries.answering import recent_in, undoable_in
from labeling.queries.budgets import movements_in_words, movements_of, round_cost
from labeling.queries.flags import flags_in
from labeling.queries.guidelines import guideline_for
from labeling.queries.label_risk import label_risk
from labeling.queries.own_answers import n_answered
from labeling.queries.pools import BudgetRow, budget_row, budgets_of
from labeling.queries.quality import round_checks
from labeling.queries.queue import empty_queue
from labeling.queries.reveals import n_with_model_answers, reveal_summary
from labeling.queries.round_times import times_of
from labeling.queries.round_waiting import waiting_in
from labeling.queries.rounds import round_progress
from labeling.views.access import managed_budget, managed_pool, managed_run, round_or_404
from labeling.views.respond import HtmxHttpRequest, page_of, redirect, render_page, say

CHANGES = {"pause": actions.pause_round, "resume": actions.resume_round, "close": actions.close_round}


@require_http_methods(["GET", "POST"])
def budget_new(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    pool = managed_pool(request.user, pool_slug)
    form = BudgetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            budget = grant_budget(pool=pool, by=request.user, **form.cleaned_data)
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            say(
                request,
                ngettext(
                    "%(budget)s can pay for %(units)s human answer.",
                    "%(budget)s can pay for %(units)s human answers.",
                    form.cleaned_data["units"],
                )
                % {"budget": budget, "units": form.cleaned_data["units"]},
            )
            return redirect(request, "pool", pool_slug=pool.slug)
    context = {"pool": pool, "form": form, "budgets": budgets_of(pool=pool)}
    return render(request, "labeling/budget_new.html", context, status=422 if form.errors else 200)


@require_safe
def budget_page(request: HtmxHttpRequest, budget_id: int) -> HttpResponse:
    """Where a budget's units are, and who moved them, when, and what for."""
    budget = managed_budget(request.user, budget_id)
    page = page_of(request, movements_of(budget=budget))
    row = budget_row(budget=budget)
    context = {
        "pool": budget.pool,
        "budget": budget,
        "row": row,
        "parts": _parts(row),
        "page": page,
        "movements": movements_in_words(page),
        "most_units": MOST_UNITS,
    }
    return render(request, "labeling/budget.html", context)


def _parts(row: BudgetRow) -> list[dict[str, Any]]:
    """The parts of the bar, in thousandths of what was granted."""
    start, parts = 0.0, []
    for name in ("spent", "reserved", "held", "free"):
        width = 1000 * getattr(row, name) / max(row.granted, 1)
        parts.append({"name": name, "start": start, "width": width})
        start += width
    return parts


@require_POST
def budget_add(request: HtmxHttpRequest, budget_id: int) -> HttpResponse:
    """Add units; disagreements that waited for one go to an adjudicator at once."""
    budget = managed_budget(request.user, budget_id)
    form = UnitsForm(request.POST)
    if not form.is_valid():
        raise LabelingError(
            _("Say how many units to add: a whole number between 1 and %(most_units)s.")
            % {"most_units": f"{MOST_UNITS:,}"},
            code="units_invalid",
        )
    add_units(budget=budget, by=request.user, **form.cleaned_data)
    units = form.cleaned_data["units"]
    words = ngettext("%(budget)s has %(units)s more unit.", "%(budget)s has %(units)s more units.", units)
    say(request, words % {"budget": budget, "units": units})
    return redirect(request, "budget", budget_id=budget.pk)


@require_http_methods(["GET", "POST"])
def round_new(request: HtmxHttpRequest, run_id: int) -> HttpResponse:
    """Open the picks for labeling; the cost, and what is left for disagreements, is shown before."""
    run = managed_run(request.user, run_id)
    form = RoundForm(request.POST or None, run=run)
    if request.method == "POST" and form.is_valid():
        try:
            round = actions.open_round(run=run, by=request.user, **form.cleaned_data)
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            say(request, _("%(round)s is open. Annotators find its questions on their start page.") % {"round": round})
            return redirect(request, "round", round_id=round.pk)
    n_picks = run.picks.count()
    budgets = budgets_of(pool=run.pool)
    costs = [
        round_cost(n_questions=n_picks, overlap=n, held=actions.n_held_by_default(n_picks, n), budgets=budgets)
        for n in (1, 2, 3)
    ]
    context = {"pool": run.pool, "run": run, "form": form, "n_picks": n_picks, "budgets": budgets, "costs": costs}
    context["n_with_answers"] = n_with_model_answers(run)
    return render(request, "labeling/round_new.html", context, status=422 if form.errors else 200)


@require_safe
def round_page(request: HtmxHttpRequest, round_id: int) -> HttpResponse:
    """For managers how far every question is; for everybody else their own work."""
    round = round_or_404(request.user, round_id)
    pool, user = round.run.pool, request.user
    context = {
        "pool": pool,
        "round": round,
        "can_manage": policies.can_manage(pool, user),
        "can_annotate": policies.can_annotate(pool, user),
        "can_adjudicate": policies.can_adjudicate(pool, user),
    }
    if context["can_annotate"]:
        context["queue"] = empty_queue(user=user, round=round)
        context["held"] = round.slots.held_by(user).exclude(purpose=Slot.Purpose.ADJUDICATION).first()
        recent = recent_in(round=round, user=user)
        context |= {"recent": recent, "undoable": undoable_in(round=round, user=user, recent=recent)}
    if context["can_adjudicate"]:
        context["disagreements"] = empty_queue(user=user, round=round, purpose=Slot.Purpose.ADJUDICATION)
        context["held_adjudication"] = round.slots.held_by(user).filter(purpose=Slot.Purpose.ADJUDICATION).first()
    if context["can_manage"]:
        context["progress"] = progress = round_progress(round=round)
        context["agreement"] = agreement_in_words(progress)
        if not request.htmx:  # the part that htmx asks for is progress alone
            context["checks"] = checks = round_checks(round=round)
            context["risk"] = label_risk(progress=progress, checks=checks)
        context["waiting"] = waiting_in(progress)
        context["times"] = times_of(round)
        context["flags"] = flags_in(round=round)
        context["reveals"] = reveal_summary(round=round)
        context["flags"] = flags_in(round=round)
        return render_page(request, "labeling/round.html", "progress", context)
    context |= {"n_mine": n_answered(round, user), "guide": guideline_for(round=round, user=user)}
    return render(request, "labeling/round_queue.html", context)


@require_POST
def round_status(request: HtmxHttpRequest, round_id: int) -> HttpResponse:
    """Pause, resume or close."""
    round = round_or_404(request.user, round_id)
    policies.check_can_manage(round.run.pool, request.user)
    form = RoundStatusForm(request.POST)
    if not form.is_valid():
        raise LabelingError(_("A round can be paused, resumed or closed."), code="round_status")
    changed: Round = CHANGES[form.cleaned_data["to"]](round=round, by=request.user)
    say(
        request,
        _("%(round)s is %(status)s now.") % {"round": changed, "status": changed.get_status_display().lower()},
    )
    return redirect(request, "round", round_id=changed.pk)
