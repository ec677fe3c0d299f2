"""What of the rounds waits for a manager: missing people, missing units, nobody answering, nothing left to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models import Annotation, BudgetUnit, Flag, GoldAnswer, Membership, Pool, Role, Round, Slot
from labeling.queries.matters import NEW_FOR, Matter, days

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
            words = ngettext(
                "%(n)s flag raised: somebody wants you to look at a question.",
                "%(n)s flags raised: somebody wants you to look at a question.",
                n,
            ) % {"n": f"{n:,}"}
            yield _of(round, "flags", "gold", _("Flagged"), words, _("Look at it"))
        if round.status == Round.Status.PAUSED:
            if round.n_open:
                words = _("It is paused; %(answers)s.") % {"answers": _answers_wait(round.n_open)}
                yield _of(round, "paused", "gold", _("Paused"), words, _("Resume or close"))
            continue
        yield from _deciding(round, people.get((pool_id, Role.ADJUDICATOR), 0))
        yield from _answering(round, people.get((pool_id, Role.ANNOTATOR), 0), now)
        if not (round.n_open or round.n_held or round.n_disputes or undecided):
            words = _("Every question is settled. Close it, then export the dataset.")
            yield _of(round, "settled", "gold", _("Done"), words, _("Close it"))


def _of(round: Round, kind: str, tone: str, chip: str, words: str, action: str, page: str = "round") -> Matter:
    address = (page, round.pk if page == "round" else round.run.pool.slug)
    return Matter(kind, tone, str(round), chip, round.run.pool, words, address, action)


def _money(round: Any, free: int, granted: int, *, undecided: int) -> Iterator[Matter]:
    if undecided and not free:
        words = ngettext(
            "%(n)s disagreement waits for an adjudicator, and %(budget)s has no unit left to pay one.",
            "%(n)s disagreements wait for an adjudicator, and %(budget)s has no unit left to pay one.",
            undecided,
        ) % {"n": f"{undecided:,}", "budget": round.budget}
        yield _of(round, "no_unit", "danger", _("Budget spent"), words, _("Add units"), "budget-new")
    elif granted and free <= NEARLY_SPENT * granted and round.overlap > 1 and (round.n_open or round.n_held):
        if free:
            words = ngettext(
                "%(budget)s: %(n)s unit of %(of)s is left; disagreements will need some.",
                "%(budget)s: %(n)s units of %(of)s are left; disagreements will need some.",
                free,
            ) % {"budget": round.budget, "n": f"{free:,}", "of": f"{granted:,}"}
        else:
            words = _("%(budget)s: nothing is left; disagreements will need some.") % {"budget": round.budget}
        yield _of(round, "nearly_spent", "gold", _("Nearly spent"), words, _("Add units"), "budget-new")


def _deciding(round: Any, n_adjudicators: int) -> Iterator[Matter]:
    if round.n_disputes and not n_adjudicators:
        words = ngettext(
            "%(n)s disagreement waits, and the pool has no adjudicator.",
            "%(n)s disagreements wait, and the pool has no adjudicator.",
            round.n_disputes,
        ) % {"n": f"{round.n_disputes:,}"}
        yield _of(round, "no_adjudicator", "danger", _("Disagreements"), words, _("Invite one"), "pool-people")
    elif round.n_disputes:
        words = ngettext(
            "%(n)s disagreement waits for an adjudicator.",
            "%(n)s disagreements wait for an adjudicator.",
            round.n_disputes,
        ) % {"n": f"{round.n_disputes:,}"}
        yield _of(round, "disputes", "gold", _("Disagreements"), words, _("See which"))


def _answering(round: Any, n_annotators: int, now: datetime) -> Iterator[Matter]:
    idle = now - (round.last_claim or round.created_at)
    if round.n_open and n_annotators < round.overlap:
        words = ngettext(
            "Each question wants %(n)s annotator; the pool has %(has)s.",
            "Each question wants %(n)s annotators; the pool has %(has)s.",
            round.overlap,
        ) % {"n": f"{round.overlap:,}", "has": n_annotators}
        yield _of(round, "no_annotator", "danger", _("Nobody to answer"), words, _("Invite people"), "pool-people")
    elif round.n_open and not round.n_held and idle > STUCK_AFTER:
        words = _("Nobody has taken a question for %(time)s; %(answers)s.") % {
            "time": days(idle),
            "answers": _answers_wait(round.n_open),
        }
        yield _of(round, "stuck", "danger", _("Stuck"), words, _("See who is missing"))
    elif round.n_lapsed:
        words = ngettext(
            "%(n)s question taken and not answered in time; anybody may take them again.",
            "%(n)s questions taken and not answered in time; anybody may take them again.",
            round.n_lapsed,
        ) % {"n": f"{round.n_lapsed:,}"}
        yield _of(round, "lapsed", "gold", _("Time ran out"), words, _("See whose"))


def _answers_wait(n: int) -> str:
    return ngettext("%(n)s answer waits", "%(n)s answers wait", n) % {"n": f"{n:,}"}


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
