"""Parquet: nested columns, missing values, files that are not what they say."""

import datetime
import io

import pyarrow as pa
import pyarrow.parquet as pq

from selector.rows import Limits


def parquet(columns, **options) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **options)
    return buffer.getvalue()


def test_chats_choices_and_other_nested_columns(read):
    chat = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "What?"}]
    content = parquet(
        {
            "data_source": ["mine"],
            "prompt": [chat],
            "options": [["one", "two"]],
            "reward_model": [{"style": "rule", "ground_truth": "one"}],
            "when": [datetime.date(2024, 1, 2)],
            "image": [b"\xff\xd8"],
            "tags": [["x", "y"]],
        }
    )

    [question], rejected = read(content, name="pool.parquet", need_answer=True)

    assert (question.text, question.choices, question.answer) == ("What?", ("one", "two"), "one")
    assert question.metadata == {
        "data_source": "mine",
        "prompt": [{"role": "system", "content": "Be brief"}],
        "when": "2024-01-02",
        "tags": ["x", "y"],
    }
    assert rejected == []


def test_a_nested_column_that_is_no_chat_is_refused_as_a_question(read):
    questions, rejected = read(parquet({"question": [{"en": "a", "de": "b"}]}), name="pool.parquet")

    assert questions == []
    assert [(row.line, row.code) for row in rejected] == [(1, "nested_value")]
    assert "COLUMN.ENTRY" in rejected[0].message


def test_an_entry_of_a_nested_column_can_be_mapped(read):
    content = parquet({"question": [{"en": "a", "de": "b"}]})

    [question], _ = read(content, name="pool.parquet", mapping={"question": "question.de"})

    assert question.text == "b"


def test_numbers_and_missing_values(read):
    content = parquet({"question": ["a", "b", "c", None], "answer": pa.array([7.0, None, float("nan"), 1.0])})

    questions, rejected = read(content, name="pool.parquet", need_answer=True)

    assert [question.answer for question in questions] == ["7.0"]
    assert [(row.line, row.code) for row in rejected] == [
        (2, "missing_answer"),
        (3, "missing_answer"),
        (4, "empty_question"),
    ]


def test_dictionary_columns_and_row_groups(read):
    column = pa.array([f"q{n}" for n in range(1000)]).dictionary_encode()

    questions, _ = read(parquet({"question": column}, row_group_size=64), name="pool.parquet")

    assert [question.text for question in questions] == [f"q{n}" for n in range(1000)]
    assert questions[-1].line == 1000


def test_a_file_that_declares_too_many_bytes_is_refused_unopened(read):
    content = parquet({"question": ["a" * 1000] * 1000}, use_dictionary=False)
    assert len(content) < 100_000

    _, rejected = read(content, name="pool.parquet", limits=Limits(max_row_group_bytes=100_000))

    assert [row.code for row in rejected] == ["parquet_too_large"]
    assert "100,000" in rejected[0].message


def test_a_dictionary_that_unfolds_to_much_is_cut_row_by_row(read):
    content = parquet({"question": ["a" * 2_000_000] * 60 + ["b"]})
    assert len(content) < 1_000_000

    questions, rejected = read(content, name="pool.parquet")

    assert [question.text for question in questions] == ["b"]
    assert {row.code for row in rejected} == {"line_too_long"}
    assert len(rejected) == 60


def test_a_damaged_file_says_so(read):
    content = parquet({"question": ["a", "b"]})

    assert [row.code for row in read(content[:-20], name="pool.parquet")[1]] == ["parquet_unreadable"]
    assert [row.code for row in read(b"no parquet", name="pool.parquet")[1]] == ["parquet_unreadable"]


def test_the_rows_around_a_damaged_row_group_are_read(read):
    content = bytearray(
        parquet({"question": [f"question {n}" for n in range(150)]}, row_group_size=50, compression="zstd")
    )
    damaged = pq.ParquetFile(io.BytesIO(bytes(content))).metadata.row_group(1).column(0)
    start = damaged.dictionary_page_offset
    content[start : start + damaged.total_compressed_size] = b"\xff" * damaged.total_compressed_size

    questions, rejected = read(bytes(content), name="pool.parquet")

    assert [question.line for question in questions] == [*range(1, 51), *range(101, 151)]
    assert [(row.line, row.code) for row in rejected] == [(51, "parquet_unreadable")]


def test_null_columns_and_text_that_is_not_utf_8(read):
    binary = pa.array([b"caf\xe9", b"b"]).cast(pa.binary())
    invalid = pa.StringArray.from_buffers(2, *binary.buffers()[1:])
    content = parquet({"question": invalid, "nothing": pa.nulls(2)})

    questions, rejected = read(content, name="pool.parquet")

    assert [question.text for question in questions] == ["b"]
    assert [(row.line, row.code) for row in rejected] == [(1, "not_utf8")]
