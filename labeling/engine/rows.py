"""Reading files of questions, of votes and of picks."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from django.conf import settings
from django.core.files import File

from labeling.engine.errors import translated_errors
from selector.rows import (
    FIELDS,
    Limits,
    QuestionFile,
    QuestionRow,
    RejectedRow,
    Row,
    near_key,
    question_uid,
    read_questions,
    read_rows,
)
from selector.votes import QuestionVotes

__all__ = [
    "FIELDS",
    "FileSource",
    "QuestionFile",
    "QuestionRow",
    "QuestionVotes",
    "RejectedRow",
    "Row",
    "near_key",
    "open_questions",
    "open_rows",
    "question_uid",
]


FileSource: TypeAlias = Path | BinaryIO | File  # an upload is a Django File


def _limits() -> Limits:
    return Limits(max_line_bytes=settings.ASSAY_MAX_LINE_BYTES)


def open_questions(path: Path, *, name: str, mapping: dict[str, str], need_answer: bool, repair: bool) -> QuestionFile:
    """Open a file of questions, to be read once. Raises EngineFailure for a file or a column that is not there."""
    with translated_errors():
        return read_questions(
            path, name=name, mapping=mapping, need_answer=need_answer, repair=repair, limits=_limits()
        )


def open_rows(source: FileSource, *, name: str) -> Iterator[Row | RejectedRow]:
    """Yield the rows and the rejected rows of a file. Raises EngineFailure for a file that is not there."""
    with translated_errors():
        stream = cast(BinaryIO, source.file) if isinstance(source, File) else source
        yield from read_rows(stream, name=name, limits=_limits())
