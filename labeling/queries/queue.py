"""What an annotator or adjudicator sees of the queue: why it is empty, their own draft, and how an answer is read."""

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Count, Min, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.engine.answers import ReadAs, policy_of, read_as
from labeling.models import Annotation, Pool, Role, Round, Slot, User
from labeling.prepared import Parameter, Prepared
from labeling.queries.check_schedule import n_checks_before
from labeling.queries.own_answers import own_draft

_LOADED = Prepared(lambda: Slot.objects.loaded().filter(pk=Parameter("slot")).order_by())


def loaded_slot(slot_id: int) -> Slot | None:
    """Return a slot with what its page shows; None if there is none of this number."""
    return _LOADED.first(slot=slot_id)


@dataclass(frozen=True)
class EmptyQueue:
    """Why there is no question for a person just now.

    ``code``: all_done, held, budget, seen, paused, no_round, no_disagreement; free when there is one after all.
    ``next_free_at``: when the first of ``n_held`` questions held by others may come free.
    """

    code: str
    message: str
    n_held: int = 0
    next_free_at: datetime | None = None


def empty_queue(
    *,
    user: User,
    round: Round | None = None,
    pool: Pool | None = None,
    purpose: str = Slot.Purpose.LABEL,
) -> EmptyQueue:
    """Return why nothing can be claimed, from all slots of the round or pool, never from a sample."""
    now = timezone.now()
    rounds = Round.objects.filter(pk=round.pk) if round is not None else Round.objects.in_pool(pool)
    rounds = rounds.exclude(status=Round.Status.CLOSED)
    unfinished = Slot.objects.filter(round__in=rounds, purpose=purpose, state__in=[Slot.State.OPEN, Slot.State.LEASED])
    live = unfinished.filter(round__status=Round.Status.LIVE)
    eligible = live.unseen_by(user)
    if eligible.open_at(now).exists():
        return EmptyQueue("free", _("A question has just come free. Take it."))
    held = eligible.aggregate(n=Count("pk"), first=Min("lease_until"))
    if held["n"]:
        return EmptyQueue(
            "held",
            ngettext(
                "%(n)s question is held by others; the next may come free at %(time)s UTC.",
                "%(n)s questions are held by others; the next may come free at %(time)s UTC.",
                held["n"],
            )
            % {"n": held["n"], "time": f"{held['first']:%H:%M}"},
            n_held=held["n"],
            next_free_at=held["first"],
        )
    if n := live.count():
        words = ngettext(
            "You have done everything you are eligible for. %(n)s answer waits for other people.",
            "You have done everything you are eligible for. %(n)s answers wait for other people.",
            n,
        )
        return EmptyQueue("seen", words % {"n": n})
    if unfinished.exists():
        return EmptyQueue("paused", _("The round is paused. A manager can resume it."))
    if not rounds.exists():
        return EmptyQueue("no_round", _("No round is open."))
    if purpose == Slot.Purpose.ADJUDICATION:
        return _no_disagreement(rounds)
    return EmptyQueue("all_done", _("All done: every question has its answers. Thank you."))


def _no_disagreement(rounds: QuerySet[Round]) -> EmptyQueue:
    from labeling.queries.rounds import round_progress

    waiting = sum(round_progress(round=round).n_waiting_for_unit for round in rounds)
    if waiting:
        words = ngettext(
            "The budget is spent: %(n)s question is waiting until a manager adds units for adjudication.",
            "The budget is spent: %(n)s questions are waiting until a manager adds units for adjudication.",
            waiting,
        )
        return EmptyQueue("budget", words % {"n": waiting})
    answers = Slot.objects.filter(round__in=rounds, purpose=Slot.Purpose.LABEL)  # checks may be left over
    if answers.filter(state__in=[Slot.State.OPEN, Slot.State.LEASED]).exists():
        return EmptyQueue("no_disagreement", _("No disagreement so far; annotators are still answering."))
    return EmptyQueue("all_done", _("All done: nothing is left to decide. Thank you."))


def slot_for(*, user: User, slot_id: int) -> Slot | None:
    """Return a slot whose question was given to the user, loaded for its page; None otherwise."""
    slot = loaded_slot(slot_id)
    return slot if slot is not None and own_draft(slot, user) is not None else None


def read_answer(*, slot: Slot, answer: str) -> ReadAs:
    """Return what a trainer's grader would make of an answer to the slot's question, and how good a blind guess is."""
    read = read_as(answer.strip(), kind=slot.asked.answer_kind, policy=policy_of(slot.pool))
    if not (n := len(slot.asked.choices)):
        return read
    others = tuple(each for each in read.warnings if not each.startswith("Guessable"))
    guessable = _("Guessable: a blind guess is right one time in %(n)s.") % {"n": n}
    return replace(read, warnings=(guessable, *others))


def recent_annotations(*, user: User, pool: Pool, limit: int = 5) -> QuerySet[Annotation]:
    """Return what the user answered last in the pool, newest first."""
    return (
        Annotation.objects.standing()
        .filter(annotator=user, slot__round__run__pool=pool)
        .select_related("slot__question", "slot__calibration_item", "slot__round")
        .order_by("-id")[:limit]
    )


@dataclass(frozen=True)
class WorkRow:
    """What one live round holds for a person."""

    round: Round
    role: Role
    n_free: int
    held: Slot | None
    n_done: int


def work_for(*, user: User) -> list[WorkRow]:
    """Return the live rounds in which the user may answer or decide, and how much is free for them."""
    now = timezone.now()
    rows = []
    for role, purpose in ((Role.ANNOTATOR, Slot.Purpose.LABEL), (Role.ADJUDICATOR, Slot.Purpose.ADJUDICATION)):
        rounds = Round.objects.filter(
            status=Round.Status.LIVE, run__pool__memberships__user=user, run__pool__memberships__role=role
        ).select_related("run__pool")
        slots = Slot.objects.filter(round__in=rounds, purpose=purpose)
        theirs = slots
        if role == Role.ANNOTATOR:  # a check looks like a question, here too
            theirs = Slot.objects.filter(round__in=rounds).exclude(purpose=Slot.Purpose.ADJUDICATION)
        free = dict(
            slots.open_at(now)
            .unseen_by(user)
            .order_by()
            .values_list("round")
            .annotate(n=Count("question", distinct=True))
        )
        done = dict(
            theirs.filter(holder=user, state=Slot.State.DONE).order_by().values_list("round").annotate(n=Count("pk"))
        )
        held = {slot.round_id: slot for slot in theirs.held_by(user).select_related("question", "calibration_item")}
        rows += [
            WorkRow(
                round=round,
                role=role,
                n_free=free.get(round.pk, 0) + _checks_among(round, role, user, free.get(round.pk, 0), now),
                held=held.get(round.pk),
                n_done=done.get(round.pk, 0),
            )
            for round in rounds.order_by("created_at", "id")
        ]
    return rows


def _checks_among(round: Round, role: Role, user: User, n_questions: int, now: datetime) -> int:
    if role != Role.ANNOTATOR:
        return 0
    return n_checks_before(round=round, user=user, n_questions=n_questions, now=now)
