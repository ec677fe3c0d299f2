"""A budget's movements: who moved how many units, when, and what for; read from the record of events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from labeling.models import AuditEvent, Budget
from labeling.queries.pools import BudgetRow

# action: what happened, and what it did to the units
MOVES: Mapping[str, tuple[Promise, Promise]] = MappingProxyType(
    {
        "budget.granted": (_("Granted"), _("+{units} granted")),
        "budget.units_added": (_("Units added"), _("+{units} granted")),
        "round.opened": (_("Round {target} opened: {questions} × {overlap}"), _("{units} reserved, {held} held back")),
        "annotation.submitted": (_("Answer to {question}"), _("1 spent")),
        "annotation.withdrawn": (_("Answer to {question} taken back"), _("1 reserved again")),
        "answer.bought": (_("One more answer to {question} asked for"), _("1 reserved")),
        "adjudication.opened": (_("Disagreement on {question} goes to an adjudicator"), _("1 reserved")),
        "adjudication.withdrawn": (_("No disagreement on {question} any more"), _("1 given back")),
        "adjudication.decided": (_("Decision on {question}"), _("1 spent")),
        "question.refunded": (_("{question} cannot be answered: nobody else is asked"), _("{units} given back")),
        "question.replaced": (
            _("{question} cannot be answered: {replacement} is asked instead"),
            _("{units} reserved"),
        ),
        "replacement.withdrawn": (
            _("{question} can be answered after all: {replacement} is not asked"),
            _("{units} given back"),
        ),
        "round.gave_back": (_("Round {target} closed"), _("{units} given back, {held} no longer held back")),
    }
)

NOTHING_HELD = {"round.opened": _("{units} reserved"), "round.gave_back": _("{units} given back")}


@dataclass(frozen=True)
class Movement:
    """One line of a budget's page. ``who`` is "" for the machine itself; ``effect``: what became of how many units."""

    at: datetime
    who: str
    what: str
    effect: str
    round_id: int | None


@dataclass(frozen=True)
class CostOnBudget:
    """What opening a round leaves of one budget: units ``missing`` for the answers, or what it holds and leaves."""

    budget: Budget
    missing: int
    held: int
    left: int


@dataclass(frozen=True)
class RoundCost:
    """What a round of ``answers`` answers costs before it starts; ``held`` more are held back where they are there."""

    overlap: int
    answers: int
    held: int
    budgets: tuple[CostOnBudget, ...]

    @property
    def total(self) -> int:
        return self.answers + self.held


def round_cost(*, n_questions: int, overlap: int, held: int, budgets: Iterable[BudgetRow]) -> RoundCost:
    """Return the cost of a round on each of the budgets."""
    answers = n_questions * overlap
    found = []
    for row in budgets:
        left = row.free - answers
        holds = max(0, min(held, left))
        found.append(CostOnBudget(budget=row.budget, missing=max(0, -left), held=holds, left=max(0, left - holds)))
    return RoundCost(overlap=overlap, answers=answers, held=held, budgets=tuple(found))


def movements_of(*, budget: Budget) -> QuerySet[AuditEvent]:
    """Return the events that moved units of the budget, newest first."""
    return AuditEvent.objects.filter(budget=budget, action__in=MOVES).select_related("actor").order_by("-id")


def movements_in_words(events: Iterable[AuditEvent]) -> list[Movement]:
    """Say of each event what it did."""
    return [_movement(event) for event in events]


def _movement(event: AuditEvent) -> Movement:
    what, effect = MOVES[event.action]
    if not event.details.get("held"):
        effect = NOTHING_HELD.get(event.action, effect)
    values = {"target": event.target_id, **event.details}
    return Movement(
        at=event.created_at,
        who=event.actor.get_username() if event.actor else "",
        what=str(what).format_map(values),
        effect=str(effect).format_map(values),
        round_id=int(event.target_id) if event.target_type == "labeling.round" else None,
    )
