"""Taking a question from the queue, keeping it, and giving it back."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import CharField, DateTimeField
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions.checks import due_check
from labeling.audit import record_event
from labeling.errors import Conflict, NotAllowed
from labeling.models import Annotation, Draft, Pool, Round, Skip, Slot, User
from labeling.prepared import Parameter, Prepared, PreparedUpdate
from labeling.queries.own_answers import own_draft
from labeling.queries.queue import loaded_slot

MOST_LOST_RACES = 1000


def claim(
    *,
    round: Round | None,
    pool: Pool | None,
    purpose: Slot.Purpose,
    user: User,
    not_in: Collection[int] = (),
) -> Slot | None:
    """Return the slot the user holds in the round, or in the rounds of the pool, else the first free one, else None.

    Either a round or a pool is given; rounds ``not_in`` which work may begin are left out. One conditional UPDATE
    decides who gets a slot: of several people who try, exactly one finds it still free. None is exact: at that moment
    there was no slot for the user.
    """
    if round is not None and pool is None:
        pool = round.pool
    elif pool is None or round is not None:
        raise TypeError("Give a round or a pool.")
    for _race in range(MOST_LOST_RACES):
        with suppress(_LostRaceError):
            pk = _claim(round, pool, purpose, user, not_in)
            return None if pk is None else loaded_slot(pk)
    raise Conflict(_("Too many people are asking at once. Try again in a moment."), code="queue_busy")


class _LostRaceError(Exception):
    """Somebody else was quicker. It ends the transaction: PostgreSQL keeps a lock on the slot that was not won, and
    whoever holds one while asking for another may wait for somebody who waits for them.
    """


@transaction.atomic
def _claim(round: Round | None, pool: Pool, purpose: Slot.Purpose, user: User, not_in: Collection[int]) -> int | None:
    lock_person(user)  # as remove_member does: a role is not taken away between the check and the claim
    policies.check_can_work(pool, user, purpose)
    now = timezone.now()
    open_rounds = {
        each.pk: each
        for each in _UNCLOSED.rows(pool=pool.pk)
        if each.pk not in not_in and (round is None or each.pk == round.pk)
    }
    if held := _held(user, open_rounds, purpose, now):
        return held
    live = [pk for pk, round in open_rounds.items() if round.status == Round.Status.LIVE]
    slot = _first_free(live, purpose, user, now)
    if slot is None:
        return None
    if purpose == Slot.Purpose.LABEL:  # a check comes in place of a question, and looks like one
        slot = due_check(open_rounds[slot.round_id], user, now) or slot
    if not _LEASED.run(slot=slot.pk, user=user.pk, now=now, until=lease_end(now)):
        raise _LostRaceError
    Draft.objects.bulk_create([Draft(round_id=slot.round_id, author=user, **slot.asked_ids)], ignore_conflicts=True)
    record_event("slot.claimed", target=slot, by=user, pool=pool, lost_by=slot.holder_id)
    return slot.pk


def held_by(user: User) -> list[Slot]:
    """Return what the person holds, in whatever round, the latest first."""
    return _HELD.rows(user=user.pk)


def _held(user: User, open_rounds: Mapping[int, Round], purpose: Slot.Purpose, now: datetime) -> int | None:
    """Return the slot that the user holds, theirs for another full period."""
    is_adjudication = purpose == Slot.Purpose.ADJUDICATION
    for held in held_by(user):
        if held.round_id not in open_rounds or held.is_adjudication != is_adjudication:
            continue
        if not Slot.objects.held_by(user).filter(pk=held.pk).update(lease_until=lease_end(now)):
            raise _LostRaceError
        return held.pk
    return None


_LEASED = PreparedUpdate(
    lambda: (
        Slot.objects.open_at(Parameter("now", DateTimeField())).filter(pk=Parameter("slot")),  # type: ignore[arg-type]
        {
            "state": Slot.State.LEASED,
            "holder": Parameter("user"),
            "lease_until": Parameter("until", DateTimeField()),
            "claimed_at": Parameter("now", DateTimeField()),
        },
    )
)
_UNCLOSED = Prepared(
    lambda: Round.objects.filter(run__pool=Parameter("pool")).exclude(status=Round.Status.CLOSED).order_by()
)
_HELD = Prepared(lambda: Slot.objects.held_by(Parameter("user")).order_by("-claimed_at"))


def _free(**state: Any) -> Prepared:
    """The first slot of a round, in the queue's order, that is free in this way and that the user may have."""
    return Prepared(
        lambda: (
            Slot.objects.filter(round=Parameter("round"), purpose=Parameter("purpose", CharField()), **state)
            .unseen_by(Parameter("user"))
            .order_by("priority", "id")
            .values_list("priority", "pk", "round", "question", "holder")[:1]
        )
    )


_OPEN = _free(state=Slot.State.OPEN)
_LAPSED = _free(state=Slot.State.LEASED, lease_until__lte=Parameter("now", DateTimeField()))


