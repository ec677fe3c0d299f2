"""Pools and their budgets, for lists and overviews."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from labeling.models import (
    AuditEvent,
    Budget,
    BudgetUnit,
    GoldAnswer,
    Guideline,
    Membership,
    Pool,
    Question,
    Role,
    Round,
    SelectionRun,
    Slot,
    User,
)


@dataclass(frozen=True)
class PoolRow:
    """A pool in a list, as one person sees it."""

    pool: Pool
    roles: frozenset[Role]
    n_questions: int
    n_labeled: int
    n_live_rounds: int


@dataclass(frozen=True)
class BudgetRow:
    """Where the units of a budget are: ``granted`` = ``spent`` + ``reserved`` + ``held`` + ``free``."""

    budget: Budget
    granted: int
    spent: int  # slots done
    reserved: int  # slots open or held
    held: int  # held back by open rounds for disagreements, not taken yet
    free: int
    refunded: int  # times that a unit came back from an answer that was never given


def pools_for(*, user: User) -> list[PoolRow]:
    """Return the pools the user has a role in, by name."""
    pools = list(Pool.objects.visible_to(user).order_by("name"))
    roles: dict[int, set[Role]] = {}
    for pool_id, role in Membership.objects.of(user).values_list("pool_id", "role"):
        roles.setdefault(pool_id, set()).add(Role(role))
    questions = _count_by(Question.objects.filter(pool__in=pools), "pool")
    labeled = _count_by(GoldAnswer.objects.filter(question__pool__in=pools), "question__pool")
    live = _count_by(Round.objects.filter(run__pool__in=pools, status=Round.Status.LIVE), "run__pool")
    return [
        PoolRow(
            pool=pool,
            roles=frozenset(roles.get(pool.pk, ())),
            n_questions=questions.get(pool.pk, 0),
            n_labeled=labeled.get(pool.pk, 0),
            n_live_rounds=live.get(pool.pk, 0),
        )
        for pool in pools
    ]


def _count_by(rows: QuerySet, field: str) -> dict[int, int]:
    return dict(rows.order_by().values_list(field).annotate(n=Count("pk")))


@dataclass(frozen=True)
class PoolCounts:
    """How far a pool is."""

    n_questions: int
    n_labeled: int
    n_runs: int
    n_rounds: int
    n_members: int


def pool_counts(*, pool: Pool) -> PoolCounts:
    """Return how much of everything there is in the pool."""
    return PoolCounts(
        n_questions=Question.objects.in_pool(pool).count(),
        n_labeled=GoldAnswer.objects.filter(question__pool=pool).count(),
        n_runs=SelectionRun.objects.filter(pool=pool).count(),
        n_rounds=Round.objects.in_pool(pool).count(),
        n_members=Membership.objects.filter(pool=pool).values("user").distinct().count(),
    )


def budgets_of(*, pool: Pool) -> list[BudgetRow]:
    """Return the budgets that pay for the pool's labels, newest first; what checks take is told by their round."""
    return _budget_rows(Budget.objects.for_labels().filter(pool=pool).order_by("-created_at", "-id"))


def budget_row(*, budget: Budget) -> BudgetRow:
    """Return where the units of one budget are."""
    return _budget_rows(Budget.objects.filter(pk=budget.pk))[0]


def _budget_rows(budgets: QuerySet[Budget]) -> list[BudgetRow]:
    def count(rows: QuerySet[Any]) -> Coalesce:
        counted = rows.order_by().values("budget").annotate(n=Count("pk")).values("n")
        return Coalesce(Subquery(counted, output_field=IntegerField()), 0)

    units = BudgetUnit.objects.filter(budget=OuterRef("pk"))
    slots = Slot.objects.filter(unit__budget=OuterRef("pk")).annotate(budget=F("unit__budget"))
    counted = budgets.annotate(
        granted=count(units),
        spent=count(slots.filter(state=Slot.State.DONE)),
        reserved=count(slots.filter(state__in=[Slot.State.OPEN, Slot.State.LEASED])),
        held=count(units.untaken().exclude(held_for=None)),
        refunded=count(slots.filter(state=Slot.State.VOID)),
    )
    return [
        BudgetRow(
            budget=budget,
            granted=budget.granted,
            spent=budget.spent,
            reserved=budget.reserved,
            held=budget.held,
            free=budget.granted - budget.spent - budget.reserved - budget.held,
            refunded=budget.refunded,
        )
        for budget in counted
    ]


def current_guideline(*, pool: Pool) -> Guideline | None:
    """Return the newest version of the guideline."""
    return Guideline.objects.filter(pool=pool).order_by("-version").first()


def guideline_versions(*, pool: Pool) -> QuerySet[Guideline]:
    """Return every version, newest first."""
    return Guideline.objects.filter(pool=pool).select_related("created_by").order_by("-version")


def recent_events(*, pool: Pool, limit: int = 50) -> QuerySet[AuditEvent]:
    """Return what was done in the pool, newest first."""
    return AuditEvent.objects.filter(pool=pool).select_related("actor").order_by("-id")[:limit]
