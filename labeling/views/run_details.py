"""What a finished run found, closer: one question's votes, all scores as a file, and two runs side by side."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from labeling.queries import run_pairs
from labeling.queries.run_pictures import score_rows
from labeling.queries.run_questions import question_in_run
from labeling.views.access import managed_pool, managed_run
from labeling.views.respond import HtmxHttpRequest

STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@require_safe
def run_question(request: HtmxHttpRequest, run_id: int, question_id: int) -> HttpResponse:
    """How the model answered one question, along its chain of thought and sampled anew."""
    run = managed_run(request.user, run_id)
    found = question_in_run(run, question_id)
    if found is None:
        raise Http404
    return render(request, "labeling/run_question.html", {"pool": run.pool, "run": run, "found": found})


@require_safe
def run_scores(request: HtmxHttpRequest, run_id: int) -> StreamingHttpResponse:
    """Every question's scores as CSV. Texts that a spreadsheet would compute are quoted with an apostrophe."""
    run = managed_run(request.user, run_id)
    return StreamingHttpResponse(
        _csv_lines(score_rows(run)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="run-{run.pk}-scores.csv"'},
    )


class _Echo:
    """Something to write to that hands back what is written."""

    def write(self, line: str) -> str:
        return line


def _csv_lines(rows: Iterable[list[Any]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    for row in rows:
        yield writer.writerow([_guarded(cell) for cell in row])


def _guarded(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(STARTS_A_FORMULA) else cell


@require_safe
def run_pair(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Two runs side by side, named by ``?run=1&run=2``; without two of them, the choice."""
    pool = managed_pool(request.user, pool_slug)
    runs = run_pairs.finished_runs(pool)
    by_id = {str(run.pk): run for run in runs}
    asked = list(dict.fromkeys(request.GET.getlist("run")))
    chosen = [by_id[each] for each in asked if each in by_id][:2]
    context: dict[str, Any] = {"pool": pool, "runs": runs, "chosen": [*chosen, None, None][:2]}
    if len(chosen) == 2:
        context |= {
            "pair": run_pairs.pair_of(*chosen),
            "settings": run_pairs.settings_of(*chosen),
            "only_first": _("Only run %(run)s") % {"run": chosen[0].pk},
            "only_second": _("Only run %(run)s") % {"run": chosen[1].pk},
        }
    elif asked:
        context["unusable"] = _("Choose two different finished runs of this pool.")
    return render(request, "labeling/run_pair.html", context, status=200 if chosen or not asked else 404)
