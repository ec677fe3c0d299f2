"""The lease of a selection run: who executes it, for how long, and how everybody else can tell."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from labeling.errors import LabelingError
from labeling.models import SelectionRun

logger = logging.getLogger(__name__)
Status = SelectionRun.Status


class LeaseLost(LabelingError):
    """Another worker has the run, or the run was taken away; this one must stop without writing anything."""

    code = "lease_lost"

    def __init__(self, run_id: int) -> None:
        super().__init__(f"Run {run_id} is no longer this worker's.")


class Lease:
    """The right to execute one run. Every write to the run is conditional on it."""

    def __init__(self, run_id: int, token: str) -> None:
        self.run_id, self.token = run_id, token
        self.is_lost = False

    def update(self, **fields: object) -> None:
        """Write to the run's row while it is still ours. Raises LeaseLost when it is not.

        Inside a transaction this is what makes the transaction's other writes conditional on the lease too.
        """
        if not self._held().update(**fields):
            self.is_lost = True
            raise LeaseLost(self.run_id)

    def renew(self) -> None:
        """Hold the run for another lease time."""
        self.update(lease_until=_lease_end())

    @contextmanager
    def saving(self) -> Iterator[None]:
        """A transaction whose writes count only if the lease is still held; something saved clears ``attempts``."""
        with transaction.atomic():
            self.update(lease_until=_lease_end(), attempts=0)
            yield

    def end(self, status: SelectionRun.Status, **fields: object) -> None:
        """Give the run up with a status. Raises LeaseLost when it is no longer ours."""
        if not self._held().move(status, lease_token="", lease_until=None, **fields):
            self.is_lost = True
            raise LeaseLost(self.run_id)

    def is_cancelled(self) -> bool:
        """Whether somebody asked for the run to be cancelled."""
        return SelectionRun.objects.filter(pk=self.run_id, cancel_requested=True).exists()

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Renew the lease from a thread every third of it, so that slow work in between does not lose it."""
        finished = threading.Event()
        thread = threading.Thread(target=self._beat, args=(finished,), name=f"lease-{self.run_id}", daemon=True)
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
                    logger.warning("Could not renew the lease of run %s", self.run_id, exc_info=True)
                    connection.close()
        finally:
            connection.close()

    def _held(self):
        return SelectionRun.objects.filter(pk=self.run_id, lease_token=self.token, status=Status.RUNNING)


def claim(run_id: int) -> Lease | None:
    """Take the run if it waits for a worker; None when another has it or it no longer waits."""
    now, token = timezone.now(), secrets.token_hex(16)
    taken = (
        SelectionRun.objects.filter(pk=run_id)
        .waiting_at(now)
        .move(
            Status.RUNNING,
            lease_token=token,
            lease_until=_lease_end(),
            attempts=F("attempts") + 1,
            started_at=Coalesce("started_at", now),
        )
    )
    return Lease(run_id, token) if taken else None


def claim_next() -> Lease | None:
    """Take the run that has waited longest, if any waits."""
    waiting = SelectionRun.objects.waiting_at(timezone.now()).order_by("created_at", "id")
    for run_id in waiting.values_list("pk", flat=True):
        if lease := claim(run_id):
            return lease
    return None


def _lease_end():
    return timezone.now() + timedelta(seconds=settings.ASSAY_LEASE_SECONDS)
