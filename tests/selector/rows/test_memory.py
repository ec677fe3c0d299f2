"""Memory is bounded by the limits, not by the file."""

import subprocess
import sys

import pytest

from selector.rows.reading import UnreadableFile, read_rows

_MEASURE = """
import resource, sys
from selector.rows import read_questions, RejectedRow
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = list(read_questions(sys.argv[1]))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) // 1024, [(row.line, getattr(row, "code", "ok")) for row in rows])
"""


def measure(path) -> tuple[int, str]:
    output = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path)], check=True, capture_output=True, text=True
    ).stdout
    megabytes, _, rows = output.partition(" ")
    return int(megabytes), rows.strip()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("pool.jsonl", b'{"question": "a"}\n{"question": "', b'"}\n{"question": "c"}\n'),
        ("pool.json", b'[{"question": "a"},\n{"question": "', b'"},\n{"question": "c"}\n]'),
        ("pool.csv", b"question\na\n", b"\nc\n"),
    ],
)
def test_a_line_of_50_mb_is_skipped_in_little_memory(tmp_path, name, before, after):
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(before)
        for _ in range(50):
            file.write(b"x" * 1_000_000)
        file.write(after)

    megabytes, rows = measure(path)

    start = 1 + before.count(b"\n")
    assert rows == str([(start - 1, "ok"), (start, "line_too_long"), (start + 1, "ok")])
    assert megabytes < 20


def test_an_unclosed_quote_does_not_swallow_the_file(tmp_path):
    path = tmp_path / "pool.csv"
    with path.open("w") as file:
        file.write('question,answer\na,1\n"b,2\n')
        for n in range(200_000):
            file.write(f"question number {n},{n}\n")

    rows = [row.line for row in read_rows(path) if hasattr(row, "code")]

    assert rows == [3]


def test_a_file_that_is_not_there_is_one_error():
    with pytest.raises(UnreadableFile) as raised:
        list(read_rows("/nowhere/pool.jsonl"))

    assert "/nowhere/pool.jsonl cannot be opened: No such file" in str(raised.value)
