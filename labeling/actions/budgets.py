"""Budgets: how many human answers may be bought."""

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions.settling import settle_waiting
from labeling.audit import record_event
from labeling.errors import Conflict, LabelingError
from labeling.models import Budget, BudgetUnit, Pool, User

MOST_UNITS = 100_000


@transaction.atomic
def grant_budget(*, pool: Pool, name: str, units: int, by: User | None) -> Budget:
    """Create a budget of so many units, each one human answer."""
    policies.check_can_manage(pool, by)
    name = " ".join(name.split())
    if not name:
        raise LabelingError(_("A budget needs a name."), code="budget_name_missing")
    check_units(units)
    Pool.objects.select_for_update(no_key=True).get(pk=pool.pk)
    if there := Budget.objects.filter(pool=pool, name=name).first():
        raise Conflict(
            _("%(pool)s has a budget %(name)s of %(n)s units. Add units to it or choose another name.")
            % {"pool": pool, "name": name, "n": there.units.count()},
            code="budget_exists",
        )
    budget = Budget.objects.create(pool=pool, name=name, created_by=by)
    _create_units(budget, first=1, units=units)
    record_event("budget.granted", target=budget, by=by, pool=pool, budget=budget, units=units)
    return budget


def add_units(*, budget: Budget, units: int, by: User | None, granted_before: int | None = None) -> Budget:
    """Add units, and open the adjudications that were waiting for one.

    ``granted_before``: the size the caller saw; Conflict if it has changed, so that a form sent twice adds once.
    """
    policies.check_can_manage(budget.pool, by)
    if budget.purpose != Budget.Purpose.LABELS:
        raise Conflict(
            _("%(budget)s has exactly the units of its round's checks, and pays for nothing else.")
            % {"budget": budget},
            code="budget_for_checks",
        )
    check_units(units)
    with transaction.atomic():
        Budget.objects.select_for_update(no_key=True).get(pk=budget.pk)
        last = budget.units.aggregate(last=Max("number"))["last"] or 0
        if granted_before is not None and granted_before != last:
            raise Conflict(
                _("%(budget)s has %(last)s units now, not %(granted_before)s. Look again before you add more.")
                % {"budget": budget, "last": last, "granted_before": granted_before},
                code="budget_changed",
            )
        _create_units(budget, first=last + 1, units=units)
        record_event(
            "budget.units_added",
            target=budget,
            by=by,
            pool=budget.pool,
            budget=budget,
            units=units,
            total=last + units,
        )
    settle_waiting(budget=budget)
    return budget


def check_units(units: int) -> None:
    """Refuse a number of units that cannot be meant."""
    if not 1 <= units <= MOST_UNITS:
        raise LabelingError(
            _("Found %(units)s units; a budget takes between 1 and %(most_units)s.")
            % {"units": units, "most_units": f"{MOST_UNITS:,}"},
            code="units_invalid",
        )


def _create_units(budget: Budget, *, first: int, units: int) -> None:
    BudgetUnit.objects.bulk_create(
        (BudgetUnit(budget=budget, number=number) for number in range(first, first + units)), batch_size=1000
    )
