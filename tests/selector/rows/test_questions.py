"""From a row to a question: columns, identity, answers, choices, chats."""

import json

import pytest

from selector.rows import near_key, question_uid, recognise_columns
from selector.rows.columns import UnknownColumn


def line(**data) -> str:
    return json.dumps(data) + "\n"


@pytest.mark.parametrize("name", ["question", "Problem", "PROMPT", "text", " question ", "query"])
def test_question_columns_are_recognised(read, name):
    assert [question.text for question in read(line(**{name: "a"}))[0]] == ["a"]


@pytest.mark.parametrize(
    "name", ["answer", "Ground_Truth", "solution", "ground_truth_answer", "final answer", "Final-Answer", "gold"]
)
def test_answer_columns_are_recognised(read, name):
    assert [question.answer for question in read(line(question="a", **{name: "7"}))[0]] == ["7"]


def test_the_likeliest_column_is_taken_and_the_others_are_named():
    columns = recognise_columns(["text", "Question", "question", "solution", "answer", "id", "uid"])

    assert columns.mapping() == {"question": "question", "answer": "answer", "uid": "uid"}
    assert columns.ambiguous == {"question": ("Question", "text"), "answer": ("solution",), "uid": ("id",)}


def test_a_mapping_goes_before_recognition(read):
    content = line(question="no", wording="yes", id="1", answer="2", reply="3")

    [question], _ = read(content, mapping={"question": "wording", "answer": "reply", "uid": ""})

    assert (question.text, question.answer, question.uid_given) == ("yes", "3", False)


@pytest.mark.parametrize(("mapping", "message"), [({"question": "x"}, "question=x"), ({"topic": "a"}, "field “topic”")])
def test_a_wrong_mapping_is_an_error_that_says_what_there_is(read, mapping, message):
    with pytest.raises(UnknownColumn) as raised:
        read(line(a="b"), mapping=mapping)

    assert message in str(raised.value)
    assert "Use one of: " in str(raised.value)


def test_identity_ignores_white_space_and_normal_form_only():
    assert question_uid(" caf\u00e9\n is ") == question_uid("cafe\u0301 is")
    assert question_uid("a", ["x ", "y"]) == question_uid("a", ["x", "y"])
    assert question_uid("a", ["x", "y"]) != question_uid("a", ["y", "x"])
    assert question_uid("a") != question_uid("A")


def test_near_equality_ignores_case_spaces_and_final_punctuation_but_no_operator():
    assert near_key("What is  $x$?") == near_key("what is x")
    assert near_key("Is 1.5 + 2 right?") != near_key("Is 15 + 2 right?")
    assert near_key("2 + 3") != near_key("2 - 3")


def test_the_text_is_kept_as_it_is(read):
    text = "\n  Doubled \\\\frac{1}{2}, \t tab,\u2028 “quotes” "

    assert [question.text for question in read(line(question=text))[0]] == [text]


def test_rows_may_have_different_columns(read):
    content = line(question="a", source="s") + line(question="b", answer=3)

    questions, _ = read(content)

    assert [(question.answer, question.metadata) for question in questions] == [("", {"source": "s"}), ("3", {})]


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("7", "7"), ('"7"', "7"), ("-0.50", "-0.50"), ("1e5", "1e5"), ("12345678901234567890", "12345678901234567890"),
        ('"007"', "007"), ('"NA"', "NA"), ('["4"]', "4"), ('"Step 1\\nso #### 1,018"', "1,018"),
        ('"so \\\\boxed{\\\\frac{1}{2}}."', "\\frac{1}{2}"), ('" 20\\\\% "', "20\\%"),
        ('"y \\\\\\\\in R"', "y \\\\in R"),
    ],
)  # fmt: skip
def test_mixed_answers_become_texts_as_written(read, written, answer):
    questions, rejected = read(f'{{"question": "a", "answer": {written}}}\n', need_answer=True)

    assert [question.answer for question in questions] == [answer]
    assert rejected == []


@pytest.mark.parametrize(
    ("row", "code", "message"),
    [
        ({"question": "a"}, "missing_answer", "No column holds an answer"),
        ({"question": "a", "answer": None}, "missing_answer", "“answer” is empty"),
        ({"question": "a", "answer": " "}, "missing_answer", "--map answer=COLUMN"),
        ({"question": "a", "answer": True}, "boolean_value", "write it in quotes: “true”"),
        ({"question": "a", "answer": ["1", "2"]}, "nested_value", "a list of 2 values"),
        ({"question": "a", "solution": "We think about it. " * 20}, "answer_unread", "No final answer"),
        ({"question": "a", "answer": "7", "id": "x" * 201}, "bad_uid", "200"),
        ({"question": "a", "answer": "7", "choices": ["one"]}, "bad_choices", "At least two"),
        ({"question": "a", "answer": "7", "choices": 3}, "bad_choices", "a list such as"),
    ],
)
def test_calibration_rows_need_a_readable_answer(read, row, code, message):
    questions, rejected = read(line(**row), need_answer=True)

    assert questions == []
    assert [row.code for row in rejected] == [code]
    assert message in rejected[0].message


