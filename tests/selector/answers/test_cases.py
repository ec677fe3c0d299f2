"""Every sort of answer: spellings that are equivalent, neighbours that must never be, in both directions."""

import json

import pytest

from selector.answers import Grader, Verdict, canonical_form, exact_verdict
from tests.selector.answers.cases import APART, SAME


@pytest.fixture(scope="module")
def grader():
    with Grader(timeout_seconds=20) as grader:  # a loaded machine must not change what is proved
        yield grader


@pytest.mark.parametrize("sort", SAME)
def test_spellings_of_one_answer_are_equivalent_either_way_round(grader, sort):
    for gold, answer in SAME[sort]:
        assert grader.compare(gold, answer) is Verdict.EQUIVALENT, (gold, answer)
        assert grader.compare(answer, gold) is Verdict.EQUIVALENT, (answer, gold)
        assert exact_verdict(gold, answer) is not Verdict.DIFFERENT, (gold, answer)


@pytest.mark.parametrize("sort", APART)
def test_neighbours_are_never_equivalent(grader, sort):
    for gold, answer in APART[sort]:
        verdict = grader.compare(gold, answer)
        assert verdict is not Verdict.EQUIVALENT, (gold, answer)
        assert grader.compare(answer, gold) is verdict, (answer, gold)


@pytest.mark.parametrize("cases", [SAME, APART], ids=["same", "apart"])
def test_equal_forms_are_equivalent_answers(cases):
    for pairs in cases.values():
        for pair in pairs:
            forms = [canonical_form(answer) for answer in pair]
            if forms[0] and forms[0] == forms[1]:
                assert exact_verdict(*pair) is Verdict.EQUIVALENT, pair


def test_public_cases_without_a_false_accept(shared_data, grader):
    rows = [json.loads(line) for line in (shared_data / "answer_cases.jsonl").read_bytes().splitlines()]
    verdicts = [grader.compare(row["gold"], row["answer"]) for row in rows]
    backwards = [grader.compare(row["answer"], row["gold"]) for row in rows]

    settled = [(row, verdict) for row, verdict in zip(rows, verdicts, strict=True) if not row["policy"]]
    false_accepts = [row["id"] for row, verdict in settled if verdict == "equivalent" and not row["equivalent"]]
    false_rejects = [row["id"] for row, verdict in settled if verdict != "equivalent" and row["equivalent"]]

    assert false_accepts == []
    assert false_rejects == []
    assert verdicts == backwards


def test_golds_of_a_public_set_equal_themselves_and_most_are_read(shared_data):
    lines = (shared_data / "bigmath_pool_answers.jsonl").read_bytes().splitlines()
    answers = {json.loads(line)["ground_truth_answer"] for line in lines}
    unread = [answer for answer in answers if canonical_form(answer).startswith("unparsed")]

    assert all(exact_verdict(answer, answer) is Verdict.EQUIVALENT for answer in answers)
    assert len(unread) <= 0.02 * len(answers)