def _first_free(rounds: Iterable[int], purpose: Slot.Purpose, user: User, now: datetime) -> Slot | None:
    """Return the first slot of the rounds that the user may claim.

    Open slots and those whose time has run out are asked for apart, so that each comes out of the index in order.
    """
    asked = {"purpose": purpose.value, "user": user.pk, "now": now}
    found = [row for round in rounds for ways in (_OPEN, _LAPSED) for row in ways.rows(round=round, **asked)]
    if not found:
        return None
    priority, pk, round, question, holder = min(found, key=lambda row: row[:2])
    return Slot(pk=pk, round_id=round, question_id=question, holder_id=holder, purpose=purpose, priority=priority)


def lock_person(user: User) -> None:
    """One claim or submission at a time per person: two tabs and double clicks wait for each other.

    Where one transaction writes at a time anyway there is nothing to lock.
    """
    if connection.features.has_select_for_update:
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)


def lease_end(now: datetime) -> datetime:
    """Return until when a slot claimed or extended now stays with its holder."""
    return now + timedelta(minutes=settings.ASSAY_SLOT_MINUTES)


def check_shown(slot: Slot, user: User) -> None:
    """Refuse work on a question that was never given to the user, and by who has lost the role since."""
    policies.check_can_work(slot.pool, user, slot.purpose)
    if own_draft(slot, user) is None:
        raise NotAllowed(_("This question was not given to you. Take one from the queue."), code="slot_not_yours")


@transaction.atomic
def skip_slot(*, slot: Slot, by: User) -> None:
    """'Not me': the question goes back and is not offered to this person again. Skipping again changes nothing."""
    check_shown(slot, by)
    if Annotation.objects.standing().about(slot).filter(annotator=by).exists():
        raise Conflict(
            _("You have answered this question already; it cannot be skipped any more."), code="already_answered"
        )
    _skip, is_new = Skip.objects.get_or_create(round_id=slot.round_id, **slot.asked_ids, user=by)
    _give_back(slot, by)
    if is_new:
        record_event("slot.skipped", target=slot, by=by, pool=slot.pool)


@transaction.atomic
def release_slot(*, slot: Slot, by: User) -> None:
    """Give the question back for now; what was typed is kept for when it is claimed again."""
    check_shown(slot, by)
    if _give_back(slot, by):
        record_event("slot.released", target=slot, by=by, pool=slot.pool)


def _give_back(slot: Slot, by: User) -> bool:
    given = Slot.objects.held_by(by).filter(round_id=slot.round_id, **slot.asked_ids)
    return given.update(state=Slot.State.OPEN, holder=None, lease_until=None, claimed_at=None) > 0


def release_held(*, pool: Pool, user: User, purpose: str, by: User | None) -> None:
    """Give back what the person holds in the pool; what they typed is kept."""
    held = Slot.objects.held_by(user).filter(round__run__pool=pool, purpose=purpose)
    for slot in held.select_related("round__run__pool"):
        if _give_back(slot, user):
            record_event("slot.released", target=slot, by=by, pool=pool, held_by=user.username)


def is_same_question(slot: Slot, other: Slot) -> bool:
    """Whether two slots ask the same in the same round."""
    return (slot.round_id, slot.asked_ids) == (other.round_id, other.asked_ids)


def key_used() -> Conflict:
    """Return why a form cannot be taken whose key came with another question before."""
    return Conflict(
        _(
            "This form was sent before, for another question, so it was not recorded. What you typed is kept: open the "
            "question again and send it from there."
        ),
        code="key_used",
    )


@contextmanager
def typed_kept(slot: Slot, by: User, typed: dict[str, str]) -> Iterator[None]:
    """Where what is inside is refused with a Conflict, keep what was typed as the person's draft."""
    try:
        yield
    except Conflict:
        draft = Draft.objects.about(slot).filter(author=by)
        for kept in draft:
            draft.update(content={**kept.content, **typed}, saved_at=timezone.now())
        raise


def slot_lost(slot: Slot) -> Conflict:
    """Return why a slot is no longer its former holder's."""
    slot.refresh_from_db(fields=["state"])
    if slot.state == Slot.State.VOID:
        words = _("This question is no longer yours: the round was closed. What you typed is kept.")
    elif slot.state == Slot.State.OPEN:
        words = _("This question is no longer yours: you gave it back. What you typed is kept.")
    else:
        words = _(
            "This question is no longer yours: your time ran out and somebody else took it. What you typed is kept."
        )
    return Conflict(words, code="slot_lost")


@transaction.atomic
def extend_lease(*, slot: Slot, by: User) -> Slot:
    """Keep the slot for another full period, also after its time has run out if nobody else took it."""
    check_shown(slot, by)
    if not Slot.objects.held_by(by).filter(pk=slot.pk).update(lease_until=lease_end(timezone.now())):
        raise slot_lost(slot)
    return Slot.objects.loaded().get(pk=slot.pk)
