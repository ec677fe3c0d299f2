"""An import that is killed has changed nothing; run again, it is whole."""

import os
import sqlite3
import subprocess
import sys

import pytest

from tests.conftest import ROOT

# Announces each chunk it has written and then dawdles, so that it can be killed between two of them.
_SLOW_IMPORT = """
import django, sys, time
django.setup()
from django.core.management import call_command
from labeling.imports.destination import Destination
create = Destination.create
def slowly(self, *arguments):
    create(self, *arguments)
    print("chunk", flush=True)
    time.sleep(1)
Destination.create = slowly
call_command("import_questions", sys.argv[1], "--pool", "P")
"""


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    return {
        **os.environ,
        "ASSAY_VAR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}",
        "DJANGO_SETTINGS_MODULE": "labeling.settings",
    }


def test_killed_in_the_middle_nothing_is_left_half_done(tmp_path, write, environment):
    path = write(*[{"question": f"What is {n}?"} for n in range(5_000)])

    def manage(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def counts() -> list[int]:
        with sqlite3.connect(tmp_path / "db.sqlite3") as database:
            tables = ("pool", "question", "importbatch", "auditevent")
            found = [database.execute(f"SELECT count(*) FROM labeling_{table}").fetchone()[0] for table in tables]
        database.close()
        return found

    manage("migrate", "-v0")
    with subprocess.Popen(
        [sys.executable, "-c", _SLOW_IMPORT, str(path)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == ["chunk\n"] * 3
        process.kill()

    assert counts() == [0, 0, 0, 0]
    assert "Imported 5,000 new questions" in manage("import_questions", str(path), "--pool", "P")
    assert counts()[:3] == [1, 5_000, 1]
