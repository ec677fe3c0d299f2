"""Taking back a skip that was a slip of the finger."""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling.actions import claiming
from labeling.audit import record_event
from labeling.errors import Conflict
from labeling.models import Skip, Slot, User


def recent_skip(*, slot: Slot, by: User) -> Skip | None:
    """Return the person's skip of the slot's question if it can still be taken back."""
    since = timezone.now() - timedelta(seconds=settings.ASSAY_UNDO_SECONDS)
    skip: Skip | None = Skip.objects.about(slot).filter(user=by, created_at__gte=since).first()
    return skip


@transaction.atomic
def unskip_slot(*, slot: Slot, by: User) -> Slot:
    """Take back a skip right after it, and return the slot, the person's again.

    Raises Conflict skip_too_late, and skip_taken where somebody else has taken the question in the meantime.
    """
    claiming.lock_person(by)
    claiming.check_shown(slot, by)
    skip = recent_skip(slot=slot, by=by)
    if skip is None:
        raise Conflict(
            _("This was skipped more than %(n)s seconds ago; it goes to somebody else.")
            % {"n": settings.ASSAY_UNDO_SECONDS},
            code="skip_too_late",
        )
    now = timezone.now()
    for held in Slot.objects.held_by(by).filter(round=slot.round_id).exclude(purpose=Slot.Purpose.ADJUDICATION):
        claiming.release_slot(slot=held, by=by)  # the next question, taken by skipping this one
    taken = Slot.objects.filter(pk=slot.pk, state=Slot.State.OPEN).update(
        state=Slot.State.LEASED, holder=by, lease_until=claiming.lease_end(now), claimed_at=now
    )
    if not taken:
        raise Conflict(_("Somebody else has taken this question in the meantime."), code="skip_taken")
    skip.delete()
    record_event("slot.unskipped", target=slot, by=by, pool=slot.pool)
    return slot
