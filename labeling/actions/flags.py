"""Telling a manager that something about a question is odd."""

from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from labeling.actions.answers import check_note
from labeling.actions.claiming import check_shown
from labeling.audit import record_event
from labeling.errors import LabelingError
from labeling.models import Flag, Slot, User


@transaction.atomic
def flag_question(*, slot: Slot, note: str, idempotency_key: UUID, by: User) -> Flag:
    """Record a flag of somebody who was shown the question; the same key again changes nothing.

    Raises LabelingError flag_empty and note_too_long.
    """
    check_shown(slot, by)
    note = check_note(note)
    if not note:
        raise LabelingError(_("Say what the manager should look at."), code="flag_empty")
    flag, is_new = Flag.objects.get_or_create(
        by=by, idempotency_key=idempotency_key, defaults={"slot": slot, "note": note}
    )
    if is_new:
        record_event("slot.flagged", target=slot, by=by, pool=slot.pool, flag=flag.pk)
    return flag
