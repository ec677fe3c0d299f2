"""The different answers that a run's model gave to a question, as people may be shown them: no counts, no scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.db.models import QuerySet

from labeling.engine.answers import AnswerPolicy, answer_clusters, policy_of, read_as
from labeling.engine.errors import translated_errors
from labeling.engine.evidence import stored_votes
from labeling.models import CalibrationItem, Question, RecordedVotes, SelectionRun, StoredCompletion

MOST_SHOWN = 12
MOST_CHARACTERS = 500  # a longer text is no final answer, whatever a grader makes of it


def model_answers(run: SelectionRun, asked: Question | CalibrationItem) -> list[str]:
    """Return what the run's model answered, equivalent answers once, the most frequent first; [] where none is stored.

    Answers that no trainer's grader can read are left out. Comparing them may take seconds, so call it outside any
    transaction. Raises EngineFailure.
    """
    with translated_errors():
        found = stored_votes(run, [asked])
        if not found:
            return []
        votes = [*found[0].probe_answers, *found[0].outcome_answers]
        return representatives(votes, kind=asked.answer_kind, policy=policy_of(run.pool))


def representatives(votes: Sequence[str], *, kind: str, policy: AnswerPolicy) -> list[str]:
    """Return one written form for each class of readable answers, its most frequent one; the largest classes first.

    At most ``MOST_SHOWN``. Ties go to what was given first.
    """
    counts = Counter(vote for vote in votes if vote.strip() and len(vote) <= MOST_CHARACTERS)
    forms = [form for form in counts if read_as(form, kind=kind, policy=policy).readable]
    classes: dict[int, list[str]] = {}
    for form, number in zip(forms, answer_clusters(forms, kind=kind, policy=policy), strict=True):
        classes.setdefault(number, []).append(form)
    by_size = sorted(classes.values(), key=lambda of_class: -sum(counts[form] for form in of_class))
    return [max(of_class, key=counts.__getitem__).strip() for of_class in by_size[:MOST_SHOWN]]


def position_among(answer: str, shown: Sequence[str], *, kind: str, policy: AnswerPolicy) -> int | None:
    """Return the position of the shown answer that means the same, None if none does."""
    first, *classes = answer_clusters([answer, *shown], kind=kind, policy=policy)
    return classes.index(first) if first in classes else None


def with_stored_answers(run: SelectionRun, questions: QuerySet[Question]) -> set[str]:
    """Return the fingerprints of those questions for which the run has answers of a model. One query."""
    model = RecordedVotes if run.policy_model_id is None else StoredCompletion
    rows = model.objects.filter(
        generation_fingerprint=run.generation_fingerprint, question_fingerprint__in=questions.values("fingerprint")
    )
    return set(rows.values_list("question_fingerprint", flat=True).distinct())
