"""What leaves: a frozen snapshot of gold answers, and the files made of it."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class DatasetSnapshot(models.Model):
    """The gold answers of a pool at one moment, frozen."""

    pool = models.ForeignKey("labeling.Pool", models.PROTECT, related_name="snapshots")
    rows = models.JSONField(help_text=_("Canonical rows, sorted by uid."))
    n_rows = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    grader_version = models.CharField(max_length=60)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [models.UniqueConstraint(fields=["pool", "sha256"], name="snapshot_content_once")]


class Export(models.Model):
    """A snapshot written for one trainer."""

    class Format(models.TextChoices):
        TRL = "trl", "TRL"
        VERL = "verl", "verl"
        JSONL = "jsonl", "JSONL"

    snapshot = models.ForeignKey(DatasetSnapshot, models.PROTECT, related_name="exports")
    format = models.CharField(max_length=20, choices=Format.choices)
    directory = models.CharField(max_length=500)
    files = models.JSONField(help_text=_("Name, bytes and SHA-256 of each file."))
    filter = models.JSONField(default=dict, blank=True, help_text=_("What was left out for its variance, and why."))
    sha256 = models.CharField(max_length=64, help_text=_("Of the manifest."))
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]

    @property
    def n_rows(self) -> int:
        """Questions of the snapshot that its filter kept."""
        return self.snapshot.n_rows - len(self.filter.get("left_out", ()))