def test_an_unreadable_answer_does_not_cost_a_pool_its_question(read):
    [question], rejected = read(line(question="a", answer=False))

    assert (question.answer, rejected) == ("", [])
    assert "false" in question.warnings[0]


@pytest.mark.parametrize(
    ("given", "choices"),
    [
        (["x", 2, 3.5], ("x", "2", "3.5")),
        ({"A": "x", "B": "y"}, ("x", "y")),
        ({"label": ["A", "B"], "text": ["x", "y"]}, ("x", "y")),
        ('["x", "y"]', ("x", "y")),
        ([], ()),
        (None, ()),
        ("", ()),
    ],
)
def test_choices_come_in_many_shapes(read, given, choices):
    assert [question.choices for question in read(line(question="a", choices=given))[0]] == [choices]


def test_kinds_are_known_by_several_names_and_unknown_ones_are_left_out(read):
    content = line(question="a", answer_type="Integer") + line(question="b", answer_type="sonnet")

    questions, _ = read(content)

    assert [question.answer_kind for question in questions] == ["number", ""]
    assert "sonnet is not known" in questions[1].warnings[0]


def test_the_last_user_message_is_the_question_and_no_answer_stays_beside_it(read):
    chat = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "What is"}, {"type": "text", "text": "1+1?"}]},
        {"role": "assistant", "content": "It is \\boxed{2}."},
    ]

    [question], _ = read(line(messages=chat, answer="", solution="secret"), need_answer=False)

    assert question.text == "What is\n1+1?"
    assert question.metadata == {"messages": chat[:2]}
    assert "only the last user message" in question.warnings[0]


def test_the_reply_in_a_chat_is_the_answer_where_no_column_is(read):
    chat = [{"from": "human", "value": "What is 1+1?"}, {"from": "gpt", "value": "It is \\boxed{2}."}]

    [question], _ = read(line(conversations=chat), need_answer=True)

    assert (question.text, question.answer) == ("What is 1+1?", "2")


@pytest.mark.parametrize(
    ("chat", "code"),
    [
        ([{"role": "system", "content": "a"}], "no_user_message"),
        ([{"role": "user", "content": [{"type": "image", "url": "x"}]}], "not_only_text"),
    ],
)
def test_chats_that_cannot_be_asked(read, chat, code):
    assert [row.code for row in read(line(prompt=chat))[1]] == [code]


def test_real_pools_are_read(read, shared_data):
    questions, rejected = read((shared_data / "bigmath_pool.jsonl").read_bytes())

    assert len(questions) == 1535
    assert [(row.line, row.code) for row in rejected] == [(1293, "latex_read_as_escape")]
    assert len({question.uid for question in questions}) == 1534


def test_real_calibration_answers_are_read(read, shared_data):
    questions, rejected = read((shared_data / "bigmath_calibration.jsonl").read_bytes(), need_answer=True)

    assert [row.line for row in rejected] == [36, 180]
    assert questions[0].answer == "m=-10"
    assert len(read((shared_data / "bigmath_calibration.jsonl").read_bytes(), need_answer=True, repair=True)[0]) == 512


def test_a_question_past_the_limit_is_rejected_with_the_limit(read):
    questions, [rejected] = read(line(question="a" * 100_000) + line(question="b" * 100_001))

    assert len(questions) == 1
    assert (rejected.line, rejected.code) == (2, "question_too_long")
    assert "100,001 characters; the most is 100,000" in rejected.message


def test_the_rows_of_a_list_on_one_line_are_named_by_their_number(read):
    rows = [{"question": "a"}, {"question": ""}, 7, {"question": "b"}]

    questions, rejected = read(json.dumps(rows), name="pool.json")

    assert [question.line for question in questions] == [1, 4]
    assert [(row.line, row.message.partition(":")[0]) for row in rejected] == [
        (2, "Item 2 of the list"),
        (3, "Item 3 of the list"),
    ]


def test_the_rows_of_a_list_over_several_lines_are_named_by_their_line(read):
    _, [rejected] = read('[{"question": "a"},\n{"question": ""}]', name="pool.json")

    assert rejected.line == 2
    assert "Item" not in rejected.message
