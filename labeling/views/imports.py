"""Files coming in: upload, look at what is in them, then commit or discard."""

from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from labeling import policies
from labeling.actions import imports as actions
from labeling.actions.evidence_imports import import_picks, import_votes
from labeling.errors import LabelingError
from labeling.forms import CalibrationFileForm, FileForm, MappingForm, VotesForm
from labeling.models import ImportBatch
from labeling.queries.pool_questions import imports_of
from labeling.queries.runs import recorded_settings_of
from labeling.views.access import managed_import, managed_pool
from labeling.views.respond import ROWS_PER_PAGE, HtmxHttpRequest, redirect, say


@require_http_methods(["GET", "POST"])
def pool_import(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Upload a file of questions; nothing changes before its preview is committed."""
    pool = managed_pool(request.user, pool_slug)
    form = FileForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        try:
            batch = actions.preview_import(file=file, filename=file.name, pool=pool, by=request.user)
        except LabelingError as error:
            form.add_error("file", error.message)
        else:
            return redirect(request, "import-preview", import_id=batch.pk)
    context = {"pool": pool, "form": form, "imports": imports_of(pool)[:10]}
    return render(request, "labeling/import.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
def calibration_import(request: HtmxHttpRequest) -> HttpResponse:
    """Upload questions with their answers, for a new calibration set or one that is there."""
    policies.check_can_manage_shared(request.user)
    form = CalibrationFileForm(request.POST or None, request.FILES or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            into = actions.calibration_set_to_fill(name=data["name"], pool=data["pool"], by=request.user)
            batch = actions.preview_import(
                file=data["file"], filename=data["file"].name, calibration_set=into, by=request.user
            )
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            return redirect(request, "import-preview", import_id=batch.pk)
    return render(request, "labeling/calibration_import.html", {"form": form}, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
def preview(request: HtmxHttpRequest, import_id: UUID) -> HttpResponse:
    """What a file would bring, row by row where something is wrong; POST reads it again with other columns."""
    batch = managed_import(request.user, import_id)
    form = _mapping_form(batch, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        mapping = dict(form.cleaned_data)
        repair = mapping.pop("repair")
        try:
            batch = actions.map_import(batch=batch, mapping=mapping, repair=repair, by=request.user)
        except LabelingError as error:
            if error.status != 400:
                raise
            form.add_error(None, error.message)
        else:
            return redirect(request, "import-preview", import_id=batch.pk)
    counts = batch.counts
    context = {
        "batch": batch,
        "pool": batch.pool,
        "form": form,
        "is_open": batch.status == ImportBatch.Status.PREVIEWED,
        "n_accepted": counts["new"] + counts["changed"] + counts["unchanged"],
        "rejected": Paginator(batch.rejected, ROWS_PER_PAGE).get_page(request.GET.get("page")),
        "warnings": batch.warnings[:ROWS_PER_PAGE],
        "n_more_warnings": max(0, counts["warnings"] + counts["duplicates"] - ROWS_PER_PAGE),
        "ate_backslashes": any("backslash" in row["message"] for row in batch.rejected[:200]),
    }
    return render(request, "labeling/import_preview.html", context, status=422 if form.errors else 200)


@require_POST
def commit(request: HtmxHttpRequest, import_id: UUID) -> HttpResponse:
    """Bring the file in."""
    batch = actions.commit_import(batch=managed_import(request.user, import_id), by=request.user)
    counts = batch.counts
    say(
        request,
        _("%(new)s new, %(changed)s changed, %(unchanged)s unchanged.")
        % {"new": f"{counts['new']:,}", "changed": f"{counts['changed']:,}", "unchanged": f"{counts['unchanged']:,}"},
    )
    return _to_owner(request, batch)


@require_POST
def discard(request: HtmxHttpRequest, import_id: UUID) -> HttpResponse:
    """Drop the file; nothing had changed."""
    batch = actions.discard_import(batch=managed_import(request.user, import_id), by=request.user)
    say(request, _("%(filename)s was discarded; nothing has changed.") % {"filename": batch.filename})
    return _to_owner(request, batch)


def _to_owner(request: HtmxHttpRequest, batch: ImportBatch) -> HttpResponse:
    if batch.pool is None:
        return redirect(request, "calibration-sets")
    return redirect(request, "pool", pool_slug=batch.pool.slug)


def _mapping_form(batch: ImportBatch, data: Any) -> MappingForm:
    columns = batch.mapping["columns"]
    return MappingForm(
        data,
        columns=batch.mapping["names"],
        need_answer=batch.target_set is not None,
        initial={**columns, "repair": batch.mapping["repair"]},
    )


@require_http_methods(["GET", "POST"])
def votes_import(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Take in answers, or finished picks, that were made on another machine."""
    pool = managed_pool(request.user, pool_slug)
    form = VotesForm(request.POST or None, request.FILES or None, pool=pool)
    report = None
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        file = data["file"]
        try:
            if data["holds"] == "picks":
                report = import_picks(
                    file=file, filename=file.name, pool=pool, report_file=data["report"], by=request.user
                )
            else:
                report = import_votes(
                    file=file,
                    filename=file.name,
                    pool=None if data["calibration_set"] else pool,
                    calibration_set=data["calibration_set"],
                    fingerprint=data["fingerprint"],
                    by=request.user,
                )
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            if data["holds"] == "picks" and "run" in report.details and not report.rejected.total:
                say(request, _("The picks are recorded as a finished run."))
                return redirect(request, "run", run_id=report.details["run"])
    context = {"pool": pool, "form": form, "report": report, "recorded": recorded_settings_of(pool)}
    status = 422 if form.errors or (report is not None and not report.accepted) else 200
    return render(request, "labeling/votes_import.html", context, status=status)
