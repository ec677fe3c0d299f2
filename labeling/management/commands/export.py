from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.actions.exports import create_export, create_snapshot, filter_words
from labeling.actions.imports import pool_named
from labeling.errors import LabelingError
from labeling.forms import ExportForm
from labeling.models import Export


class Command(BaseCommand):
    help = (
        "Write a pool's gold answers for a trainer, with the reward function and a manifest beside them. "
        "The same answers give the same bytes; what would not train is refused, with the reason."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--pool", required=True, metavar="NAME")
        parser.add_argument("--format", required=True, choices=Export.Format.values)
        parser.add_argument("--out", required=True, type=Path, metavar="DIR")
        parser.add_argument(
            "--instruction", help="Asked after each question; what the run's model was asked with by default."
        )

        parser.add_argument(
            "--keep",
            choices=[keep for keep, _ in ExportForm.KEEPS],
            default="all",
            help="Leave out questions by their stored rollouts: useful keeps those that the model gets right now and "
            "then, not_always_right leaves out only what it has mastered. Default: all.",
        )

    def handle(self, **options: Any) -> None:
        try:
            snapshot = create_snapshot(pool=pool_named(options["pool"]), by=None)
            export = create_export(
                snapshot=snapshot,
                format=options["format"],
                by=None,
                out_dir=options["out"],
                instruction=options["instruction"],
                keep=options["keep"],
            )
        except LabelingError as error:
            raise CommandError(error.message) from error
        for file in export.files:
            self.stdout.write(f"{file['sha256']}  {options['out'] / file['name']}  ({file['bytes']} bytes)")
        n = f"{export.n_rows:,} question{'' if export.n_rows == 1 else 's'}"
        self.stdout.write(self.style.SUCCESS(f"{n} with gold answers written."))
        if words := filter_words(export.filter):
            self.stdout.write(f"{words[:1].upper()}{words[1:]}.")
