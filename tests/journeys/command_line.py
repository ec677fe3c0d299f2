"""An installation of its own for a journey: a database file, commands run as a person runs them, workers to kill."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

MIGRATED: list[bytes] = []  # an empty database with all its tables, once it is there


class CommandLine:
    """Runs ``manage.py`` on an installation below ``var``, with further environment variables."""

    def __init__(self, var: Path, **environment: str) -> None:
        self.var, self._more = var, environment
        var.mkdir(exist_ok=True)
        unwanted = {"DATABASE_URL", "DJANGO_SETTINGS_MODULE"}
        inherited = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.environment = {**inherited, "ASSAY_VAR": str(var), "ASSAY_DEBUG": "1", **environment}
        self.workers: list[subprocess.Popen[str]] = []

    def copied_to(self, var: Path) -> CommandLine:
        """Return a copy of the installation as it is now."""
        shutil.copytree(self.var, var)
        return CommandLine(var, **self._more)

    def run(self, *arguments: str, timeout_seconds: float = 120) -> str:
        """Return what the command prints; its standard error is in the failure when it fails."""
        finished = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=timeout_seconds,
        )  # fmt: skip
        assert finished.returncode == 0, f"{arguments}: {finished.stderr}"
        return finished.stdout

    def migrate(self) -> None:
        """Make the database; migrating takes so long that each process does it once and copies the result."""
        database = self.var / "assay.sqlite3"
        if not MIGRATED:
            self.run("migrate", "--verbosity", "0")
            MIGRATED.append(database.read_bytes())
        database.write_bytes(MIGRATED[0])

    def start_worker(self, *arguments: str) -> subprocess.Popen[str]:
        worker = subprocess.Popen(
            [sys.executable, "manage.py", "worker", "--poll-seconds", "0.1", *arguments],
            cwd=ROOT, env=self.environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def import_questions(self, questions: Sequence[dict[str, Any]], *, pool: str) -> None:
        self.run("import_questions", str(self._file(f"{pool}.jsonl", questions)), "--pool", pool)

    def import_calibration(self, items: Sequence[dict[str, Any]], *, name: str) -> None:
        self.run("import_calibration", str(self._file(f"{name}.jsonl", items)), "--set", name)

    def _file(self, name: str, rows: Sequence[dict[str, Any]]) -> Path:
        path = self.var / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Look into the database from outside."""
        with closing(sqlite3.connect(f"file:{self.var / 'assay.sqlite3'}?mode=ro", uri=True, timeout=20)) as database:
            return database.execute(query, values).fetchall()

    def picks(self, run: int) -> list[tuple[Any, ...]]:
        return self.rows(
            "SELECT rank, uid, cluster, set_size, acquisition_score, prediction_set, tied_with, tie_break "
            "FROM labeling_pick JOIN labeling_question ON question_id = labeling_question.id WHERE run_id = ? "
            "ORDER BY rank",
            run,
        )

    def status(self, run: int) -> tuple[str, str, str]:
        """(status, stage, error) of a run."""
        return self.rows("SELECT status, stage, error FROM labeling_selectionrun WHERE id = ?", run)[0]

    def stages(self, run: int) -> dict[str, dict[str, Any]]:
        ((stages,),) = self.rows("SELECT stages FROM labeling_selectionrun WHERE id = ?", run)
        return {stage["name"]: stage for stage in json.loads(stages)}

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.communicate()


def wait_until(is_so: Callable[[], bool], *, what: str, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not is_so():
        assert time.monotonic() < deadline, f"after {timeout_seconds} s still not so: {what}"
        time.sleep(0.05)
