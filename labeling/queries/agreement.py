"""How far the annotators of a round agree, compared by meaning as the trainer's grader would."""

from labeling.queries.label_risk import agreement_of
from labeling.queries.rounds import RoundProgress


def agreement_in_words(progress: RoundProgress) -> str:
    """Say on how many of the compared questions all answers mean the same; "" where nothing has been compared."""
    found = agreement_of(progress)
    if not found.of:
        return ""
    caveat = "; so few say little about how good the answers are" if found.is_small else ""
    return f"Annotators agree on {found.n} of {found.of} questions{caveat}."
