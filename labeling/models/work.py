"""Long work that a worker does: what every such row carries, and how its status may change."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext_lazy as _


class WorkQuerySet(models.QuerySet):
    def move(self, to: str, **fields: object) -> int:
        """Change the status of those rows that may change to it, with other fields; return how many did.

        The only place where a status changes. One conditional update: of two workers one gets 1 and the other 0.
        """
        allowed = [status for status, targets in Work.ALLOWED_TRANSITIONS.items() if to in targets]
        return self.filter(status__in=allowed).update(status=to, **fields)

    def waiting_at(self, now) -> Self:
        """Rows that a worker may take: queued, or running under a lease that has lapsed."""
        return self.filter(Q(status=Work.Status.QUEUED) | Q(status=Work.Status.RUNNING, lease_until__lte=now))


class Work(models.Model):
    """The row carries the lease of the worker that executes it, how far it is, and how it ended."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        FINISHED = "finished", _("Finished")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    ALLOWED_TRANSITIONS = {
        Status.QUEUED: {Status.RUNNING, Status.CANCELLED, Status.FAILED},
        Status.RUNNING: {Status.FINISHED, Status.FAILED, Status.CANCELLED, Status.QUEUED, Status.RUNNING},
        Status.FAILED: {Status.QUEUED},
        Status.CANCELLED: {Status.QUEUED},
        Status.FINISHED: set(),
    }

    FINAL_ERRORS = {"invalid_config", "missing_evidence", "uneven_votes"}  # the same settings meet them again

    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    stage = models.CharField(max_length=40, blank=True)
    stages = models.JSONField(
        default=list, blank=True, help_text=_("Per stage: name, done, total, done_before, started_at, seconds.")
    )
    cancel_requested = models.BooleanField(default=False)
    lease_token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0, help_text=_("Starts since something was last saved."))
    error_code = models.CharField(max_length=60, blank=True)
    error = models.TextField(blank=True, help_text=_("For the person at the screen."))
    traceback = models.TextField(blank=True, help_text=_("For whoever mends it."))
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects: Any = WorkQuerySet.as_manager()

    class Meta:
        abstract = True
        ordering = ["-created_at", "-id"]

    @property
    def may_be_retried(self) -> bool:
        """Whether trying again can end otherwise: it was cancelled, or failed for a reason that may pass."""
        return self.status in {self.Status.FAILED, self.Status.CANCELLED} and self.error_code not in self.FINAL_ERRORS


def lease_constraints(name: str) -> list[CheckConstraint]:
    """The database's rules of a lease, for the rows of that name: held while running and no longer, and whole."""
    return [
        CheckConstraint(
            name=f"{name}_is_leased_while_running",
            condition=(Q(status="running") & ~Q(lease_token="")) | (~Q(status="running") & Q(lease_token="")),
        ),
        CheckConstraint(
            name=f"{name}_lease_token_and_time_go_together",
            condition=Q(lease_token="", lease_until__isnull=True) | (~Q(lease_token="") & Q(lease_until__isnull=False)),
        ),
    ]
