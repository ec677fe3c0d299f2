"""The record of who did what."""

from typing import Any

from django.db.models import Model

from labeling.models import AuditEvent, Budget, Pool, User
from labeling.prepared import PreparedInsert

_EVENTS = PreparedInsert(AuditEvent)


def record_event(
    action: str,
    *,
    target: Model,
    by: User | None,
    pool: Pool | None = None,
    budget: Budget | int | None = None,
    **details: Any,
) -> AuditEvent:
    """Write down one thing that somebody did; ``by`` is None for the machine itself.

    ``budget``: whose units it moved; its page lists the event.
    """
    event = AuditEvent(
        actor=by,
        action=action,
        target_type=target._meta.label_lower,
        target_id=str(target.pk),
        pool=pool,
        budget_id=budget.pk if isinstance(budget, Budget) else budget,
        details=details,
    )
    _EVENTS.add(event)
    return event
