"""Whatever the bytes, reading ends, says which lines are bad, and raises nothing."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.rows import Limits, QuestionRow, read_questions

_GOOD = "".join(
    json.dumps({"id": n, "question": f"What is \\sqrt{n}?", "choices": ["a", "b"]}) + "\n" for n in range(6)
)
_CSV = 'question,answer\n"a, ""b""",1\n"c\nd",2\ne,3\n'


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.csv", "pool.parquet", "pool"])
@given(content=st.binary(max_size=300))
def test_arbitrary_bytes(name, content):
    for row in read_questions(io.BytesIO(content), name=name):
        assert row.line >= 1


@pytest.mark.parametrize(("name", "good"), [("pool.jsonl", _GOOD), ("pool.json", f"[{_GOOD}]"), ("pool.csv", _CSV)])
@given(data=st.data())
def test_a_file_damaged_at_one_place(name, good, data):
    content = good.encode()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 5)))
    damaged = content[:start] + data.draw(st.binary(max_size=5)) + content[end:]

    rows = list(read_questions(io.BytesIO(damaged), name=name, limits=Limits(max_line_bytes=120)))

    assert rows
    assert all(row.line >= 1 for row in rows)


@given(position=st.integers(0, len(_GOOD)), byte=st.binary(min_size=1, max_size=1))
def test_one_wrong_byte_costs_at_most_two_json_lines(position, byte):
    content = _GOOD.encode()
    damaged = content[:position] + byte + content[position + 1 :]

    rows = list(read_questions(io.BytesIO(damaged), name="pool.jsonl", mapping={"question": "question"}))

    assert sum(isinstance(row, QuestionRow) for row in rows) >= 4
