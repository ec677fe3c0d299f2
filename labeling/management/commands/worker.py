from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from labeling.engine.display import StopOnSignal
from labeling.runs.worker import work


class Command(BaseCommand):
    help = (
        "Execute selection runs and comparisons: those that are queued, and those whose worker died. Start as many as "
        "you have machines for; Ctrl-C or SIGTERM saves the answers in flight, and another worker goes on from there."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="End when nothing waits.")
        parser.add_argument("--poll-seconds", type=float, default=1.0, help="How often to look for work (1).")

    def handle(self, **options: Any) -> None:
        with StopOnSignal(self.stderr.write) as should_stop:
            self.stderr.write("The worker waits for selection runs and comparisons. Stop it with Ctrl-C.")
            work(should_stop=should_stop, poll_seconds=options["poll_seconds"], once=options["once"])
        self.stderr.write("The worker has stopped.")
