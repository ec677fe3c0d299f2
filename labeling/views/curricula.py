"""Curricula of running trainers: making one, and what the rewards have shown so far."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from labeling.actions import curricula as actions
from labeling.actions.exports import create_snapshot
from labeling.engine.curricula import Standing, curriculum_kinds
from labeling.errors import LabelingError
from labeling.forms import CurriculumForm
from labeling.queries import curricula as queries
from labeling.queries.exports import gold_counts
from labeling.views.access import managed_curriculum, managed_pool
from labeling.views.respond import HtmxHttpRequest, page_of, redirect, render_page, say


@require_safe
def pool_curricula(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """The pool's curricula."""
    pool = managed_pool(request.user, pool_slug)
    context = {"pool": pool, "curricula": queries.curricula_of(pool), "n_gold": sum(gold_counts(pool).values())}
    return render(request, "labeling/curricula.html", context)


@require_http_methods(["GET", "POST"])
def curriculum_new(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Freeze the gold answers and make a curriculum over their questions."""
    pool = managed_pool(request.user, pool_slug)
    form = CurriculumForm(request.POST or None, kinds=curriculum_kinds())
    if request.method == "POST" and form.is_valid():
        try:
            snapshot = create_snapshot(pool=pool, by=request.user)
            curriculum = actions.create_curriculum(pool=pool, snapshot=snapshot, by=request.user, **form.cleaned_data)
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            say(
                request,
                ngettext(
                    "%(curriculum)s is ready: %(n)s question.",
                    "%(curriculum)s is ready: %(n)s questions.",
                    snapshot.n_rows,
                )
                % {"curriculum": curriculum, "n": snapshot.n_rows},
            )
            return redirect(request, "curriculum", curriculum_id=curriculum.pk)
    context = {"pool": pool, "form": form, "kinds": curriculum_kinds(), "n_gold": sum(gold_counts(pool).values())}
    return render(request, "labeling/curriculum_new.html", context, status=422 if form.errors else 200)


@require_safe
def curriculum(request: HtmxHttpRequest, curriculum_id: int) -> HttpResponse:
    """How the training went so far, and where each question stands."""
    curriculum = managed_curriculum(request.user, curriculum_id)
    read = queries.story_of(curriculum)
    story = read.story
    if story is None or request.htmx:  # htmx asks while reports are being read, and at the end for the page anew
        if story is not None:
            return redirect(request, request.get_full_path())
        context = {"pool": curriculum.pool, "curriculum": curriculum, "kind": queries.kind_of(curriculum), "read": read}
        return render_page(request, "labeling/curriculum.html", "progress", context)
    standing = request.GET.get("standing", "")
    standing = standing if standing in set(Standing) else ""
    context = {
        "pool": curriculum.pool,
        "curriculum": curriculum,
        "kind": queries.kind_of(curriculum),
        "story": story,
        "latest": story.moments[-1] if story.moments else None,
        "standings": queries.standing_counts(story),
        "evidence": queries.evidence_histogram(story),
        "standing": standing,
        "standing_query": f"standing={standing}" if standing else "",
        "page": page_of(request, queries.question_lines(curriculum, story, standing)),
        "n_proposals": curriculum.proposals.count(),
        "n_events": curriculum.events.count(),
        "address": request.build_absolute_uri(reverse("api-curriculum", args=[curriculum.pk])),
    }
    return render(request, "labeling/curriculum.html", context)
