"""A round's guideline as one person sees it: new to them, changed since they last read it, or known."""

from dataclasses import dataclass

from django.db.models import Max

from labeling.models import Guideline, GuidelineReading, Round, User


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of a guideline; ``is_new`` where the version that the person has read does not have it."""

    text: str
    is_new: bool


@dataclass(frozen=True)
class ShownGuideline:
    """The guideline of a round, and the newest version of the pool's that the person says they have read (0: none)."""

    guideline: Guideline
    last_read: int
    paragraphs: tuple[Paragraph, ...]

    @property
    def is_unread(self) -> bool:
        return self.last_read < self.guideline.version

    @property
    def has_changed(self) -> bool:
        """Whether the person knows an earlier version."""
        return 0 < self.last_read < self.guideline.version


def guideline_for(*, round: Round, user: User) -> ShownGuideline | None:
    """Return the round's guideline, or None if it has none."""
    guideline = round.guideline
    if guideline is None:
        return None
    readings = GuidelineReading.objects.filter(user=user, guideline__pool=guideline.pool_id)
    last_read = readings.aggregate(version=Max("guideline__version"))["version"] or 0
    known: set[str] = set()
    if 0 < last_read < guideline.version:
        earlier = Guideline.objects.filter(pool=guideline.pool_id, version=last_read)
        known = set(_paragraphs(earlier.values_list("text", flat=True).get()))
    return ShownGuideline(
        guideline,
        last_read,
        tuple(Paragraph(text, bool(known) and text not in known) for text in _paragraphs(guideline.text)),
    )


def _paragraphs(text: str) -> list[str]:
    return [each.strip() for each in text.split("\n\n") if each.strip()]
