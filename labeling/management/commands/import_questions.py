from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from labeling.actions.imports import import_pool_file
from labeling.imports import commands


class Command(BaseCommand):
    help = "Import questions into a pool, which is created where there is none. The same file again changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands.add_arguments(parser, fields="question, answer, uid, choices or kind")
        parser.add_argument("--pool", required=True, metavar="NAME", help="The pool's name.")

    def handle(self, **options: Any) -> None:
        mapping = commands.mapping_of(options["mapping"])
        commands.run(
            self,
            lambda: import_pool_file(
                options["file"],
                pool_name=options["pool"],
                mapping=mapping,
                repair=options["repair"],
                dry_run=options["dry_run"],
            ),
            options,
            noun="questions",
        )
