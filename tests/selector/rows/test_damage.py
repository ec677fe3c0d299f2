"""LaTeX that JSON turned into control characters is found, shown repaired, and repaired when asked."""

import pytest

from selector.rows.damage import find_damage, repair_damage


@pytest.mark.parametrize(
    "source",
    [
        r"\frac{1}{2}", r"x=\beta", r"\binom{4}{2}", r"\text{ cm}", r"2\theta", r"3 \times 4", r"\rho^2", r"\right)",
        r"\boldsymbol{x}", r"\tfrac12", r"\forall x", r"$\langle a, b\rangle$", r"$a \neq b$", r"$\tan x$", r"$x\to 0$",
    ],
)  # fmt: skip
def test_eaten_commands_are_found_and_come_back(source):
    eaten = source
    for letter, control in (("b", "\b"), ("f", "\f"), ("n", "\n"), ("r", "\r"), ("t", "\t")):
        eaten = eaten.replace("\\" + letter, control)
    assert eaten != source

    assert find_damage(eaten)
    assert repair_damage(eaten) == source


@pytest.mark.parametrize(
    "text",
    [
        "First line\nright after it", "a\ttable\tof\tan\texample", "Page one\fNext page", "Old\rMac\rlines\rangle here",
        "eq. (3)\neq. (4)", "one\nabla", "$$\nu = 3\n$$", "Extra:\texterior angle", r"\frac{1}{2}", "tab\there",
    ],
)  # fmt: skip
def test_ordinary_white_space_is_no_damage(text):
    assert find_damage(text) == ""
    assert repair_damage(text) == text


def test_a_form_feed_is_named_with_the_repaired_text_and_the_rest_is_read(read):
    questions, rejected = read('{"question": "What is $\\frac{1}{2}$?"}\n{"question": "b"}\n')

    assert [question.text for question in questions] == ["b"]
    assert (rejected[0].line, rejected[0].code) == (1, "latex_read_as_escape")
    assert "U+000C (form feed)" in rejected[0].message
    assert r"What is $\frac{1}{2}$?" in rejected[0].message


def test_with_repair_the_row_is_read_as_it_was_meant(read):
    questions, rejected = read(
        '{"question": "What is $\\frac{1}{2}\\times 3$?", "answer": "\\frac{3}{2}"}', repair=True
    )

    assert (questions[0].text, questions[0].answer) == (r"What is $\frac{1}{2}\times 3$?", r"\frac{3}{2}")
    assert rejected == []


def test_a_damaged_answer_rejects_a_calibration_row_and_only_warns_in_a_pool(read):
    content = '{"question": "a", "answer": "\\theta"}'

    assert [row.code for row in read(content, need_answer=True)[1]] == ["latex_read_as_escape"]
    [question], rejected = read(content)
    assert (question.answer, rejected) == ("", [])
    assert "the answer was left out" in question.warnings[0]
