"""Requests that are sent again: done once, answered as before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from labeling.errors import Conflict
from labeling.models import AnsweredRequest, User

KEPT_FOR = timedelta(days=2)
MOST_SECONDS = 120  # that a request is taken to be still under way


def begin_request(*, user: User, key: str, fingerprint: str) -> tuple[AnsweredRequest, bool]:
    """Return the row under the key, and whether the request is to be done; if not, the row holds its answer.

    Raises Conflict: key_reused where the key came with another request, request_in_progress while it is being answered
    elsewhere, outcome_unknown where the server stopped before the answer was kept.
    """
    now = timezone.now()
    AnsweredRequest.objects.filter(created_at__lt=now - KEPT_FOR).delete()
    row, is_new = AnsweredRequest.objects.get_or_create(user=user, key=key, defaults={"fingerprint": fingerprint})
    if is_new:
        return row, True
    if row.fingerprint != fingerprint:
        raise Conflict(
            _(
                "This Idempotency-Key came with another request before. Use a new key for each request, and the same "
                "key only to send the same again."
            ),
            code="key_reused",
        )
    if row.status is None and now - row.created_at < timedelta(seconds=MOST_SECONDS):
        raise Conflict(_("The same request is being answered just now. Try again soon."), code="request_in_progress")
    if row.status is None:
        raise Conflict(
            _(
                "The request with this key was begun at %(created_at)s UTC and broke off before it was answered. "
                "Look whether it was done; to send it again, use a new key."
            )
            % {"created_at": f"{row.created_at:%Y-%m-%d %H:%M:%S}"},
            code="outcome_unknown",
        )
    return row, False


def keep_answer(row: AnsweredRequest, *, status: int, body: Any) -> None:
    """Keep what was answered, for whenever the same request comes again."""
    AnsweredRequest.objects.filter(pk=row.pk).update(status=status, body=body)


def forget_request(row: AnsweredRequest) -> None:
    """Free the key of a request that was refused, so that it can be put right and sent again."""
    AnsweredRequest.objects.filter(pk=row.pk).delete()
