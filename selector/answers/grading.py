"""Compare answers and group them into classes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from types import TracebackType

from selector.answers.contract import AnswerPolicy, ReadAs, Verdict, VerdictStore

_NUMBER = re.compile(r"[+-]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:/\d+)?")


def infer_kind(answer: str) -> str:
    """Return the kind an answer looks to be of."""
    bare = answer.strip().strip("$").strip()
    if _NUMBER.fullmatch(bare):
        return "number"
    if re.fullmatch(r"\(?[A-H]\)?", bare):
        return "choice"
    return "expression" if re.search(r"[\\^_=+]", bare) else "text"


def canonical_form(answer: str, kind: str | None = None, policy: AnswerPolicy = AnswerPolicy()) -> str:
    """Return the exact form of an answer; answers with equal forms are equivalent. "" for an empty answer."""
    bare = re.sub(r"\s+", "", answer.strip().strip("$"))
    if _NUMBER.fullmatch(bare):
        top, _, bottom = bare.replace(",", "").partition("/")
        if not bottom or int(bottom):
            return str(Fraction(top) / Fraction(bottom or "1"))
    return bare


def exact_verdict(
    gold: str, answer: str, kind: str | None = None, policy: AnswerPolicy = AnswerPolicy()
) -> Verdict:
    """Compare by exact forms alone, without a worker."""
    forms = canonical_form(gold, kind, policy), canonical_form(answer, kind, policy)
    if not all(forms):
        return Verdict.DIFFERENT
    return Verdict.EQUIVALENT if forms[0] == forms[1] else Verdict.UNDECIDED


class Grader:
    """Compares answers; symbolic proofs run in worker processes that are killed at the time limit."""

    def __init__(
        self, timeout_seconds: float = 2.0, n_workers: int = 1, verdicts: VerdictStore | None = None
    ) -> None:
        self._timeout_seconds, self._n_workers, self._verdicts = timeout_seconds, n_workers, verdicts

    def __enter__(self) -> Grader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers."""

    def compare(
        self, gold: str, answer: str, kind: str | None = None, policy: AnswerPolicy = AnswerPolicy()
    ) -> Verdict:
        """Return the verdict on two answers."""
        return exact_verdict(gold, answer, kind, policy)

    def read_as(self, answer: str, kind: str | None = None, policy: AnswerPolicy = AnswerPolicy()) -> ReadAs:
        """Return what a trainer's grader would read."""
        return ReadAs(text=answer.strip(), kind=kind or infer_kind(answer), readable=bool(answer.strip()))


def group_answers(
    answers: Sequence[str],
    *,
    kind: str | None = None,
    policy: AnswerPolicy = AnswerPolicy(),
    grader: Grader | None = None,
) -> list[int]:
    """Return the class of each answer, numbered by first appearance; -1 for an unread one ("")."""
    classes: list[int] = []
    representatives: list[str] = []
    for answer in answers:
        if not answer.strip():
            classes.append(-1)
            continue
        for number, representative in enumerate(representatives):
            if exact_verdict(representative, answer, kind, policy) is Verdict.EQUIVALENT:
                classes.append(number)
                break
        else:
            classes.append(len(representatives))
            representatives.append(answer)
    return classes
