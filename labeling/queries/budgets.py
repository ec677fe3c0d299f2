"""A budget's movements: who moved how many units, when, and what for; read from the record of events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from django.db.models import QuerySet

from labeling.models import AuditEvent, Budget
from labeling.queries.pools import BudgetRow

# action: what happened, and what it did to the units
MOVES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "budget.granted": ("Granted", "+{units} granted"),
        "budget.units_added": ("Units added", "+{units} granted"),
        "round.opened": ("Round {target} opened: {questions} × {overlap}", "{units} reserved, {held} held back"),
        "annotation.submitted": ("Answer to {question}", "1 spent"),
        "annotation.withdrawn": ("Answer to {question} taken back", "1 reserved again"),
        "answer.bought": ("One more answer to {question} asked for", "1 reserved"),
        "adjudication.opened": ("Disagreement on {question} goes to an adjudicator", "1 reserved"),
        "adjudication.withdrawn": ("No disagreement on {question} any more", "1 given back"),
        "adjudication.decided": ("Decision on {question}", "1 spent"),
        "question.refunded": ("{question} cannot be answered: nobody else is asked", "{units} given back"),
        "question.replaced": ("{question} cannot be answered: {replacement} is asked instead", "{units} reserved"),
        "replacement.withdrawn": (
            "{question} can be answered after all: {replacement} is not asked",
            "{units} given back",
        ),
        "round.gave_back": ("Round {target} closed", "{units} given back, {held} no longer held back"),
    }
)


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
        found.append(CostOnBudget(missing=max(0, -left), held=holds, left=max(0, left - holds)))
    return RoundCost(overlap=overlap, answers=answers, held=held, budgets=tuple(found))


def movements_of(*, budget: Budget) -> QuerySet[AuditEvent]:
    """Return the events that moved units of the budget, newest first."""
    return AuditEvent.objects.filter(budget=budget, action__in=MOVES).select_related("actor").order_by("-id")


def movements_in_words(events: Iterable[AuditEvent]) -> list[Movement]:
    """Say of each event what it did."""
    return [_movement(event) for event in events]


def _movement(event: AuditEvent) -> Movement:
    what, effect = MOVES[event.action]
    values = {"target": event.target_id, **event.details}
    return Movement(
        at=event.created_at,
        who=event.actor.get_username() if event.actor else "",
        what=what.format_map(values),
        effect=effect.format_map(values).removesuffix(", 0 held back").removesuffix(", 0 no longer held back"),
        round_id=int(event.target_id) if event.target_type == "labeling.round" else None,
    )
