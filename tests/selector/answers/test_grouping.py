"""Grouping a question's answers."""

import pytest

from selector.answers import AnswerPolicy, Grader, Verdict, group_answers


def test_answers_join_the_first_class_they_are_equivalent_to():
    answers = ["1/2", "0.5", "", "3", "\\frac{1}{2}", "3.0", "$\\frac12$", "  ", "x"]

    assert group_answers(answers) == [0, 0, -1, 1, 0, 1, 0, -1, 2]


def test_classes_never_merge():
    # 28% equals 28 and 0.28, which do not equal each other: the representative decides
    assert group_answers(["28", "0.28", "28\\%"]) == [0, 1, 0]
    assert group_answers(["28\\%", "0.28", "28"]) == [0, 0, 0]


def test_undecided_opens_a_class_and_a_proof_closes_it():
    answers = ["\\sin 2x", "2\\sin x\\cos x", "\\sin 2x"]

    assert group_answers(answers) == [0, 1, 0]
    with Grader(timeout_seconds=20) as grader:
        assert group_answers(answers, grader=grader) == [0, 0, 0]


def test_the_kind_decides_what_order_means():
    assert group_answers(["1,2", "2,1"]) == [0, 0]
    assert group_answers(["1,2", "2,1"], kind="tuple") == [0, 1]
    assert group_answers(["(1,2)", "1<x<2"], kind="interval") == [0, 0]


def test_the_policy_decides_what_percent_means():
    strict = AnswerPolicy(percent="sign")
    assert group_answers(["28\\%", "28", "0.28"], policy=strict) == [0, 1, 2]


def test_no_answers_make_no_classes():
    assert group_answers([]) == []


def test_a_question_full_of_unprovable_answers_gives_up_proving():
    class Stubborn(Grader):
        n_asked = 0

        def compare(self, *arguments, **named):
            self.n_asked += 1
            return Verdict.UNDECIDED

    answers = [f"\\sin 2x + {i}(\\sin 2x - 2\\sin x\\cos x)" for i in range(40)]
    with Stubborn() as grader:
        classes = group_answers(answers, grader=grader)

    assert classes == list(range(40))
    assert grader.n_asked == 20


@pytest.mark.parametrize("grouped", [group_answers, lambda answers: group_answers(answers, kind="number")])
def test_long_runs_of_one_answer_are_compared_once(grouped):
    assert grouped(["\\frac{1}{3}"] * 10_000) == [0] * 10_000
