import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = (
        "Train the demo's model with TRL's GRPOTrainer on the demo's exported questions, and print its accuracy on "
        "held-out questions before and after. Fails when it gained less than .02."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--data", type=Path, default=settings.VAR_DIR / "export" / "trl", help="An export for TRL (%(default)s)."
        )
        parser.add_argument("--steps", type=int, default=40, help="Training steps (%(default)s).")
        parser.add_argument("--seed", type=int, default=0)

    def handle(self, *, data: Path, steps: int, seed: int, **options: Any) -> None:
        if not (data / "manifest.json").is_file():
            raise CommandError(f"There is no export in {data}. Run `make demo ARGS=--check` first: it makes one.")
        command = [sys.executable, "-m", "selector.tiny.grpo", "--data", str(data)]
        done = subprocess.run([*command, "--steps", str(steps), "--seed", str(seed)], cwd=settings.BASE_DIR)
        if done.returncode:
            raise CommandError("The training did not succeed; see above.", returncode=done.returncode)
