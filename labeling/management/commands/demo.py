import sys
import threading
import time
from argparse import ArgumentParser
from typing import Any

import psutil
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from labeling.demo.checking import check_demo
from labeling.demo.serving import served
from labeling.demo.steps import prepare_demo
from labeling.demo.visitors import login_path
from labeling.errors import LabelingError
from labeling.models import User

WHO_DOES_WHAT = {
    "manager": "sees the run, its picks and the round; exports",
    "annotator": "answers each question",
    "annotator-2": "gives the second answer to each question",
    "adjudicator": "decides where the two disagree",
}


class Command(BaseCommand):
    help = "Select 8 of 304 questions with the project's own small model, open a round, and serve the application."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="Where to serve (%(default)s).")
        parser.add_argument(
            "--check", action="store_true", help="Do not serve; let scripted people answer, export, and check it all."
        )

    def handle(self, **options: Any) -> None:
        started = time.monotonic()

        def say(text: str) -> None:
            self.stdout.write(self.style.MIGRATE_HEADING(f"[{time.monotonic() - started:4.0f} s] {text}"))
            self.stdout.flush()

        with PeakMemory() as memory:
            try:
                call_command("migrate", verbosity=0)
                if options["check"]:
                    check_demo(say)
                else:
                    prepare_demo(say)
                    self._serve(options["port"])
            except LabelingError as error:
                raise CommandError(error.message) from error
        if options["check"]:
            wall = time.monotonic() - started
            self.stdout.write(
                self.style.SUCCESS(f"All checks passed: {wall:.0f} s, {memory.peak_bytes / 2**30:.2f} GiB at the most.")
            )

    def _serve(self, port: int) -> None:
        with served(port, with_worker=True) as address:
            self.stdout.write(f"\nAssay is at {address} . These links log in once each, one for each person:\n")
            for user in User.objects.filter(username__in=WHO_DOES_WHAT).order_by("pk"):
                self.stdout.write(f"  {user.username:<12} {address}{login_path(user)}")
                self.stdout.write(f"  {'':<12} {WHO_DOES_WHAT[user.username]}")
            self.stdout.write(
                "\nUse a private window for each further person. Another link, while this runs:\n"
                f"  ASSAY_VAR={settings.VAR_DIR} {sys.executable} manage.py login_link NAME --base-url {address}\n"
                "Ctrl+C stops; nothing is lost."
            )
            self.stdout.flush()
            try:
                threading.Event().wait()
            except KeyboardInterrupt:
                self.stdout.write("\nStopped.")


class PeakMemory:
    """The most memory that this process and its children held together, looked at five times a second."""

    def __enter__(self) -> "PeakMemory":
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        process = psutil.Process()
        while not self._stop.wait(0.2):
            held = 0
            for each in [process, *process.children(recursive=True)]:
                try:
                    held += each.memory_full_info().uss
                except psutil.Error:  # it ended between the two calls
                    continue
            self.peak_bytes = max(self.peak_bytes, held)
