from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from labeling.runs.worker import Worker


class Command(BaseCommand):
    help = (
        "Execute selection runs: those that are queued, and those whose worker died. "
        "Start as many as there are machines; stop with Ctrl-C or SIGTERM, and nothing is lost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="End when no run waits.")
        parser.add_argument("--poll-seconds", type=float, default=1.0, help="How often to look for work (1).")

    def handle(self, **options: Any) -> None:
        worker = Worker(poll_seconds=options["poll_seconds"])
        worker.stop_on_signals()
        self.stderr.write("The worker waits for selection runs. Stop it with Ctrl-C.")
        worker.run(once=options["once"])
        self.stderr.write("The worker has stopped.")
