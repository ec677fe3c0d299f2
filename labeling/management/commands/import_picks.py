from argparse import ArgumentParser
from io import BytesIO
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from labeling.actions.evidence_imports import import_picks
from labeling.actions.imports import pool_named
from labeling.imports import commands
from labeling.imports.files import chunks_of
from labeling.imports.report import ImportReport


class Command(BaseCommand):
    help = (
        "Take in picks that were made on another machine by `assay rank`, as a finished run of the pool. "
        "The file is taken whole or not at all; the same file again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="A picks file (JSONL).")
        parser.add_argument("--pool", required=True, metavar="NAME", help="The pool that was picked from.")
        parser.add_argument("--report", type=Path, help="The report.json that was written with the picks.")
        commands.add_output_arguments(parser)

    def handle(self, **options: Any) -> None:
        commands.run(self, lambda: self._import(**options), options, noun="picks")

    def _import(self, *, file: Path, pool: str, report: Path | None, **_: Any) -> ImportReport:
        return import_picks(
            file=file,
            filename=file.name,
            pool=pool_named(pool),
            report_file=BytesIO(b"".join(chunks_of(report))) if report else None,
            by=None,
        )
