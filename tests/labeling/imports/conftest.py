import json
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command


@pytest.fixture(autouse=True)
def media_root(tmp_path, settings) -> Path:
    settings.MEDIA_ROOT = tmp_path / "media"
    return settings.MEDIA_ROOT


@pytest.fixture
def write(tmp_path):
    """Write rows (dicts as JSON, else as they are) to a file and return its path."""

    def write(*rows: dict | str, name: str = "pool.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write


@pytest.fixture
def upload():
    """Rows as an uploaded file."""

    def upload(*rows: dict | str, name: str = "pool.jsonl") -> SimpleUploadedFile:
        lines = [(row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows]
        return SimpleUploadedFile(name, "".join(lines).encode())

    return upload


class Outcome(NamedTuple):
    """What a command printed, and its exit status."""

    out: str
    status: int
    stderr: str = ""

    @property
    def json(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def command(capsys, db):
    """Run a management command as from the shell."""

    def command(name: str, *arguments: object) -> Outcome:
        try:
            call_command(name, *map(str, arguments))
            status = 0
        except SystemExit as exit:
            status = int(exit.code or 0)
        printed = capsys.readouterr()
        return Outcome(printed.out, status, printed.err)

    return command
