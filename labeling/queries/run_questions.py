"""One question as a run saw it: for managers only, with the model's answers."""

from __future__ import annotations

from dataclasses import dataclass

from labeling.engine.question_votes import VotesOfQuestion, votes_of_question
from labeling.models import Pick, Question, QuestionScore, SelectionRun, StoredCompletion


@dataclass(frozen=True)
class QuestionInRun:
    """A question, what the run measured, and its answers (None where none are stored any more).

    ``score`` is None for a pick that was imported without scores; ``chain`` is the stored chain of thought, "" for
    votes from elsewhere. ``before`` and ``after`` are the neighbouring picks by rank.
    """

    question: Question
    score: QuestionScore | None
    pick: Pick | None
    votes: VotesOfQuestion | None
    chain: str
    n_chain_tokens: int
    before: Pick | None
    after: Pick | None


def question_in_run(run: SelectionRun, question_id: int) -> QuestionInRun | None:
    """The question if the run looked at it, else None."""
    question = Question.objects.filter(pool=run.pool, pk=question_id).first()
    score = QuestionScore.objects.filter(run=run, question_id=question_id).first()
    pick = run.picks.filter(question_id=question_id).first()
    if question is None or (score is None and pick is None):
        return None
    rank = pick.rank if pick else 0
    near = {each.rank: each for each in run.picks.filter(rank__in=[rank - 1, rank + 1])} if pick else {}
    chain = StoredCompletion.objects.filter(
        generation_fingerprint=run.generation_fingerprint,
        question_fingerprint=question.fingerprint,
        kind="trajectory",
        index=0,
    ).first()
    return QuestionInRun(
        question=question,
        score=score,
        pick=pick,
        votes=votes_of_question(run, question) if run.generation_fingerprint else None,
        chain=str(chain.text) if chain else "",
        n_chain_tokens=chain.n_tokens if chain else 0,
        before=near.get(rank - 1),
        after=near.get(rank + 1),
    )
