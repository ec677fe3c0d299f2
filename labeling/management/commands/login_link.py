from typing import Any

import sesame.utils
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from labeling.models import User


def login_link(user: User, base_url: str) -> str:
    """Return a link that logs the person in once."""
    return base_url.rstrip("/") + reverse("login") + sesame.utils.get_query_string(user)


class Command(BaseCommand):
    help = "Print a link that logs a person in once, within a day."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--base-url", default="http://127.0.0.1:8000", help="Where the application is served.")

    def handle(self, *, username: str, base_url: str, **options: Any) -> None:
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active account {username}. create_manager makes one.")
        self.stdout.write(login_link(user, base_url))
