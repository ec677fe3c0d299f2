"""What stands around a question while somebody answers it: how far the round is, and the person's own last answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

from labeling.models import Annotation, Reveal, Round, Skip, Slot, User
from labeling.queries.own_answers import n_answered

FIGURE_KEYS = ("figure", "figures", "figure_url", "image", "images", "image_url", "diagram")


@dataclass(frozen=True)
class Undoable:
    """The last thing that the person did, while it can still be taken back. ``what``: answer, revision or skip."""

    what: str
    slot_id: int
    seconds_left: int


@dataclass(frozen=True)
class Surroundings:
    """``n_done`` of ``n_answers`` wanted are in; checks count like questions, or the figures would tell them apart.

    ``recent``: the person's last answers in the round, newest first. ``previous`` and ``next``: slots that they
    worked on before and after this one, by the time of their first answer.
    """

    n_done: int
    n_answers: int
    n_mine: int
    recent: tuple[Annotation, ...]
    undoable: Undoable | None
    previous: int | None
    next: int | None


def surroundings_of(*, slot: Slot, user: User) -> Surroundings:
    """Return what the page of a slot shows beside its question."""
    done = done_in(slot.round)
    recent = recent_in(round=slot.round, user=user)
    previous, following = _neighbours(slot, user, recent)
    return Surroundings(
        n_done=done["n_done"],
        n_answers=done["n_answers"],
        n_mine=n_answered(slot.round, user),
        recent=recent,
        undoable=undoable_in(round=slot.round, user=user, recent=recent),
        previous=previous,
        next=following,
    )


def done_in(round: Round) -> dict[str, int]:
    """Return how many answers the round wants, and how many of them are in."""
    wanted = Slot.objects.filter(round=round).exclude(purpose=Slot.Purpose.ADJUDICATION)
    return wanted.exclude(state=Slot.State.VOID).aggregate(
        n_answers=Count("pk"), n_done=Count("pk", filter=Q(state=Slot.State.DONE))
    )


def recent_in(*, round: Round, user: User, limit: int = 5) -> tuple[Annotation, ...]:
    """Return what the person answered last in the round, newest first."""
    mine = Annotation.objects.filter(annotator=user, slot__round=round, withdrawal=None).order_by("-id")
    latest: dict[int, Annotation] = {}
    for annotation in mine.select_related("slot__question", "slot__calibration_item")[: 4 * limit]:
        latest.setdefault(annotation.slot_id, annotation)
    return tuple(latest.values())[:limit]


def undoable_in(*, round: Round, user: User, recent: tuple[Annotation, ...]) -> Undoable | None:
    """Return what the person can still take back in the round: their last answer, or their last skip."""
    now = timezone.now()
    since = now - timedelta(seconds=settings.ASSAY_UNDO_SECONDS)
    answer = next((each for each in recent[:1] if each.created_at > since and not each.surplus), None)
    skip = Skip.objects.filter(user=user, round=round, created_at__gt=since).order_by("-id").first()
    if skip is not None and (answer is None or skip.created_at > answer.created_at):
        skipped = Slot.objects.exclude(purpose=Slot.Purpose.ADJUDICATION).filter(
            round=round, question=skip.question_id, calibration_item=skip.calibration_item_id, state=Slot.State.OPEN
        )
        slot_id = skipped.values_list("pk", flat=True).first()
        return None if slot_id is None else Undoable("skip", slot_id, _seconds(skip.created_at - since))
    if answer is None or Reveal.objects.filter(annotation=answer).exists():
        return None
    what = "answer" if answer.version == 1 or answer.origin == Annotation.Origin.FIRST else "revision"
    return Undoable(what, answer.slot_id, _seconds(answer.created_at - since))


def _seconds(left: timedelta) -> int:
    return max(1, round(left.total_seconds()))


def _neighbours(slot: Slot, user: User, recent: tuple[Annotation, ...]) -> tuple[int | None, int | None]:
    if slot.holder_id == user.pk and slot.state == Slot.State.LEASED:
        return (recent[0].slot_id if recent else None), None
    mine = Annotation.objects.filter(annotator=user, slot__round=slot.round_id, withdrawal=None)
    in_order = list(mine.values("slot").annotate(first=Min("pk")).order_by("first").values_list("slot", flat=True))
    held = Slot.objects.held_by(user).filter(round=slot.round_id).exclude(purpose=Slot.Purpose.ADJUDICATION)
    in_order += held.values_list("pk", flat=True)
    if slot.pk not in in_order:
        return (in_order[-1] if in_order else None), None
    at = in_order.index(slot.pk)
    return (in_order[at - 1] if at else None), (in_order[at + 1] if at + 1 < len(in_order) else None)


def figures_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return the addresses of a question's figures, http or https, as its file names them. Nothing is fetched."""
    found = []
    for key in FIGURE_KEYS:
        value = metadata.get(key)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str) and urlsplit(each.strip()).scheme in {"http", "https"}:
                found.append(each.strip())
    return found


def next_version_of(*, slot: Slot, user: User) -> int:
    """Return the number that the person's next answer to the slot's question gets."""
    return 1 + Annotation.objects.about(slot).filter(annotator=user).count()
