from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from labeling.actions.imports import import_calibration_file
from labeling.imports import commands


class Command(BaseCommand):
    help = (
        "Import questions with their answers into a calibration set, which is created where there is none. "
        "The same file again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands.add_arguments(parser, fields="question, answer, uid, choices or kind")
        parser.add_argument("--set", required=True, metavar="NAME", dest="calibration_set", help="The set's name.")
        parser.add_argument("--pool", default="", metavar="NAME", help="The pool a new set is for; else for all pools.")

    def handle(self, **options: Any) -> None:
        mapping = commands.mapping_of(options["mapping"])
        commands.run(
            self,
            lambda: import_calibration_file(
                options["file"],
                set_name=options["calibration_set"],
                pool_name=options["pool"],
                mapping=mapping,
                repair=options["repair"],
                dry_run=options["dry_run"],
            ),
            options,
            noun="calibration questions",
        )
