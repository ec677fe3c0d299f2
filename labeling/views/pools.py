"""Pools: making one, its overview, its questions and its guideline."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from labeling import policies
from labeling.actions.people import create_pool
from labeling.actions.pools import save_guideline
from labeling.errors import LabelingError
from labeling.forms import GuidelineForm, PoolForm
from labeling.queries import pools as queries
from labeling.queries.attention import noteworthy_events
from labeling.queries.pool_questions import imports_of, questions_of
from labeling.queries.queue import work_for
from labeling.queries.rounds import rounds_of
from labeling.queries.runs import runs_of
from labeling.views.access import managed_pool, pool_or_404
from labeling.views.respond import HtmxHttpRequest, page_of, redirect, render_page, say


@require_http_methods(["GET", "POST"])
def pool_new(request: HtmxHttpRequest) -> HttpResponse:
    policies.check_can_create_pool(request.user)
    form = PoolForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        described = {name: form.cleaned_data[name] for name in ("name", "description", "text_format")}
        try:
            pool = create_pool(by=request.user, answer_policy=form.answer_policy(), **described)
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            say(request, _("%(pool)s is there. Import its questions next.") % {"pool": pool})
            return redirect(request, "pool-import", pool_slug=pool.slug)
    return render(request, "labeling/pool_new.html", {"form": form}, status=422 if form.errors else 200)


@require_safe
def pool(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """A manager's overview; for everybody else the rounds in which there is work."""
    pool = pool_or_404(request.user, pool_slug)
    work = [row for row in work_for(user=request.user) if row.round.run.pool_id == pool.pk]
    if not policies.can_manage(pool, request.user):
        context = {"pool": pool, "work": work, "guideline": queries.current_guideline(pool=pool)}
        return render(request, "labeling/pool_work.html", context)
    context = {
        "pool": pool,
        "work": work,
        "counts": queries.pool_counts(pool=pool),
        "budgets": queries.budgets_of(pool=pool),
        "rounds": rounds_of(pool=pool)[:10],
        "runs": runs_of(pool).order_by("-created_at", "-id")[:5],
        "imports": imports_of(pool)[:5],
        "guideline": queries.current_guideline(pool=pool),
        "events": noteworthy_events(pool),
    }
    return render(request, "labeling/pool.html", context)


@require_safe
def questions(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """All questions, in pages."""
    pool = managed_pool(request.user, pool_slug)
    search = request.GET.get("q", "").strip()
    context = {"pool": pool, "search": search, "page": page_of(request, questions_of(pool, search=search))}
    return render_page(request, "labeling/questions.html", "list", context)


@require_http_methods(["GET", "POST"])
def guideline(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """The current guideline, to be replaced by a new version; the versions before it stay."""
    pool = managed_pool(request.user, pool_slug)
    current = queries.current_guideline(pool=pool)
    form = GuidelineForm(request.POST or None, initial={"text": current.text if current else ""})
    if request.method == "POST" and form.is_valid():
        saved = save_guideline(pool=pool, text=form.cleaned_data["text"], by=request.user)
        say(
            request,
            _("Version %(version)s is the guideline now. Rounds that are open keep theirs.")
            % {"version": saved.version},
        )
        return redirect(request, "pool-guideline", pool_slug=pool.slug)
    context = {"pool": pool, "form": form, "current": current, "versions": queries.guideline_versions(pool=pool)}
    return render(request, "labeling/guideline.html", context, status=422 if form.errors else 200)
