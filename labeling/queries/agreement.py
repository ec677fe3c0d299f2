"""How far the annotators of a round agree, compared by meaning as the trainer's grader would."""

from django.utils.translation import gettext as _

from labeling.queries.label_risk import agreement_of
from labeling.queries.rounds import RoundProgress


def agreement_in_words(progress: RoundProgress) -> str:
    """Say on how many of the compared questions all answers mean the same; "" where nothing has been compared."""
    found = agreement_of(progress)
    if not found.of:
        return ""
    counts = {"n": found.n, "of": found.of}
    if found.is_small:
        return (
            _("Annotators agree on %(n)s of %(of)s questions; so few say little about how good the answers are.")
            % counts
        )
    return _("Annotators agree on %(n)s of %(of)s questions.") % counts
