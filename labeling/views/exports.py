"""Exports: writing a pool's gold answers for a trainer, and handing out the files to managers."""

from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from labeling.actions.exports import create_export, create_snapshot, filter_words
from labeling.errors import LabelingError
from labeling.forms import ExportForm
from labeling.models import Export, Pool
from labeling.queries.exports import exports_of, file_of, gold_counts
from labeling.views.access import managed_export, managed_pool
from labeling.views.respond import HtmxHttpRequest, redirect, say


@require_safe
def pool_export(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """What can be exported, and what has been."""
    return _page(request, managed_pool(request.user, pool_slug))


@require_POST
def export_new(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Freeze the gold answers and write them; refused, with each question's reason, where they would not train."""
    pool = managed_pool(request.user, pool_slug)
    form = ExportForm(request.POST)
    if not form.is_valid():
        return _page(request, pool, status=422)
    try:
        snapshot = create_snapshot(pool=pool, by=request.user)
        keep = form.cleaned_data["keep"] or "all"
        export = create_export(snapshot=snapshot, format=form.cleaned_data["format"], by=request.user, keep=keep)
    except LabelingError as error:
        return _page(request, pool, status=422, refusal=error, problems=error.details.get("problems", {}))
    words = filter_words(export.filter)
    told = ngettext(
        "Written for %(format)s: %(n)s question with gold answers.",
        "Written for %(format)s: %(n)s questions with gold answers.",
        export.n_rows,
    ) % {"format": export.get_format_display(), "n": f"{export.n_rows:,}"}
    say(request, f"{told} {words[:1].upper()}{words[1:]}." if words else told)
    return redirect(request, "pool-export", pool_slug=pool.slug)


@require_safe
def export_file(request: HtmxHttpRequest, export_id: int, filename: str) -> FileResponse:
    """One file of an export, as it was written."""
    export = managed_export(request.user, export_id)
    path = file_of(export, filename)
    if path is None:
        raise Http404
    return FileResponse(
        path.open("rb"), as_attachment=True, filename=path.name, content_type="application/octet-stream"
    )


def _page(request: HtmxHttpRequest, pool: Pool, *, status: int = 200, **more: object) -> HttpResponse:
    context = {
        "pool": pool,
        "formats": Export.Format.choices,
        "keeps": ExportForm.KEEPS,
        "gold": gold_counts(pool),
        "exports": [(export, filter_words(export.filter)) for export in exports_of(pool)[:20]],
        **more,
    }
    return render(request, "labeling/export.html", context, status=status)
