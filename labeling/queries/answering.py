"""What stands around a question while somebody answers it: how far the round is, and the person's own last answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Count, DateTimeField, Min
from django.utils import timezone

from labeling.models import Annotation, Reveal, Round, Skip, Slot, User
from labeling.prepared import Parameter, Prepared, PreparedAbout
from labeling.queries.own_answers import n_answered

N_RECENT = 5
_MINE = {"annotator": Parameter("user"), "slot__round": Parameter("round")}
_RECENT = Prepared(
    lambda: (
        Annotation.objects.standing()
        .filter(**_MINE)
        .select_related("slot__question", "slot__calibration_item")
        .only(
            *(field.name for field in Annotation._meta.concrete_fields),
            *("slot__question__text", "slot__calibration_item__text"),
        )
        .order_by("-id")[:N_RECENT]
    )
)
_STATES = Prepared(
    lambda: (
        Slot.objects.filter(round=Parameter("round"))
        .order_by()
        .values_list("purpose", "state")  # in the order of an index
        .annotate(Count("pk"))
    )
)
_SKIPS = Prepared(
    lambda: Skip.objects.filter(
        user=Parameter("user"), round=Parameter("round"), created_at__gt=Parameter("since", DateTimeField())
    ).order_by("-id")[:1]
)
_REVEALS = Prepared(lambda: Reveal.objects.filter(annotation=Parameter("annotation")).values_list("pk"))
_VERSIONS = PreparedAbout(
    lambda slot: Annotation.objects.about(slot).filter(annotator=Parameter("user")).order_by().values_list("pk")
)
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
    wanted = [
        (state, n)
        for purpose, state, n in _STATES.rows(round=round.pk)
        if purpose != Slot.Purpose.ADJUDICATION and state != Slot.State.VOID
    ]
    return {"n_answers": sum(n for _, n in wanted), "n_done": sum(n for state, n in wanted if state == Slot.State.DONE)}


def recent_in(*, round: Round, user: User) -> tuple[Annotation, ...]:
    """Return what the person answered last in the round, newest first."""
    return tuple(_RECENT.rows(user=user.pk, round=round.pk))


def undoable_in(*, round: Round, user: User, recent: tuple[Annotation, ...]) -> Undoable | None:
    """Return what the person can still take back in the round: their last answer, or their last skip."""
    now = timezone.now()
    since = now - timedelta(seconds=settings.ASSAY_UNDO_SECONDS)
    answer = next((each for each in recent[:1] if each.created_at > since and not each.surplus), None)
    skip = _SKIPS.first(user=user.pk, round=round.pk, since=since)
    if skip is not None and (answer is None or skip.created_at > answer.created_at):
        skipped = Slot.objects.exclude(purpose=Slot.Purpose.ADJUDICATION).filter(
            round=round, question=skip.question_id, calibration_item=skip.calibration_item_id, state=Slot.State.OPEN
        )
        slot_id = skipped.values_list("pk", flat=True).first()
        return None if slot_id is None else Undoable("skip", slot_id, _seconds(skip.created_at - since))
    if answer is None or _REVEALS.rows(annotation=answer.pk):
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
    return 1 + len(_VERSIONS.rows(slot, user=user.pk))
