"""Each kind of bad JSON input has its own clear message, and the rows around it are read."""

import json

import pytest


def ten_lines(bad: str, at: int = 7) -> str:
    return "".join((bad if n == at else json.dumps({"question": f"What is {n}?"})) + "\n" for n in range(1, 11))


@pytest.mark.parametrize(
    ("bad", "code", "message"),
    [
        ('{"question": "What is', "cut_off", "ends in the middle"),
        ('{"question": "a" "b"}', "invalid_json", "Not JSON at character 18"),
        ('{"question": "a",}', "trailing_comma", "Remove it"),
        ('{"question": "a", "choices": ["b",]}', "trailing_comma", "Remove it"),
        (r'{"question": "\sqrt{2}"}', "invalid_escape", r"\\sqrt for \sqrt"),
        (r'{"question": "\underline{x}"}', "invalid_escape", "twice"),
        ('{"question": "a\tb"}', "control_character", "U+0009"),
        ("{'question': 'a'}", "python_repr", "json.dumps"),
        ('{"question": None}', "python_repr", "json.dumps"),
        ('{"question": "a", "answer": NaN}', "not_json_number", "NaN is not JSON"),
        ('{"question": "a"} {"question": "b"}', "extra_data", "a line of its own"),
        ('{"question": "a", "question": "b"}', "duplicate_key", "“question” appears twice"),
        ('["a", "b"]', "not_an_object", "Found a list"),
        ('"a"', "not_an_object", "Found a text"),
        ("7", "not_an_object", "Found a number"),
        ('{"question": ""}', "empty_question", "“question” is empty"),
        ('{"question": " \\n\\u200b"}', "empty_question", "“question” is empty"),
        ('{"question": null}', "empty_question", "“question” is empty"),
        ('{"wording": "a"}', "empty_question", "it has: wording"),
        ('{"question": true}', "boolean_value", "“true”"),
        ('{"question": {"en": "a"}}', "nested_value", "an object"),
        (r'{"question": "a \ud800 b"}', "lone_surrogate", r"\ud800"),
        (r'{"question": "a \u0000 b"}', "nul_character", "NUL"),
        (r'{"question": "a", "source": ["b\u0000"]}', "nul_character", "“source”"),
        ('{"question": ' + "[" * 5000 + "]" * 5000 + "}", "too_deep", "nested more than 64 deep"),
        ('{"question": "a", "x": ' + "[" * 70 + "]" * 70 + "}", "too_deep", "nested more than 64 deep"),
    ],
)
def test_one_bad_line_is_named_and_the_other_nine_are_read(read, bad, code, message):
    questions, rejected = read(ten_lines(bad))

    assert [question.line for question in questions] == [1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert [(row.line, row.code) for row in rejected] == [(7, code)]
    assert message in rejected[0].message


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", "empty_file", "The file is empty"),
        (b"\n \n", "empty_file", "The file is empty"),
        (b"\xef\xbb\xbf", "empty_file", "The file is empty"),
        ('{"question": "a"}'.encode("utf-16"), "utf16", "Save it as UTF-8"),
        ('{"question": "a"}'.encode("utf-16-le"), "utf16", "Save it as UTF-8"),
        (b"\x1f\x8b\x08\x00rest", "compressed", "Unpack it first"),
        (b"PK\x03\x04rest", "zip_file", "Save the sheet as CSV"),
        (b'{"question": "a"}\r{"question": "b"}\r', "line_ends", "Unix line ends"),
        (b'{"wording": "a", "id": 3}\n', "missing_question_column", "Found: wording, id. Wanted: one of question"),
        (b"[]", "empty_file", "no row"),
    ],
)
def test_what_is_wrong_with_a_whole_file_is_said_once(read, content, code, message):
    questions, rejected = read(content)

    assert questions == []
    assert [row.code for row in rejected] == [code]
    assert message in rejected[0].message


def test_a_byte_order_mark_is_accepted(read):
    questions, rejected = read(b'\xef\xbb\xbf{"question": "a"}\n{"question": "b"}\n')

    assert [question.text for question in questions] == ["a", "b"]
    assert rejected == []


def test_latin_1_names_the_line_and_what_it_would_read(read):
    questions, rejected = read('{"question": "a"}\n{"question": "café"}\n{"question": "c"}'.encode("latin-1"))

    assert [question.text for question in questions] == ["a", "c"]
    assert (rejected[0].line, rejected[0].code) == (2, "not_utf8")
    assert "café" in rejected[0].message
    assert "iconv -f latin1" in rejected[0].message


def test_line_separators_inside_a_text_end_no_line(read):
    questions, rejected = read('{"question": "one\u2028two\u2029three\x85four"}\r\n{"question": "b"}\r\n')

    assert [question.text for question in questions] == ["one\u2028two\u2029three\x85four", "b"]
    assert rejected == []


def test_a_repair_reads_backslashes_that_json_does_not_know(read):
    questions, rejected = read(r'{"question": "\sqrt{2} and \frac{1}{2}, \\cos, \underline{x}, \u00e9"}', repair=True)

    assert [question.text for question in questions] == [r"\sqrt{2} and \frac{1}{2}, \cos, \underline{x}, é"]
    assert rejected == []


def test_columns_are_found_behind_more_than_a_hundred_bad_lines(read):
    questions, rejected = read("{broken\n" * 250 + '{"problem": "a"}\n')

    assert [question.text for question in questions] == ["a"]
    assert len(rejected) == 250


def test_huge_whole_numbers_are_kept_as_written(read):
    questions, _ = read('{"question": "a", "answer": ' + "9" * 6000 + "}")

    assert questions[0].answer == "9" * 6000


def test_a_list_of_objects_is_read_element_by_element(read):
    content = '[\n  {"question": "a [b] {c} \\"d\\" \\\\"},\n  {"question": "e",},\n  7,\n  {"question": "f"}\n]\n'

    questions, rejected = read(content, name="pool.json")

    assert [(question.line, question.text) for question in questions] == [(2, 'a [b] {c} "d" \\'), (5, "f")]
    assert [(row.line, row.code) for row in rejected] == [(3, "trailing_comma"), (4, "not_an_object")]


def test_a_missing_quote_in_a_list_costs_one_element(read):
    content = '[{"question": "a"},\n{"question": "b},\n{"question": "c"},\n{"question": "d"}]'

    questions, rejected = read(content)

    assert [question.text for question in questions] == ["a", "c", "d"]
    assert [(row.line, row.code) for row in rejected] == [(2, "cut_off")]


def test_objects_written_over_several_lines_are_read(read):
    content = (
        json.dumps({"question": "a", "choices": ["x", "y"]}, indent=2) + "\n" + json.dumps({"question": "b"}, indent=2)
    )

    questions, _ = read(content)

    assert [(question.line, question.text) for question in questions] == [(1, "a"), (8, "b")]


def test_list_elements_survive_every_chunk_border(read, monkeypatch):
    monkeypatch.setattr("selector.rows.lines._CHUNK", 3)
    rows = [{"question": f'quote " backslash \\ bracket ]}} {n}', "n": n} for n in range(20)]

    questions, rejected = read(json.dumps(rows))

    assert [question.text for question in questions] == [row["question"] for row in rows]
    assert rejected == []
