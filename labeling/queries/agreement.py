"""How far the annotators of a round agree, compared by meaning as the trainer's grader would."""

from labeling.models import GoldAnswer
from labeling.queries.rounds import QuestionState, RoundProgress

FEW = 20


def agreement_in_words(progress: RoundProgress) -> str:
    """Say on how many of the compared questions all answers mean the same; "" where nothing has been compared."""
    agreed = sum(
        question.gold is not None and question.gold.source == GoldAnswer.Source.AGREEMENT
        for question in progress.questions
    )
    disagreed = sum(
        question.state in {QuestionState.ADJUDICATING, QuestionState.WAITING_FOR_UNIT}
        or (question.gold is not None and question.gold.source == GoldAnswer.Source.ADJUDICATION)
        for question in progress.questions
    )
    if not agreed + disagreed:
        return ""
    caveat = "; so few say little about how good the answers are" if agreed + disagreed < FEW else ""
    return f"Annotators agree on {agreed} of {agreed + disagreed} questions{caveat}."
