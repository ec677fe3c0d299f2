"""What the parts of the command line have in common."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from selector.errors import InvalidConfig

if TYPE_CHECKING:
    from selector.progress import StageProgress, StopOnSignal

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Command = Callable[[argparse.Namespace, "StageProgress", "StopOnSignal"], int]


def add_command(commands: Subparsers, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """Add a command whose help ends with examples, as they are written."""
    parser = commands.add_parser(
        name, help=summary, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(parser=parser, check=None)
    return parser


def field_and_column(text: str) -> tuple[str, str]:
    """Read the value of ``--map``. Raises ArgumentTypeError."""
    field, equals, column = text.partition("=")
    if not (field and equals and column):
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=COLUMN")
    return field, column


def engine_option(text: str) -> tuple[str, object]:
    """Read the value of ``--engine-option``: JSON where it is, else text. Raises ArgumentTypeError."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def price(text: str) -> float:
    """Read a price: a number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no price; a number above 0 is")
    return value


def count(text: str) -> int:
    """Read a whole number from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few; the least is 1")
    return value


def with_progress(command: Command, options: argparse.Namespace) -> int:
    """Run a command that shows how far it is, and that a signal stops once what is finished is saved."""
    from selector.progress import StageProgress, StopOnSignal

    with StageProgress() as progress, StopOnSignal(progress.say) as stop:
        return command(options, progress, stop)


def check_writable(*paths: str | None) -> None:
    """Raise InvalidConfig for an output that could not be written, before anything is paid for."""
    for path in filter(None, paths):
        folder = Path(path).absolute().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidConfig("output", path, f"in a folder that can be made ({error.strerror})") from error
        if Path(path).is_dir() or not os.access(folder, os.W_OK):
            raise InvalidConfig("output", path, "a file in a folder that can be written to")


def check_plots(directory: str | None) -> None:
    """Raise InvalidConfig where pictures are asked for and could not be made, before anything is read."""
    if not directory:
        return
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        wanted = "left out, or matplotlib installed (pip install matplotlib)"
        raise InvalidConfig("--plots", directory, wanted) from error
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidConfig("--plots", directory, f"a folder that can be made ({error.strerror})") from error
