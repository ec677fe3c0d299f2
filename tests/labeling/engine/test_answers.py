import os

import pytest

from labeling.engine.answers import StoredVerdicts, answer_clusters, gold_form, grader, policy_of, read_as
from labeling.errors import EngineFailure
from labeling.models import StoredVerdict
from selector.answers import AnswerPolicy, Verdict
from tests import factories

POLICY = AnswerPolicy()
NEEDS_A_PROOF = (r"\sin^2(x)\cos^2(x)", r"\frac{\sin^2(2x)}{4}")


@pytest.mark.parametrize(
    ("kind", "answer", "gold"),
    [
        ("number", " 0.50 ", "1/2"),
        ("number", "1,234", "1234"),
        ("number", r"-\frac{6}{4}", "-3/2"),
        ("choice", "(B)", "B"),
        ("interval", "[1, 2)", "[1, 2)"),
        ("expression", r"\sqrt{8}", r"\sqrt{8}"),
        ("percent", "28%", "28%"),
        ("number", "12 apples", "12 apples"),
        ("text", "New York", "New York"),
        ("", "0.25", "1/4"),
    ],
)
def test_a_gold_answer_is_canonical_where_people_write_it_so(kind, answer, gold):
    assert gold_form(answer, kind=kind, policy=POLICY) == gold
    assert gold_form(gold, kind=kind, policy=POLICY) == gold


@pytest.mark.django_db
def test_equivalent_answers_share_a_class_and_unread_ones_stand_alone():
    assert answer_clusters(["1/2", "3", "0.5", "3.0"], kind="number", policy=POLICY) == [0, 1, 0, 1]
    assert answer_clusters(["$$", "1", "$$"], kind="number", policy=POLICY) == [1, 0, 2]
    assert answer_clusters([], kind="", policy=POLICY) == []


@pytest.mark.django_db
def test_a_verdict_that_took_a_proof_is_kept_in_the_database():
    first = grader().compare(*NEEDS_A_PROOF, "expression", POLICY)

    (kept,) = StoredVerdict.objects.all()
    assert kept.verdict == first
    assert grader().compare(*NEEDS_A_PROOF, "expression", POLICY) == first


@pytest.mark.django_db
def test_the_first_verdict_stays():
    store = StoredVerdicts()
    assert store.get("key") is None

    store.put("key", Verdict.UNDECIDED)
    store.put("key", Verdict.EQUIVALENT)

    assert store.get("key") is Verdict.UNDECIDED


@pytest.mark.django_db
def test_a_forked_process_has_workers_of_its_own():
    grader().warm()
    child = os.fork()
    if child == 0:  # as a server forks its workers
        read = read_as("1/2", kind="number", policy=POLICY)
        grader().warm()
        grader().close()
        os._exit(0 if read.readable else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    grader().warm()  # the child has not killed the parent's


@pytest.mark.django_db
def test_a_policy_that_does_not_exist_is_the_engines_error():
    pool = factories.make_pool(answer_policy={"percent": "maybe"})

    with pytest.raises(EngineFailure) as refused:
        policy_of(pool)

    assert refused.value.code == "invalid_config"
