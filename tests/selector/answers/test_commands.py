"""`assay grade` and `assay read`."""

import io
import json

import pytest

from selector.answers import Grader
from selector.answers.commands import grade_file, read_answer


def graded(path, content):
    path.write_bytes(content)
    out = io.StringIO()
    status = grade_file(path, out)
    return status, [json.loads(line) for line in out.getvalue().splitlines()]


def test_each_row_comes_back_with_its_verdict(tmp_path, capsys):
    rows = [
        {"id": "a", "gold": "1/2", "answer": "0.5", "note": "é"},
        {"id": "b", "gold": "1/2", "answer": "0.6", "kind": "number"},
        {"id": "c", "gold": "9^{9^{9^9}}", "answer": "1", "kind": None},
        {"id": "d", "gold": 5, "answer": "5.0"},
        {"id": "e", "gold": "5", "answer": "\ud800"},
    ]
    status, written = graded(tmp_path / "cases.jsonl", b"\xef\xbb\xbf" + "\n\n".join(map(json.dumps, rows)).encode())

    assert status == 0
    verdicts = ["equivalent", "different", "undecided", "equivalent", "different"]
    assert written == [{**row, "verdict": verdict} for row, verdict in zip(rows, verdicts, strict=True)]
    assert capsys.readouterr().err == ""


def test_bad_rows_are_named_by_line_and_the_others_graded(tmp_path, capsys):
    lines = [
        b'{"gold": "1", "answer": "1"}',
        b"not json",
        b'{"gold": "1"}',
        b"[1]",
        b'{"gold": "1", "answer": ["1"]}',
        b'{"gold": "1", "answer": "1", "kind": "colour"}',
        b'{"gold": "\xff", "answer": "1"}',
        b'{"gold": "2", "answer": "3"}',
        b"[" * 100_000,
    ]
    path = tmp_path / "cases.jsonl"
    status, written = graded(path, b"\n".join(lines))

    assert status == 1
    assert [row["verdict"] for row in written] == ["equivalent", *["undecided"] * 3, "different"]
    assert [row.get("error") for row in written[1:4]] == [
        "there is no 'answer'.",
        "'answer' is [\"1\"]; it must be text.",
        "there is no kind 'colour'; kinds are number, expression, set, tuple, interval, equation, choice, percent, "
        "currency, text.",
    ]
    named = [line.partition(": ")[0] for line in capsys.readouterr().err.splitlines()]
    assert named == [f"{path}, line {number}" for number in (2, 3, 4, 5, 6, 7, 9)]


def test_a_file_without_rows_and_a_missing_one_are_said_so(tmp_path, capsys):
    assert graded(tmp_path / "empty.jsonl", b"\n")[0] == 1
    assert "has no rows" in capsys.readouterr().err
    assert grade_file(tmp_path / "absent.jsonl", io.StringIO()) == 2
    assert "cannot be opened" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "kind", "lines", "status"),
    [
        ("\\frac12", None, ["read as: 1/2", "kind: number"], 0),
        ("\\{2, 1\\}", None, ["read as: {2, 1}", "kind: set"], 0),
        ("2<x\\le3", None, ["read as: x ∈ (2, 3]", "kind: interval"], 0),
        ("204_5", None, ["read as: 54", "kind: number"], 0),
        ("x=5", None, ["read as: x = 5", "kind: number"], 0),
        ("2x+4y=3", None, ["read as: 2x + 4y = 3", "kind: equation"], 0),
        (
            "yes",
            None,
            [
                "read as: yes",
                "kind: text",
                "warning: Guessable: one of two answers is right by chance half of the time.",
            ],
            0,
        ),
        (
            "(B) 12",
            None,
            ["read as: B", "kind: choice", "warning: Guessable: a letter is right by chance at least one time in ten."],
            0,
        ),
        (
            "5 km",
            None,
            ["read as: 5 km", "kind: number", "warning: Carries the unit km; in other answers it may be left out."],
            0,
        ),
        (
            "28\\%",
            None,
            [
                "read as: 28%",
                "kind: percent",
                "warning: Carries a percent sign: as 28% is accepted as 28 and as 0.28, so is this.",
            ],
            0,
        ),
        (
            "It is raining",
            "text",
            ["read as: It is raining", "kind: text", "warning: Prose: only the same words will be accepted."],
            0,
        ),
        (
            "North by Northwest",
            None,
            ["read as: North by Northwest", "kind: text", "warning: Prose: only the same words will be accepted."],
            0,
        ),
        ("proof", None, ["unreadable: proof", "kind: text", "warning: This is not an answer."], 1),
        ("12:30 pm", None, ["read as: 12:30 pm", "kind: number"], 0),
        ("0:05 am", None, ["read as: 12:05 am", "kind: number"], 0),
        (
            "a few",
            "number",
            ["unreadable: a few", "kind: number"],
            1,
        ),
        ("", None, ["unreadable: ", "kind: text", "warning: There is nothing to read."], 1),
        (
            "65^",
            None,
            [
                "unreadable: 65^",
                "kind: expression",
                "warning: Not read to its end as mathematics: other spellings of it may not be recognised.",
            ],
            1,
        ),
    ],
)
def test_an_answer_is_read_back(answer, kind, lines, status):
    out = io.StringIO()

    assert read_answer(answer, kind, out) == status
    assert out.getvalue().splitlines() == lines


