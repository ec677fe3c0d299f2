"""What of the rounds waits for a manager: missing people, missing units, nobody answering, nothing left to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef, Q
from django.utils import timezone

from labeling.models import Annotation, BudgetUnit, Flag, GoldAnswer, Membership, Pool, Role, Round, Slot
from labeling.queries.matters import NEW_FOR, Matter, count, days, waiting

STUCK_AFTER = timedelta(hours=24)  # without anybody taking a question
LAPSED_FOR = timedelta(hours=1)
NEARLY_SPENT = 0.1


def round_matters(pools: list[Pool]) -> Iterator[Matter]:
    """Rounds that stand still, or wait for somebody whom only a manager can bring. A constant number of queries."""
    now = timezone.now()
    is_label = ~Q(slots__purpose=Slot.Purpose.ADJUDICATION)
    is_free = Q(slots__state=Slot.State.OPEN) | Q(slots__state=Slot.State.LEASED, slots__lease_until__lte=now)
    rounds = list(
        Round.objects.filter(run__pool__in=pools)
        .exclude(status=Round.Status.CLOSED)
        .select_related("run__pool", "budget")
        .order_by("-created_at", "-id")
        .annotate(
            n_open=Count("slots", filter=is_label & is_free),
            n_held=Count("slots", filter=Q(slots__state=Slot.State.LEASED, slots__lease_until__gt=now)),
            n_disputes=Count("slots", filter=~is_label & is_free),
            n_lapsed=Count("slots", filter=Q(slots__state=Slot.State.LEASED, slots__lease_until__lte=now - LAPSED_FOR)),
            last_claim=Max("slots__claimed_at"),
        )
    )
    people = _people(pools)
    units = _units(rounds)
    disagreements = _disagreements_without_unit(rounds)
    flags = _flags(rounds)
    for round in rounds:
        pool_id, undecided = round.run.pool_id, disagreements.get(round.pk, 0)
        yield from _money(round, *units[round.pk], undecided=undecided)
        if n := flags.get(round.pk, 0):
            words = f"{count(n, 'flag')} raised: somebody wants you to look at a question."
            yield _of(round, "flags", "gold", "Flagged", words, "Look at it")
        if round.status == Round.Status.PAUSED:
            if round.n_open:
                words = f"It is paused; {waiting(round.n_open, 'answer')}."
                yield _of(round, "paused", "gold", "Paused", words, "Resume or close")
            continue
        yield from _deciding(round, people.get((pool_id, Role.ADJUDICATOR), 0))
        yield from _answering(round, people.get((pool_id, Role.ANNOTATOR), 0), now)
        if not (round.n_open or round.n_held or round.n_disputes or undecided):
            words = "Every question is settled. Close it, then export the dataset."
            yield _of(round, "settled", "gold", "Done", words, "Close it")


def _of(round: Round, kind: str, tone: str, chip: str, words: str, action: str, page: str = "round") -> Matter:
    address = (page, round.pk if page == "round" else round.run.pool.slug)
    return Matter(kind, tone, str(round), chip, round.run.pool, words, address, action)


def _money(round: Any, free: int, granted: int, *, undecided: int) -> Iterator[Matter]:
    if undecided and not free:
        words = (
            f"{waiting(undecided, 'disagreement')} for an adjudicator, and {round.budget} has no unit left to pay one."
        )
        yield _of(round, "no_unit", "danger", "Budget spent", words, "Add units", "budget-new")
    elif granted and free <= NEARLY_SPENT * granted and round.overlap > 1 and (round.n_open or round.n_held):
        left = "nothing is" if not free else f"{count(free, 'unit')} of {granted:,} {'is' if free == 1 else 'are'}"
        words = f"{round.budget}: {left} left; disagreements will need some."
        yield _of(round, "nearly_spent", "gold", "Nearly spent", words, "Add units", "budget-new")


def _deciding(round: Any, n_adjudicators: int) -> Iterator[Matter]:
    if round.n_disputes and not n_adjudicators:
        words = f"{waiting(round.n_disputes, 'disagreement')}, and the pool has no adjudicator."
        yield _of(round, "no_adjudicator", "danger", "Disagreements", words, "Invite one", "pool-people")
    elif round.n_disputes:
        words = f"{waiting(round.n_disputes, 'disagreement')} for an adjudicator."
        yield _of(round, "disputes", "gold", "Disagreements", words, "See which")


def _answering(round: Any, n_annotators: int, now: datetime) -> Iterator[Matter]:
    idle = now - (round.last_claim or round.created_at)
    if round.n_open and n_annotators < round.overlap:
        words = f"Each question wants {count(round.overlap, 'annotator')}; the pool has {n_annotators}."
        yield _of(round, "no_annotator", "danger", "Nobody to answer", words, "Invite people", "pool-people")
    elif round.n_open and not round.n_held and idle > STUCK_AFTER:
        words = f"Nobody has taken a question for {days(idle)}; {waiting(round.n_open, 'answer')}."
        yield _of(round, "stuck", "danger", "Stuck", words, "See who is missing")
    elif round.n_lapsed:
        words = f"{count(round.n_lapsed, 'question')} taken and not answered in time; anybody may take them again."
        yield _of(round, "lapsed", "gold", "Time ran out", words, "See whose")


def _disagreements_without_unit(rounds: Iterable[Round]) -> dict[int, int]:
    """How many questions of each round have all their answers, no gold answer, and nobody to decide."""
    slots = Slot.objects.filter(round__in=rounds, round__overlap__gt=1, purpose=Slot.Purpose.LABEL)
    same = {"round": OuterRef("round"), "question": OuterRef("question")}
    decided = Slot.objects.filter(**same, purpose=Slot.Purpose.ADJUDICATION).exclude(state=Slot.State.VOID)
    answers = Annotation.objects.counting().filter(
        ~Q(answer=""), slot__round=OuterRef("round"), slot__question=OuterRef("question")
    )
    complete = (
        slots.filter(
            ~Exists(GoldAnswer.objects.filter(question=OuterRef("question"))), ~Exists(decided), Exists(answers)
        )
        .order_by()
        .values("round", "question")
        .annotate(n=Count("pk", filter=Q(state=Slot.State.DONE)))
        .filter(n__gte=F("round__overlap"))
        .values_list("round", flat=True)
    )
    found: dict[int, int] = {}
    for round_id in complete:
        found[round_id] = found.get(round_id, 0) + 1
    return found


def _units(rounds: Iterable[Round]) -> dict[int, tuple[int, int]]:
    """Units that each round may still take, those it holds back included, and units granted, by round."""
    budgets = {round.budget_id for round in rounds}
    counted = BudgetUnit.objects.filter(budget__in=budgets).order_by()
    granted = dict(counted.values_list("budget").annotate(Count("pk")))
    untaken = {
        (budget, held_for): n
        for budget, held_for, n in counted.untaken().values_list("budget", "held_for").annotate(Count("pk"))
    }
    return {
        round.pk: (
            untaken.get((round.budget_id, None), 0) + untaken.get((round.budget_id, round.pk), 0),
            granted.get(round.budget_id, 0),
        )
        for round in rounds
    }


def _flags(rounds: Iterable[Round]) -> dict[int, int]:
    """How many flags people raised in each round of late."""
    recent = Flag.objects.filter(slot__round__in=rounds, created_at__gt=timezone.now() - NEW_FOR)
    return dict(recent.order_by().values_list("slot__round").annotate(Count("pk")))


def _people(pools: list[Pool]) -> dict[tuple[int, str], int]:
    members = Membership.objects.filter(pool__in=pools, user__is_active=True).order_by()
    return {(pool, role): n for pool, role, n in members.values_list("pool", "role").annotate(Count("user"))}
