import io

import pytest

from selector.rows import RejectedRow, read_questions


@pytest.fixture
def read():
    """Read bytes as a file of questions; return (questions, rejected rows)."""

    def read(content: bytes | str, name: str = "pool.jsonl", **options):
        raw = content.encode("utf-8") if isinstance(content, str) else content
        rows = list(read_questions(io.BytesIO(raw), name=name, **options))
        return (
            [row for row in rows if not isinstance(row, RejectedRow)],
            [row for row in rows if isinstance(row, RejectedRow)],
        )

    return read
