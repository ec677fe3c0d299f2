"""Who did what, when. Append-only."""

from django.conf import settings
from django.db import models


class AuditEvent(models.Model):
    """One thing that somebody did."""

    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    action = models.CharField(max_length=60)
    target_type = models.CharField(max_length=60)
    target_id = models.CharField(max_length=60)
    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="events", null=True)
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["target_type", "target_id"])]
