"""How answers are read and compared: the pool's policy, and one grader per process that remembers its verdicts."""

import re
from collections.abc import Sequence
from functools import cache

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


@cache
def grader() -> Grader:
    """Return the grader of this process.

    Its workers start with the first comparison that needs one, afresh in a forked process, and end with the process.
    """
    return Grader(verdicts=StoredVerdicts())


def policy_of(pool: Pool) -> AnswerPolicy:
    """Return how the pool's answers are compared. Raises EngineFailure for a setting that does not exist."""
    with translated_errors():
        return AnswerPolicy.from_json(pool.answer_policy)


def read_as(answer: str, *, kind: str, policy: AnswerPolicy) -> ReadAs:
    """Return what a trainer's grader would make of the answer; ``kind`` is "" where the question has none."""
    return grader().read_as(answer, kind or None, policy)


_WRITTEN_FORM = re.compile(r"-?\d+(/\d+)?|[A-Z]")  # a whole number, a fraction, a choice


def gold_form(answer: str, *, kind: str, policy: AnswerPolicy) -> str:
    """Return the canonical form of an answer where that is something people write too, else the answer as it stands.

    The canonical form of, say, an interval is a key for comparing, which no trainer's grader could read.
    """
    form = engine.canonical_form(answer, kind or None, policy)
    return form if _WRITTEN_FORM.fullmatch(form) else answer.strip()


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
