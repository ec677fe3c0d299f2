"""CSV cells stay the texts they are; bad records are named alone."""

import pytest

from selector.rows import RejectedRow, Row, read_rows
from selector.rows.delimited import sniff_delimiter


def test_cells_are_never_read_as_values(read):
    cells = ["NA", "007", "1e5", "1.0", "null", "n/a", "None", "true", "2024-01-02", " x ", "=1+1"]
    content = "question,answer\n" + "".join(f"q{n},{cell}\n" for n, cell in enumerate(cells))

    questions, rejected = read(content, name="pool.csv")

    assert [question.answer for question in questions] == [cell.strip() for cell in cells]
    assert rejected == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(read, delimiter):
    rows = [["id", "Question", "answer"], ["1", "a, b; c?", "3,5"], ["2", "d", "4"]]
    content = "\r\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)

    questions, _ = read(content, name="pool.csv")

    assert [(question.uid, question.text, question.answer) for question in questions] == [
        ("1", "a, b; c?", "3,5"),
        ("2", "d", "4"),
    ]


def test_one_column_needs_no_delimiter(read):
    questions, _ = read("question\nWhat is 1+1?\nAnd; 2+2?\n", name="pool.csv")

    assert [question.text for question in questions] == ["What is 1+1?", "And; 2+2?"]


def test_unquoted_commas_in_the_text_do_not_hide_the_semicolon():
    assert sniff_delimiter(["question;answer", "a, b, c;1", "d, e;2"]) == ";"


def test_quoted_cells_keep_line_breaks_and_the_lines_are_counted(read):
    questions, _ = read('question,answer\n"first\r\nsecond ""so""",1\nthird,2\n', name="pool.csv")

    assert [(question.line, question.text) for question in questions] == [(2, 'first\nsecond "so"'), (4, "third")]


def test_a_json_list_in_a_cell_is_read_for_choices_only(read):
    content = 'question,choices,answer\n"[1, 2] is what?","[""A"", ""C""]","[1, 2]"\n'

    [question], _ = read(content, name="pool.csv")

    assert (question.text, question.choices, question.answer) == ("[1, 2] is what?", ("A", "C"), "[1, 2]")
    assert question.answer_kind == "choice"


@pytest.mark.parametrize("record", ["a,\"['A', 'C']\",1", "\"['A', 'C']\",,1"])
def test_a_python_list_in_a_cell_is_refused(read, record):
    questions, rejected = read(f"question,choices,answer\n{record}\nb,,2\n", name="pool.csv")

    assert [question.text for question in questions] == ["b"]
    assert (rejected[0].line, rejected[0].code) == (2, "python_list")
    assert '["A", "C"]' in rejected[0].message


def test_a_chat_in_a_cell_is_understood(read):
    content = (
        'prompt\n"[{""role"": ""system"", ""content"": ""Be brief""}, {""role"": ""user"", ""content"": ""What?""}]"\n'
    )

    [question], _ = read(content, name="pool.csv")

    assert question.text == "What?"
    assert question.metadata == {"prompt": [{"role": "system", "content": "Be brief"}]}


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ("b,c,2", "wrong_number_of_cells"),
        ("b", "wrong_number_of_cells"),
        ('"b,2', "bad_quotes"),
        ('"b" x,2', "bad_quotes"),
        (",2", "empty_question"),
        ("b\x00,2", "nul_character"),
    ],
)
def test_a_bad_record_is_rejected_alone(read, bad, code):
    questions, rejected = read(f'question,answer\na,1\n{bad}\nc,3\n"d, e",4\nf,5\n', name="pool.csv")

    assert [question.text for question in questions] == ["a", "c", "d, e", "f"]
    assert [(row.line, row.code) for row in rejected] == [(3, code)]


def test_latin_1_names_the_line(read):
    questions, rejected = read("question,answer\na,1\ncafé,2\nc,3\n".encode("latin-1"), name="pool.csv")

    assert [question.text for question in questions] == ["a", "c"]
    assert [(row.line, row.code) for row in rejected] == [(3, "not_utf8")]


def test_a_byte_order_mark_belongs_to_no_column(read):
    questions, _ = read(b"\xef\xbb\xbfquestion,answer\na,1\n", name="pool.csv")

    assert [question.answer for question in questions] == ["1"]


def test_empty_records_and_a_header_alone(read):
    assert [question.text for question in read("question,answer\n\n,\na,1\n", name="pool.csv")[0]] == ["a"]
    assert [row.code for row in read("question,answer\n", name="pool.csv")[1]] == ["empty_file"]


def test_a_column_named_twice_is_named(read):
    _, rejected = read("question,answer,answer\na,1,2\n", name="pool.csv")

    assert [row.code for row in rejected] == ["duplicate_column"]
    assert "“answer”" in rejected[0].message


def test_a_given_delimiter_is_used(tmp_path):
    path = tmp_path / "pool.txt"
    path.write_text("question:answer\na:1\n")

    rows = list(read_rows(path, format="csv", delimiter=":"))

    assert rows == [Row(2, {"question": "a", "answer": "1"})]
    assert not any(isinstance(row, RejectedRow) for row in rows)
