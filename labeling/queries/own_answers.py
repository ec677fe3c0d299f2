"""A person's own work on one question of a round, and nobody else's."""

from typing import Literal

from django.db.models import Count

from labeling.models import Annotation, Draft, Round, Skip, Slot, User
from labeling.prepared import Parameter, Prepared, PreparedAbout

_SAID = PreparedAbout[Annotation](
    lambda slot: Annotation.objects.about(slot).filter(withdrawal=None).select_related("slot").order_by("version")
)
_DRAFTS = PreparedAbout[Draft](lambda slot: Draft.objects.about(slot).filter(author=Parameter("user"))[:1])
_N_ANSWERED = Prepared(
    lambda: (
        Annotation.objects.filter(annotator=Parameter("user"), slot__round=Parameter("round"), withdrawal=None)
        .order_by()
        .values("annotator")
        .annotate(n=Count("slot", distinct=True))
        .values_list("n")
    )
)

State = Literal["held", "lost", "answered", "given_back"]


def own_annotation(slot: Slot, user: User) -> Annotation | None:
    """Return what the person says now of what the slot asks in its round; the first if they said it of two slots."""
    standing: dict[int, Annotation] = {}
    for annotation in _SAID.rows(slot):
        if annotation.annotator_id == user.pk:
            standing[annotation.slot_id] = annotation
    return min(standing.values(), key=lambda annotation: annotation.pk, default=None)


def own_draft(slot: Slot, user: User) -> Draft | None:
    """Return what the person has typed so far for the slot's question; None if it was never given to them."""
    return _DRAFTS.first(slot, user=user.pk)


def state_for(slot: Slot, user: User) -> State:
    """Where a question that was shown to the person stands for them: theirs, lost to another, answered, given back."""
    if slot.holder_id == user.pk and slot.state == Slot.State.LEASED:
        return "held"
    if own_annotation(slot, user) is not None:
        return "answered"
    if slot.state == Slot.State.OPEN or Skip.objects.about(slot).filter(user=user).exists():
        return "given_back"
    return "lost"


def n_answered(round: Round, user: User) -> int:
    """How many answers the person has given in the round."""
    counted = _N_ANSWERED.first(user=user.pk, round=round.pk)
    return 0 if counted is None else counted[0]
