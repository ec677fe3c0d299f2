"""The stages of a comparison: the answers of its run, vectors, choices, resampling. It asks no model anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from django.utils import timezone

from labeling.engine.comparing import compare
from labeling.engine.embeddings import embedded
from labeling.engine.evidence import QuestionVotes, Rows, stored_votes
from labeling.engine.internals import Internals, needs_internals, stored_internals
from labeling.errors import LabelingError
from labeling.models import Comparison, Question, SelectionRun
from labeling.queries.comparisons import truths_of
from labeling.runs.attempt import Attempt
from labeling.runs.lease import Lease

ROWS_PER_READ = 200  # questions whose answers are read between two looks at whether to stop


class ComparisonStages(Attempt):
    """One attempt at a comparison. Vectors are stored as they come; the rest starts anew in another attempt."""

    def __init__(
        self,
        comparison: Comparison,
        lease: Lease,
        *,
        should_stop: Callable[[], bool],
        listener: Callable[[str, int, int], None],
    ) -> None:
        super().__init__(comparison, lease, should_stop=should_stop, listener=listener)
        self._comparison, self._run = comparison, comparison.run

    def execute(self) -> None:
        """Go through all stages and save the result. Raises LeaseLost, WorkStopped or LabelingError."""
        questions = list(Question.objects.filter(scores__run=self._run).order_by("pk"))
        items = list(self._run.calibration_set.items.order_by("pk")) if self._run.calibration_set else []
        n_rows = len(items) + len(questions)
        calibration_votes = self._votes(items, 0, n_rows)
        votes = {each.uid: each for each in self._votes(questions, len(items), n_rows)}
        questions = [question for question in questions if question.uid in votes]
        _check_complete([votes[question.uid] for question in questions], self._run)
        if not questions:
            raise LabelingError(
                f"The answers that run {self._run.pk} was made from are no longer stored. Start a run anew, and "
                "compare on that.",
                code="no_answers",
            )
        self.progress("reading answers", n_rows, n_rows)
        embeddings = None
        if self._run.embedder:
            embeddings = embedded(
                questions,
                self._run.embedder,
                saving=self._lease.saving,
                progress=partial(self.progress, "embedding"),
            )
        result = compare(
            self._comparison,
            [votes[question.uid] for question in questions],
            calibration_votes,
            embeddings=embeddings,
            internals=self._internals(questions),
            truths=truths_of(self._run),
            progress=self.progress,
        )
        self._progress.write()
        self._lease.end(
            Comparison.Status.FINISHED,
            result={**result, "seconds": self._progress.seconds()},
            finished_at=timezone.now(),
        )

    def _votes(self, rows: Rows, n_before: int, n_in_all: int) -> list[QuestionVotes]:
        """The votes of those rows whose answers are still stored; it tells how far it is and may be stopped."""
        votes: list[QuestionVotes] = []
        for start in range(0, len(rows), ROWS_PER_READ):
            self.progress("reading answers", n_before + start, n_in_all)
            votes += stored_votes(self._run, rows[start : start + ROWS_PER_READ])
        return votes

    def _internals(self, questions: Sequence[Question]) -> Internals | None:
        """What is stored of them, where some strategy looks at it: it may be large."""
        if not any(needs_internals({"strategy": key}) for key in self._comparison.strategies):
            return None
        return stored_internals(self._run.generation_fingerprint, questions)


def _check_complete(votes: Sequence[QuestionVotes], run: SelectionRun) -> None:
    """Raise LabelingError where a race left out answers that a comparison reads."""
    n_outcomes = run.config["n_outcomes"]
    n_lacking = sum(len(each.outcome_answers) < n_outcomes for each in votes)
    if n_lacking and run.race != SelectionRun.Race.OFF:
        raise LabelingError(
            f"Run {run.pk} was raced: of {n_lacking:,} of its {len(votes):,} questions it did not ask all {n_outcomes} "
            "full answers, and a comparison reads them all. On the run’s page choose “Ask for the rest”: a run that "
            "asks only for what is missing. Then compare on that.",
            code="run_was_raced",
        )
