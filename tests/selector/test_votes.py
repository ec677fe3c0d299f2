import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.answers import Grader
from selector.errors import UnusableFile
from selector.votes import QuestionVotes, build_table, canonical_order, read_votes

ANSWER = st.text(st.characters(codec="utf-8", exclude_characters="\x00\f\b"), max_size=8)


def row(uid="q1", **changes):
    return {"id": uid, "probe_answers": ["1", ""], "outcome_answers": ["2", "1"], **changes}


def write(path, rows):
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def problems(path, **options):
    with pytest.raises(UnusableFile) as caught:
        read_votes(path, **options)
    return [(each.line, each.message) for each in caught.value.rows]


@given(
    st.builds(
        QuestionVotes,
        uid=ANSWER.filter(bool),
        probe_answers=st.lists(ANSWER, max_size=3).map(tuple),
        outcome_answers=st.lists(ANSWER, max_size=3).map(tuple),
        truth=st.none() | ANSWER,
        kind=st.none() | st.just("number"),
        cluster=st.none() | st.integers(0, 9),
        text=st.none() | ANSWER,
        choices=st.lists(ANSWER, max_size=2).map(tuple),
        prompt_tokens=st.none() | st.integers(0, 99),
        outcome_tokens=st.none() | st.lists(st.integers(0, 99), max_size=3).map(tuple),
        fingerprint=st.none() | st.just("abc"),
    )
)
def test_a_line_round_trips(votes):
    assert QuestionVotes.from_json(json.loads(json.dumps(votes.to_json()))) == votes


def test_numbers_become_strings_and_null_is_unread(tmp_path):
    path = write(tmp_path / "votes.jsonl", [row(probe_answers=[7, None], outcome_answers=["x", 1.5], truth=7)])

    (votes,) = read_votes(path)

    assert votes.probe_answers == ("7", "")
    assert votes.outcome_answers == ("x", "1.5")
    assert votes.truth == "7"


def test_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row()).encode() + b"\n")

    assert [votes.uid for votes in read_votes(path)] == ["q1"]


def test_every_bad_row_is_named_by_its_line(tmp_path):
    rows = [
        row("a"), row("b", probe_answers="1"), row("a"), row("d", outcome_answers=["1"]), row("e", cluster="3"),
        row("f", outcome_answers=[["1"], "2"]), {"id": "g", "outcome_answers": ["1", "2"]}, row(""), row(True),
        row("j", probe_answers=[True, "1"]), row("k", outcome_tokens=[-1]), row("l", text=5),
    ]  # fmt: skip
    path = write(tmp_path / "votes.jsonl", rows)
    with path.open("a") as file:
        file.write('{"id": "m", \n')

    found = problems(path)

    assert [line for line, _ in found] == list(range(2, 14))
    messages = dict(found)
    assert messages[2] == 'probe_answers is "1"; a list of answers is wanted.'
    assert messages[3] == 'id "a" was already on line 1.'
    assert messages[4] == "outcome_answers has 1 answers where the first row has 2."
    assert messages[6] == 'outcome_answers[0] is ["1"]; a text or a number is wanted.'
    assert messages[7] == "probe_answers is missing; a list of answers is wanted."


def test_an_empty_file_is_named(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text("")

    ((line, message),) = problems(path)

    assert line == 1
    assert "empty" in message


def test_calibration_rows_need_a_truth(tmp_path):
    path = write(tmp_path / "votes.jsonl", [row("a", truth=None), row("b")])

    assert problems(path, calibration=True) == [(2, "truth is missing; a calibration question needs its right answer.")]


def test_exact_string_grouping_compares_characters():
    votes = [QuestionVotes("q", ("0.5", "1/2"), ("", "0.5"), truth="1/2")]

    table = build_table(votes, grouping="exact_string")

    assert table.codes.tolist() == [[0, 1, -1, 0]]
    assert table.truth_codes.tolist() == [1]
    assert table.representatives == (("0.5", "1/2"),)


def test_equivalent_answers_join_the_first_class_and_so_does_the_truth():
    votes = [QuestionVotes("q", ("0.5", "3"), ("", "1/2"), truth=r"\frac{1}{2}", kind="number")]

    with Grader() as grader:
        table = build_table(votes, grader=grader)

    assert table.codes.tolist() == [[0, 1, -1, 0]]
    assert table.truth_codes.tolist() == [0]
    assert table.representatives == (("0.5", "3"),)


def test_a_truth_never_generated_is_absent():
    votes = [
        QuestionVotes("q", ("1",), ("2",), truth="3"),
        QuestionVotes("r", ("1",), ("2",), truth=None),
        QuestionVotes("s", ("1",), ("",), truth=""),
    ]

    for grouping in ("exact_string", "equivalence"):
        assert build_table(votes, grouping=grouping).truth_codes.tolist() == [-1, -1, -1]


def test_without_a_kind_the_grader_is_not_asked():
    class Refusing:
        def __getattr__(self, name):
            raise AssertionError(f"the grader was asked to {name}")

    votes = [QuestionVotes("q", (r"\sin^2 x+\cos^2 x", "1"), ("2",))]

    assert build_table(votes, grader=Refusing()).codes.tolist() == build_table(votes).codes.tolist()


def test_table_of_one_kind_of_answers_keeps_classes():
    table = build_table([QuestionVotes("q", ("a", "b"), ("b", "c"))], grouping="exact_string")

    assert table.of("probes").codes.tolist() == [[0, 1]]
    assert table.of("outcomes").codes.tolist() == [[1, 2]]
    assert (table.of("probes").n_probes, table.of("outcomes").n_probes) == (2, 0)


@given(st.lists(st.text(max_size=5), unique=True, max_size=20), st.randoms())
def test_canonical_order_does_not_depend_on_the_given_order(uids, random):
    shuffled = list(uids)
    random.shuffle(shuffled)

    assert [uids[i] for i in canonical_order(uids)] == [shuffled[i] for i in canonical_order(shuffled)]
