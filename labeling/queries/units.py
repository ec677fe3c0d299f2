"""Units of a round's budget that it may take for more work."""

from labeling.models import BudgetUnit, Round
from labeling.models.rounds import MOST_OVERLAP
from labeling.prepared import Parameter, Prepared

_UNTAKEN = {"budget": Parameter("budget")}
_HELD = Prepared(
    lambda: (
        BudgetUnit.objects.untaken().filter(held_for=Parameter("round"), **_UNTAKEN).order_by("number")[:MOST_OVERLAP]
    )
)
_FREE = Prepared(
    lambda: BudgetUnit.objects.untaken().filter(held_for=None, **_UNTAKEN).order_by("number")[:MOST_OVERLAP]
)


def usable_units(round: Round, n: int = 1, *, held_first: bool) -> list[BudgetUnit]:
    """Return up to ``n`` of the units that the round may take, those it holds back before the free ones or after them.

    Asked of the two kinds apart, so that an index gives each in order. ``n`` is at most what one question may get.
    """
    found: list[BudgetUnit] = []
    for kind in (_HELD, _FREE) if held_first else (_FREE, _HELD):
        if len(found) < n:
            found += kind.rows(budget=round.budget_id, round=round.pk)[: n - len(found)]
    return found
