from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from labeling.actions.people import create_manager
from labeling.errors import LabelingError
from labeling.management.commands.login_link import login_link


class Command(BaseCommand):
    help = "Make an account that may create pools, without a password, and print a link that logs it in once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--base-url", default="http://127.0.0.1:8000", help="Where the application is served.")

    def handle(self, *, username: str, base_url: str, **options: Any) -> None:
        try:
            user = create_manager(username=username)
        except LabelingError as error:
            raise CommandError(error.message) from error
        self.stdout.write(login_link(user, base_url))
