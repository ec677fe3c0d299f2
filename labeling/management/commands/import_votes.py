from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from labeling.actions.evidence_imports import import_votes
from labeling.actions.imports import calibration_set_named, pool_named
from labeling.imports import commands
from labeling.imports.report import ImportReport


class Command(BaseCommand):
    help = (
        "Record votes that were made on another machine by `assay probe`, for the questions of a pool or, with --set, "
        "of a calibration set. The same file again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="A votes file (JSONL).")
        owner = parser.add_mutually_exclusive_group(required=True)
        owner.add_argument("--pool", metavar="NAME", help="The pool whose questions were asked.")
        owner.add_argument("--set", metavar="NAME", dest="calibration_set", help="The calibration set that was asked.")
        parser.add_argument(
            "--fingerprint", default="", help="Names the generation settings where the rows of the file do not."
        )
        commands.add_output_arguments(parser)

    def handle(self, **options: Any) -> None:
        commands.run(self, lambda: self._import(**options), options, noun="votes of questions")

    def _import(self, *, file: Path, pool: str | None, calibration_set: str | None, **options: Any) -> ImportReport:
        return import_votes(
            file=file,
            filename=file.name,
            pool=pool_named(pool) if pool else None,
            calibration_set=calibration_set_named(calibration_set) if calibration_set else None,
            fingerprint=options["fingerprint"],
            by=None,
        )
