import pytest

from labeling.engine.question_votes import votes_of_question
from labeling.models import RecordedVotes, StoredCompletion
from tests import factories

CONFIG = {"strategy": "const", "budget": 1, "alpha": "0.1", "lam": 0.0, "n_probes": 4, "n_outcomes": 4}
FINGERPRINT = "f" * 64


def make_run(pool, **fields):
    return factories.make_run(pool=pool, generation_fingerprint=FINGERPRINT, config=CONFIG, **fields)


def record(question, probes, outcomes):
    RecordedVotes.objects.create(
        question_fingerprint=question.fingerprint,
        question_uid=question.uid,
        generation_fingerprint=FINGERPRINT,
        votes={"id": question.uid, "probe_answers": probes, "outcome_answers": outcomes},
    )


def test_equal_answers_are_counted_together_along_the_chain_and_among_the_sampled(pool):
    run = make_run(pool, q_hat=-0.25)
    question = factories.make_question(pool=pool)
    record(question, ["7", "1/2", "", "0.5"], ["0.5", "1/2", "3", ""])

    found = votes_of_question(run, question)

    assert [(each.answer, each.cuts, each.n_outcomes, each.share) for each in found.answers] == [
        ("1/2", (2, 4), 2, 0.5),
        ("3", (), 1, 0.125),
        ("7", (1,), 0, 0.125),
        ("", (3,), 1, 0.25),
    ]
    assert [each.is_plausible for each in found.answers] == [True, False, False, None]
    assert (found.n_cuts, found.n_outcomes) == (4, 4)


def test_the_threshold_of_the_questions_own_group_decides(pool):
    other = {"q_hat": -0.9, "q_hat_infinite": False}
    number = {"q_hat": -0.125, "q_hat_infinite": False}
    run = make_run(pool, q_hat=-0.9, report={"groups": {"number": number, "other": other}})
    number, text = factories.make_question(pool=pool), factories.make_question(pool=pool, answer_kind="text")
    for question in (number, text):
        record(question, ["7", "8", "9", "1"], ["7", "7", "7", "7"])

    of_number, of_text = votes_of_question(run, number), votes_of_question(run, text)

    assert [each.is_plausible for each in of_number.answers] == [True] * 4
    assert [each.is_plausible for each in of_text.answers] == [False] * 4


@pytest.mark.parametrize(("fields", "plausible"), [({"q_hat_infinite": True}, True), ({}, None)])
def test_an_infinite_threshold_lets_everything_through_and_without_one_nothing_is_said(fields, plausible, pool):
    run = make_run(pool, **fields)
    question = factories.make_question(pool=pool)
    record(question, ["7"] * 4, ["8"] * 4)

    assert [each.is_plausible for each in votes_of_question(run, question).answers] == [plausible, plausible]


def test_the_answers_of_a_model_come_from_its_stored_completions(pool):
    run = make_run(pool, policy_model=factories.make_policy_model())
    question = factories.make_question(pool=pool)

    assert votes_of_question(run, question) is None  # nothing is stored

    def store(kind, index, text, **fields):
        StoredCompletion.objects.create(
            question_fingerprint=question.fingerprint, generation_fingerprint=FINGERPRINT, kind=kind, index=index,
            text=text, n_tokens=8, n_prompt_tokens=1, finish_reason="stop", **fields,
        )  # fmt: skip

    store("trajectory", 0, "so \\boxed{5}", token_ids="[1, 2, 3, 4, 5, 6, 7, 8]")
    for at in (2, 4, 6, 8):
        store("probe", at, f"{at // 4}}}$.")
    for i in range(4):
        store("outcome", i, "\\boxed{2}")

    found = votes_of_question(run, question)

    assert [(each.answer, each.cuts, each.n_outcomes) for each in found.answers] == [
        ("2", (4,), 4),
        ("1", (2, 3), 0),
        ("0", (1,), 0),
    ]


def test_a_question_nobody_asked_has_no_votes(pool):
    assert votes_of_question(make_run(pool), factories.make_question(pool=pool)) is None
