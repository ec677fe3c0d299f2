"""How answers are read and compared: the pool's policy, and one grader per process that remembers its verdicts."""

import atexit
import os
from collections.abc import Sequence
from threading import Lock

from labeling.engine.errors import translated_errors
from labeling.models import Pool, StoredVerdict
from selector import answers as engine
from selector.answers import AnswerPolicy, Grader, ReadAs, Verdict

__all__ = ["AnswerPolicy", "ReadAs", "answer_clusters", "gold_form", "grader", "policy_of", "read_as"]


class StoredVerdicts:
    """Verdicts in the database; the first one kept under a key stays."""

    def get(self, key: str) -> Verdict | None:
        kept = StoredVerdict.objects.filter(pk=key).values_list("verdict", flat=True).first()
        return None if kept is None else Verdict(kept)

    def put(self, key: str, verdict: Verdict) -> None:
        StoredVerdict.objects.bulk_create([StoredVerdict(key=key, verdict=verdict.value)], ignore_conflicts=True)


_grader: Grader | None = None
_lock = Lock()


def grader() -> Grader:
    """Return the grader of this process; its workers start with the first comparison that needs one."""
    global _grader
    with _lock:
        if _grader is None:
            _grader = Grader(verdicts=StoredVerdicts())
        return _grader


def _close() -> None:
    global _grader
    if _grader is not None:
        _grader.close()
        _grader = None


def _forget() -> None:
    """In a forked child the workers belong to the parent: leave them alone and start afresh."""
    global _grader, _lock
    _grader, _lock = None, Lock()


atexit.register(_close)
os.register_at_fork(after_in_child=_forget)


def policy_of(pool: Pool) -> AnswerPolicy:
    """Return how the pool's answers are compared. Raises EngineFailure for a setting that does not exist."""
    with translated_errors():
        return AnswerPolicy.from_json(pool.answer_policy)


def read_as(answer: str, *, kind: str, policy: AnswerPolicy) -> ReadAs:
    """Return what a trainer's grader would make of the answer; ``kind`` is "" where the question has none."""
    return grader().read_as(answer, kind or None, policy)


def gold_form(answer: str, *, kind: str, policy: AnswerPolicy) -> str:
    """Return the canonical form of an answer, or the answer itself where the two do not compare as equal."""
    form = engine.canonical_form(answer, kind or None, policy)
    if form and grader().compare(form, answer, kind or None, policy) is Verdict.EQUIVALENT:
        return form
    return answer.strip()


def answer_clusters(answers: Sequence[str], *, kind: str, policy: AnswerPolicy) -> list[int]:
    """Return the class of each answer, numbered by first appearance. An answer that cannot be read stands alone."""
    classes = engine.group_answers(answers, kind=kind or None, policy=policy, grader=grader())
    fresh = max(classes, default=-1)
    numbers = []
    for number in classes:
        if number < 0:
            number = fresh = fresh + 1
        numbers.append(number)
    return numbers
