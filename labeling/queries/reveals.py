"""What people were shown of a model's answers after their own, and how often they switched."""

from labeling.models import Reveal, RevealDecision, Slot, User


def reveal_of(*, slot: Slot, user: User) -> Reveal | None:
    """Return what the person was shown after answering the slot; None before, and where nothing is shown."""
    mine = Reveal.objects.filter(annotation__slot=slot, annotation__annotator=user)
    return mine.select_related("annotation__slot__round__run__pool", "annotation__slot__question").first()


def decision_of(reveal: Reveal) -> RevealDecision | None:
    """Return what the person made of a reveal; None as long as they have not said."""
    return RevealDecision.objects.filter(reveal=reveal).select_related("annotation").first()
