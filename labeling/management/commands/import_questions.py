from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.actions.imports import import_pool_file
from labeling.actions.people import add_member
from labeling.imports import commands
from labeling.models import Pool, Role, User


class Command(BaseCommand):
    help = "Import questions into a pool, which is created where there is none. The same file again changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands.add_arguments(parser, fields="question, answer, uid, choices or kind")
        parser.add_argument("--pool", required=True, metavar="NAME", help="The pool's name.")
        parser.add_argument(
            "--manager", metavar="USERNAME", help="Who shall manage the pool; nobody else sees a pool made at a shell."
        )

    def handle(self, **options: Any) -> None:
        manager = self._manager(options["manager"])
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
        if options["dry_run"]:
            return
        pool = Pool.objects.get(name__iexact=" ".join(options["pool"].split()))
        if manager is not None:
            add_member(pool=pool, user=manager, role=Role.MANAGER, by=None)
        elif not pool.memberships.filter(role=Role.MANAGER).exists():
            self.stderr.write(
                f"Nobody manages “{pool}” yet, so that nobody sees it in the browser: run this again with "
                "--manager USERNAME (manage.py create_manager makes one)."
            )

    def _manager(self, username: str | None) -> User | None:
        if username is None:
            return None
        try:
            return User.objects.get(username=username)
        except User.DoesNotExist as error:
            raise CommandError(f"There is no user {username!r}; manage.py create_manager makes one.") from error
