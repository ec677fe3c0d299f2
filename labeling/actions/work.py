"""Cancelling long work, and trying it again: the same for everything a worker does."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from labeling.errors import Conflict
from labeling.models.work import Work

Status = Work.Status


def cancel(work: Work) -> bool:
    """Stop the work after the chunk in flight, or at once where no worker has it; False where it was cancelled before.

    Raises Conflict for work that has ended otherwise.
    """
    rows = type(work).objects.filter(pk=work.pk)
    now = timezone.now()
    idle = rows.waiting_at(now).move(
        Status.CANCELLED, cancel_requested=True, lease_token="", lease_until=None, finished_at=now
    )
    is_asked = idle or rows.filter(status=Status.RUNNING).update(cancel_requested=True)
    work.refresh_from_db()
    if not is_asked and work.status != Status.CANCELLED:
        raise Conflict(
            _("The %(name)s is %(status)s; there is nothing to cancel.")
            % {"name": _name(work), "status": work.get_status_display().lower()}
        )
    return bool(is_asked)


def retry(work: Work, **fields: Any) -> None:
    """Queue failed or cancelled work again, with other fields changed. Raises Conflict for any other.

    What failed for a reason that trying again cannot change is refused too.
    """
    if work.status == Status.FAILED and not work.may_be_retried:
        name = _name(work)
        raise Conflict(
            _("The %(name)s would fail the same way again: %(error)s Start a new %(name)s instead.")
            % {"name": name, "error": work.error}
        )
    moved = (
        type(work)
        .objects.filter(pk=work.pk, status__in=[Status.FAILED, Status.CANCELLED])
        .move(
            Status.QUEUED,
            cancel_requested=False,
            attempts=0,
            error_code="",
            error="",
            traceback="",
            finished_at=None,
            **fields,
        )
    )
    work.refresh_from_db()
    if not moved:
        name, status = _name(work), work.get_status_display().lower()
        raise Conflict(
            _("The %(name)s is %(status)s; only a failed or cancelled %(name)s can be retried.")
            % {"name": name, "status": status}
        )


def _name(work: Work) -> str:
    name = str(work._meta.verbose_name).split()[-1]  # a selection run is a run to people
    return {"run": _("run"), "comparison": _("comparison")}.get(name, name)
