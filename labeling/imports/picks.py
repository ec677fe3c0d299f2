"""A picks file, made where the model is, into a finished run. It is taken whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from labeling.engine.rows import FileSource, RejectedRow, Row, open_rows
from labeling.engine.selection import config_as_json
from labeling.errors import LabelingError
from labeling.imports.report import ImportReport
from labeling.models import Pick, Pool, Question, SelectionRun, User

MAX_PICKS = 100_000
_MAX_TIE_BREAK = 40


def record_picks(
    source: FileSource, *, name: str, pool: Pool, report_json: Mapping[str, Any] | None, by: User | None
) -> ImportReport:
    """Record the picks of a file as a finished run of the pool. The caller holds the transaction.

    Nothing is written where any row is rejected: part of a selection is none. The same picks again are unchanged.
    ``report_json`` is the report that came with the picks, for the run's page.
    """
    report = ImportReport()
    rows = _read(source, name, report)
    questions = {
        question.uid: question
        for uids in _chunks(sorted({str(row.data["id"]) for row in rows}))
        for question in Question.objects.filter(pool=pool, uid__in=uids)
    }
    picks = [pick for row in rows if (pick := _pick(row, questions, report)) is not None]
    if report.rejected.total:
        return report
    ranks = [pick.rank for pick in picks]
    identity = (
        "picks:" + hashlib.sha256(json.dumps([row.data for row in rows], sort_keys=True).encode()).hexdigest()[:32]
    )
    if earlier := SelectionRun.objects.filter(pool=pool, generation_fingerprint=identity).first():
        report.unchanged = len(picks)
        report.details["run"] = earlier.pk
        return report
    run = SelectionRun.objects.create(
        pool=pool,
        generation_fingerprint=identity,
        config=_config(len(ranks), report_json),
        status=SelectionRun.Status.FINISHED,
        q_hat=(report_json or {}).get("q_hat"),
        q_hat_infinite=bool((report_json or {}).get("q_hat_infinite", False)),
        report=dict(report_json) if report_json else None,
        created_by=by,
        finished_at=timezone.now(),
    )
    for pick in picks:
        pick.run = run
    Pick.objects.bulk_create(picks, batch_size=500)
    report.new = len(picks)
    report.details["run"] = run.pk
    return report


def read_report(content: bytes) -> dict[str, Any]:
    """Read the report.json of a selection. Raises LabelingError where it is none."""
    try:
        report = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise LabelingError(
            _("The report is not JSON: %(error)s.") % {"error": error}, code="invalid_report"
        ) from error
    wanted = {"q_hat", "q_hat_infinite", "settings", "calibration", "set_size_histogram"}
    if not isinstance(report, dict) or not wanted <= report.keys():
        found = ", ".join(sorted(report)[:10]) if isinstance(report, dict) else type(report).__name__
        raise LabelingError(
            _("This is no report of a selection: found %(found)s; wanted %(wanted)s among others.")
            % {"found": found, "wanted": ", ".join(sorted(wanted))},
            code="invalid_report",
        )
    return report


def _read(source: FileSource, name: str, report: ImportReport) -> list[Row]:
    rows: list[Row] = []
    line_of: dict[tuple[str, object], int] = {}
    for row in open_rows(source, name=name):
        if isinstance(row, Row):
            row = _checked(row, len(rows))
        if isinstance(row, RejectedRow):
            report.reject(row)
            continue
        for field in ("id", "rank"):
            key = (field, row.data[field])
            if key in line_of:
                message = _("%(field)s %(data)s was already on line %(line_of)s.") % {
                    "field": field,
                    "data": row.data[field],
                    "line_of": line_of[key],
                }
                report.reject(RejectedRow(row.line, f"duplicate_{field}", message))
            line_of.setdefault(key, row.line)
        rows.append(row)
    return rows


def _checked(row: Row, n_before: int) -> Row | RejectedRow:
    if n_before >= MAX_PICKS:
        return RejectedRow(
            row.line, "too_many_picks", _("At most %(max_picks)s picks are read.") % {"max_picks": f"{MAX_PICKS:,}"}
        )
    data = row.data
    wrong = [
        _("%(field)s is %(found)s; %(wanted)s is wanted")
        % {"field": field, "found": json.dumps(data.get(field), default=str)[:60], "wanted": wanted}
        for field, wanted, fits in (
            ("id", _("a text"), isinstance(data.get("id"), str) and data["id"] != ""),
            ("rank", _("a whole number from 1"), _is_whole(data.get("rank"), 1)),
            ("set_size", _("a whole number"), _is_whole(data.get("set_size"), 0)),
            (
                "tied_with",
                _("a whole number or null"),
                data.get("tied_with") is None or _is_whole(data["tied_with"], 0),
            ),
            ("cluster", _("a whole number or null"), data.get("cluster") is None or _is_whole(data["cluster"], -1)),
            ("acquisition_score", _("a number"), _is_number(data.get("acquisition_score"))),
            (
                "prediction_set",
                _("a list of answers with their frequency"),
                _is_prediction_set(data.get("prediction_set", [])),
            ),
        )
        if not fits
    ]
    return RejectedRow(row.line, "invalid_pick", "; ".join(wrong) + ".") if wrong else row


def _pick(row: Row, questions: Mapping[str, Question], report: ImportReport) -> Pick | None:
    data: Mapping[str, Any] = row.data
    question = questions.get(data["id"])
    if question is None:
        message = _("The pool has no question “%(id)s”. Import the questions first.") % {"id": data["id"]}
        report.reject(RejectedRow(row.line, "unknown_question", message, data["id"]))
        return None
    taken_by, chance = data.get("taken_by"), data.get("inclusion_probability")
    return Pick(
        question=question,
        rank=data["rank"],
        cluster=data.get("cluster"),
        set_size=data["set_size"],
        acquisition_score=data["acquisition_score"],
        prediction_set=data.get("prediction_set", []),
        tied_with=data.get("tied_with"),
        tie_break=str(data.get("tie_break_reason") or "")[:_MAX_TIE_BREAK],
        taken_by=taken_by if taken_by in ("global_order", "joint", "control") else "cluster",
        inclusion_probability=chance
        if isinstance(chance, float) and taken_by == "control" and 0 < chance <= 1
        else None,
    )


def _config(budget: int, report_json: Mapping[str, Any] | None) -> dict[str, object]:
    """The settings that the report names, or those of the default preset; checked either way."""
    settings = dict((report_json or {}).get("settings") or {})
    return config_as_json(preset=settings.pop("preset_name", None), **{"budget": budget, **settings})


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_prediction_set(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict) and isinstance(each.get("answer"), str) and _is_number(each.get("frequency"))
        for each in value
    )


def _chunks(uids: list[str]) -> list[list[str]]:
    return [uids[start : start + 500] for start in range(0, len(uids), 500)]
