"""Compare answers with proofs in worker processes, and group them into classes."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from types import TracebackType

from selector.answers.canonical import compare_exactly
from selector.answers.comparing import Comparison
from selector.answers.contract import AnswerPolicy, ReadAs, Verdict, VerdictStore, verdict_key
from selector.answers.prover import Prover, WorkerFailed
from selector.answers.reading_back import read_back
from selector.answers.spelling import clean
from selector.answers.stores import MemoryVerdictStore
from selector.answers.syntax import Node

MAX_UNPROVED = 20  # of one question: then its answers are compared exactly, so that a hostile one cannot stop a run
_DEFAULT = AnswerPolicy()
_log = logging.getLogger(__name__)


class Grader:
    """Compares answers; symbolic proofs run in worker processes, started on first use and killed at the time limit.

    A verdict that took a worker is kept in ``verdicts`` (in memory by default), a timeout as ``undecided``, so that
    the load of a machine never changes what was once decided. Use it as a context manager, or call ``close``; one
    grader may be shared by threads.
    """

    def __init__(self, timeout_seconds: float = 1.8, n_workers: int = 1, verdicts: VerdictStore | None = None) -> None:
        self._timeout_seconds = timeout_seconds
        self._verdicts: VerdictStore = MemoryVerdictStore() if verdicts is None else verdicts
        self._prover = Prover(timeout_seconds, n_workers)

    def __enter__(self) -> Grader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers; comparing again starts them again."""
        self._prover.close()

    def warm(self) -> None:
        """Start a worker now rather than on first use."""
        self._prover.warm()

    def compare(self, gold: str, answer: str, kind: str | None = None, policy: AnswerPolicy = _DEFAULT) -> Verdict:
        """Return whether two answers are equivalent under the policy. Takes the time limit at most, and never raises.

        Exact arithmetic decides first, without looking anything up; then the store is asked, then a worker.
        ``kind`` None means that each answer is read as what it looks like.
        """
        verdict, is_open = compare_exactly(gold, answer, kind, policy)
        if verdict is not Verdict.UNDECIDED or not is_open:
            return verdict
        first, second = sorted((clean(gold), clean(answer)))
        key = verdict_key(first, second, kind or "", policy)
        kept = self._verdicts.get(key)
        if kept is not None:
            return kept
        try:
            verdict = self._prove(first, second, kind, policy)
        except WorkerFailed as failure:  # says nothing about the answers, so it is not kept
            _log.error("No worker to compare answers: %s", failure)
            return Verdict.UNDECIDED
        self._verdicts.put(key, verdict)
        return verdict

    def _prove(self, gold: str, answer: str, kind: str | None, policy: AnswerPolicy) -> Verdict:
        remaining = self._timeout_seconds

        def timed(ask: str, left: Node | str, right: Node | str) -> bool:
            nonlocal remaining
            if remaining <= 0:
                return False
            start = time.monotonic()
            proved = getattr(self._prover, ask)(left, right, remaining)
            remaining -= time.monotonic() - start
            return proved is True

        comparison = Comparison(
            policy,
            prove=lambda left, right: timed("prove", left, right),
            ask=lambda left, right: timed("judge", left, right),
        )
        return comparison.answers(gold, answer, kind)

    def read_as(self, answer: str, kind: str | None = None, policy: AnswerPolicy = _DEFAULT) -> ReadAs:
        """Return what a trainer's grader reads in an answer, and what to beware of."""
        return read_back(answer, kind, policy)


def group_answers(
    answers: Sequence[str],
    *,
    kind: str | None = None,
    policy: AnswerPolicy = _DEFAULT,
    grader: Grader | None = None,
) -> list[int]:
    """Return the class of each answer, numbered by first appearance; -1 for one that was not read ("").

    An answer joins the first class whose representative, its first member, it is equivalent to; ``undecided`` opens a
    new class, and classes never merge. Without a grader only exact forms are compared.
    """
    grouping = AnswerClasses(kind, policy, grader)
    return [grouping.class_of(answer) for answer in answers]


class AnswerClasses:
    """The classes of one question's answers, told apart as they come: answers that come later change nothing."""

    def __init__(self, kind: str | None, policy: AnswerPolicy, grader: Grader | None) -> None:
        self.kind, self.policy, self.grader = kind, policy, grader
        self.representatives: list[str] = []
        self.known: dict[str, int] = {}
        self.n_unproved = 0

    def class_of(self, answer: str) -> int:
        """Return the class of the next answer, numbered by first appearance; -1 for one that was not read."""
        text = clean(answer)
        if not text:
            return -1
        if text not in self.known:
            matches = (
                number
                for number, representative in enumerate(self.representatives)
                if self.compare(representative, answer) is Verdict.EQUIVALENT
            )
            self.known[text] = next(matches, len(self.representatives))
            if self.known[text] == len(self.representatives):
                self.representatives.append(answer)
        return self.known[text]

    def compare(self, representative: str, answer: str) -> Verdict:
        verdict, is_open = compare_exactly(representative, answer, self.kind, self.policy)
        if not is_open or verdict is not Verdict.UNDECIDED or self.grader is None or self.n_unproved >= MAX_UNPROVED:
            return verdict
        verdict = self.grader.compare(representative, answer, self.kind, self.policy)
        self.n_unproved += verdict is Verdict.UNDECIDED
        return verdict
