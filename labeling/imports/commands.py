"""What the import commands share: their arguments, and the report for people and for machines."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.errors import LabelingError
from labeling.imports.report import ImportReport

SHOWN_ROWS = 20
SHOWN_WARNINGS = 5


def add_arguments(parser: ArgumentParser, *, fields: str) -> None:
    """The arguments of every import of questions; ``fields`` says which fields --map knows."""
    parser.add_argument("file", type=Path, help="JSONL, a JSON list, CSV or Parquet.")
    parser.add_argument(
        "--map", action="append", default=[], metavar="FIELD=COLUMN", dest="mapping",
        help=f"Which column holds {fields}, where the name does not say it. May be repeated.",
    )  # fmt: skip
    parser.add_argument(
        "--repair", action="store_true",
        help="Accept LaTeX written with one backslash where JSON needs two (\\frac, \\sqrt), and put it right.",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="Say what would be done and change nothing.")
    add_output_arguments(parser)


def add_output_arguments(parser: ArgumentParser) -> None:
    """How the report is given."""
    parser.add_argument("--json", action="store_true", help="Print the report as one JSON object.")


def mapping_of(pairs: list[str]) -> dict[str, str]:
    """Read --map question=COLUMN. Raises CommandError for anything else."""
    mapping = {}
    for pair in pairs:
        field, equals, column = pair.partition("=")
        if not equals or not field.strip():
            raise CommandError(f"--map {pair}: write it as FIELD=COLUMN, for instance --map question=prompt.")
        mapping[field.strip()] = column
    return mapping


def run(command: BaseCommand, importing: Callable[[], ImportReport], options: dict[str, Any], *, noun: str) -> None:
    """Import, print the report, and exit with 1 where no row was accepted or unchanged."""
    try:
        report = importing()
    except LabelingError as error:
        if options["json"]:
            command.stdout.write(json.dumps(_nothing(error), ensure_ascii=False))
            raise SystemExit(1) from error
        raise CommandError(error.message) from error
    if options["json"]:
        command.stdout.write(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        command.stdout.write(in_words(report, noun=noun, is_dry_run=options.get("dry_run", False)))
    if not report.accepted:
        raise SystemExit(1)


def in_words(report: ImportReport, *, noun: str, is_dry_run: bool) -> str:
    """Return the report as people read it: counts, then the rows that somebody should look at."""
    verb = "Would import" if is_dry_run else "Imported"
    lines = [
        f"{verb} {report.new:,} new {noun}; {report.changed:,} changed, {report.unchanged:,} unchanged, "
        f"{report.duplicates.total:,} duplicates, {report.rejected.total:,} rejected."
    ]
    if report.columns:
        lines.append(
            "Columns: " + ", ".join(f"{field} from “{column}”" for field, column in report.columns.items()) + "."
        )
    for name, value in report.details.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        lines.append(f"{name.replace('_', ' ').capitalize()}: {shown}.")
    for title, notices, shown in (
        ("Rejected", report.rejected, SHOWN_ROWS),
        ("Duplicates", report.duplicates, SHOWN_ROWS),
        ("Warnings", report.warnings, SHOWN_WARNINGS),
    ):
        if notices.total:
            lines.append(f"{title}:")
            lines += [f"  line {row['line']}: {row['message']} [{row['code']}]" for row in notices.listed[:shown]]
        if notices.total > shown:
            lines.append(f"  … and {notices.total - shown:,} more; --json lists them.")
    if not report.accepted:
        lines.append("Nothing was imported.")
    return "\n".join(lines)


def _nothing(error: LabelingError) -> dict[str, object]:
    """The report of a file that could not even be read row by row."""
    nothing: dict[str, object] = {"new": 0, "unchanged": 0, "changed": 0, "duplicates": 0}
    return nothing | {"rejected": [], "error": {"code": error.code, "message": error.message}}
