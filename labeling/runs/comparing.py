"""The stages of a comparison: the answers of its run, vectors, choices, resampling. It asks no model anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from django.utils import timezone

from labeling.engine.comparing import compare
from labeling.engine.embeddings import embedded
from labeling.engine.evidence import stored_votes
from labeling.engine.internals import Internals, needs_internals, stored_internals
from labeling.errors import LabelingError
from labeling.models import Comparison, Question
from labeling.queries.comparisons import truths_of
from labeling.runs.attempt import Attempt
from labeling.runs.lease import Lease


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
        self.progress("reading answers", 0, 1)
        votes = {each.uid: each for each in stored_votes(self._run, questions)}
        items = self._run.calibration_set.items.order_by("pk") if self._run.calibration_set else []
        calibration_votes = stored_votes(self._run, list(items))
        questions = [question for question in questions if question.uid in votes]
        if not questions:
            raise LabelingError(
                f"The answers that run {self._run.pk} was made from are no longer stored. Start a run anew, and "
                "compare on that.",
                code="no_answers",
            )
        self.progress("reading answers", 1, 1)
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

    def _internals(self, questions: Sequence[Question]) -> Internals | None:
        """What is stored of them, where some strategy looks at it: it may be large."""
        if not any(needs_internals({"strategy": key}) for key in self._comparison.strategies):
            return None
        return stored_internals(self._run.generation_fingerprint, questions)
