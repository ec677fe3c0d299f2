"""What annotators do beside answering: flag a question, and read the guideline."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _

from labeling.models.records import AppendOnly


class Flag(AppendOnly):
    """Somebody who was shown a question wants a manager to look at it. Not an answer: it counts for nothing."""

    slot = models.ForeignKey("labeling.Slot", models.PROTECT, related_name="flags")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="flags")
    note = models.TextField(help_text=_("What the manager should look at."))
    idempotency_key = models.UUIDField(default=uuid.uuid4)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-id"]
        constraints = [
            UniqueConstraint(fields=["by", "idempotency_key"], name="flag_raised_once"),
            models.CheckConstraint(name="flag_says_why", condition=~Q(note="")),
        ]


class GuidelineReading(AppendOnly):
    """A person says that they have read this version of a guideline."""

    guideline = models.ForeignKey("labeling.Guideline", models.CASCADE, related_name="readings")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="guideline_readings")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["guideline", "user"], name="guideline_read_once")]