@pytest.mark.parametrize(
    "answer",
    [
        "7 or so",
        "seven or so",
        "about 5",
        "between 3 and 5",
        "I think it's 12",
        "It depends on x",
        "no idea, maybe 4",
        "Proof: assume x is even; then x^2 is even. QED",
    ],
)
def test_prose_is_not_readable(answer):
    out = io.StringIO()

    assert read_answer(answer, None, out) == 1
    assert "warning: Prose: only the same words will be accepted.\n" in out.getvalue()


@pytest.mark.parametrize("answer", ["\\frac{1}{", "\\sqrt{2", "\\boxed{5", "\\begin{pmatrix}1\\\\2", "5}"])
def test_latex_that_is_broken_off_is_not_readable(answer):
    for kind in (None, "expression", "text"):
        out = io.StringIO()

        assert read_answer(answer, kind, out) == 1
        assert "warning: Broken off" in out.getvalue()


@pytest.mark.parametrize("answer", ["?", "-", "..."])
def test_punctuation_alone_is_not_readable(answer):
    assert read_answer(answer, None, io.StringIO()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "Evelyn", "Alice and Bob", "red, green, blue", "3 apples and 2 pears", "5 or 6", "x = 3 or x = 4",
        "E: A polygenic risk score", "2023-01-05", "no solution", "]0, 1[", "\\left\\{1, 2\\right\\}", "{1, 2}", "yes",
    ],
)  # fmt: skip
def test_names_lists_and_regions_stay_readable(answer):
    assert read_answer(answer, None, io.StringIO()) == 0


def test_a_kind_that_does_not_exist_is_refused(capsys):
    assert read_answer("5", "colour", io.StringIO()) == 2
    assert "no kind 'colour'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        *[(answer, "no value") for answer in ("1/0", r"\frac{x}{0}", "1/(2 - 2)", r"\log 0", "3, 0/0")],
        *[(answer, "Too large") for answer in ("10^{10^{10}}", "9^{9^{9^9}}", "100000!")],
        ("9" * 12_000, "Longer than"),
    ],
)
def test_what_no_grader_can_work_out_is_not_readable(answer, reason):
    read = Grader().read_as(answer)

    assert not read.readable
    assert any(reason in warning for warning in read.warnings)


@pytest.mark.parametrize("answer", ["∞", r"\frac{x}{x-1}", "10^{1000}", "9" * 300, r"\sin(\pi)", "1000!", r"0 \cdot x"])
def test_what_has_a_value_stays_readable(answer):
    assert Grader().read_as(answer).readable


@pytest.mark.parametrize(
    "answer", ["Paris (France)", "factorial(100000)", "Paris [France], Rome (Italy)", "7 (mod 12)"]
)
def test_words_are_shown_as_they_were_written(answer):
    assert Grader().read_as(answer).text == answer
