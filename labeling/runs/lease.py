"""The lease of long work, such as a selection run: who executes it, for how long, and how everybody else can tell."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from labeling.errors import LabelingError
from labeling.models import Comparison, SelectionRun
from labeling.models.work import Work, WorkQuerySet

logger = logging.getLogger(__name__)
Status = Work.Status
KINDS: Sequence[type[Work]] = (SelectionRun, Comparison)


class LeaseLost(LabelingError):
    """Another worker has the work, or it was taken away; this one must stop without writing anything."""

    code = "lease_lost"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is no longer this worker's.")


class Lease:
    """The right to execute one row of work. Every write to the row is conditional on it."""

    def __init__(self, kind: type[Work], pk: int, token: str) -> None:
        self.kind, self.pk, self.token = kind, pk, token
        self.is_lost = False

    def __str__(self) -> str:
        return f"{str(self.kind._meta.verbose_name).capitalize()} {self.pk}"

    def update(self, **fields: object) -> None:
        """Write to the row while it is still ours. Raises LeaseLost when it is not.

        Inside a transaction this is what makes the transaction's other writes conditional on the lease too.
        """
        if not self._held().update(**fields):
            self.is_lost = True
            raise LeaseLost(str(self))

    def renew(self) -> None:
        """Hold the row for another lease time."""
        self.update(lease_until=_lease_end())

    @contextmanager
    def saving(self) -> Iterator[None]:
        """A transaction whose writes count only if the lease is still held; something saved clears ``attempts``."""
        with transaction.atomic():
            self.update(lease_until=_lease_end(), attempts=0)
            yield

    def end(self, status: Work.Status, **fields: object) -> None:
        """Give the row up with a status. Raises LeaseLost when it is no longer ours."""
        if not self._held().move(status, lease_token="", lease_until=None, **fields):
            self.is_lost = True
            raise LeaseLost(str(self))

    def is_cancelled(self) -> bool:
        """Whether somebody asked for the work to be cancelled."""
        return self._rows().filter(cancel_requested=True).exists()

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Renew the lease from a thread every third of it, so that slow work in between does not lose it."""
        finished = threading.Event()
        thread = threading.Thread(target=self._beat, args=(finished,), name=f"lease-{self.pk}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            finished.set()
            thread.join()

    def _beat(self, finished: threading.Event) -> None:
        try:
            while not finished.wait(settings.ASSAY_LEASE_SECONDS / 3):
                try:
                    self.renew()
                except LeaseLost:
                    return
                except DatabaseError:  # a busy or restarting database: the lease lasts for two more tries
                    logger.warning("%s: could not renew the lease", self, exc_info=True)
                    connection.close()
        finally:
            connection.close()

    def _rows(self) -> WorkQuerySet:
        return self.kind.objects.filter(pk=self.pk)

    def _held(self) -> WorkQuerySet:
        return self._rows().filter(lease_token=self.token, status=Status.RUNNING)


def claim(pk: int, kind: type[Work] = SelectionRun) -> Lease | None:
    """Take the row if it waits for a worker; None when another has it or it no longer waits."""
    now, token = timezone.now(), secrets.token_hex(16)
    taken = (
        kind.objects.filter(pk=pk)
        .waiting_at(now)
        .move(
            Status.RUNNING,
            lease_token=token,
            lease_until=_lease_end(),
            attempts=F("attempts") + 1,
            started_at=Coalesce("started_at", now),
        )
    )
    return Lease(kind, pk, token) if taken else None


def claim_next() -> Lease | None:
    """Take what has waited longest, of any kind, if anything waits."""
    now = timezone.now()
    waiting = [
        (created_at, number, pk)
        for number, kind in enumerate(KINDS)
        for pk, created_at in kind.objects.waiting_at(now).values_list("pk", "created_at")
    ]
    for _, number, pk in sorted(waiting):
        if lease := claim(pk, KINDS[number]):
            return lease
    return None


def _lease_end():
    return timezone.now() + timedelta(seconds=settings.ASSAY_LEASE_SECONDS)
