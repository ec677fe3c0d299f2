"""A person's own work on one question of a round, and nobody else's."""

from typing import Literal

from django.db.models import Count

from labeling.models import Annotation, Round, Skip, Slot, User

State = Literal["held", "lost", "answered", "given_back"]


def own_annotation(slot: Slot, user: User) -> Annotation | None:
    """Return the person's answer to the slot's question in its round."""
    found: Annotation | None = Annotation.objects.standing_of(slot, user)
    return found


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
    answered: int = Annotation.objects.filter(annotator=user, slot__round=round, withdrawal=None).aggregate(
        n=Count("slot", distinct=True)
    )["n"]
    return answered
