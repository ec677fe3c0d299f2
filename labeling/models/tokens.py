"""Keys with which machines use the API."""

import hashlib
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def usable_at(self, now: datetime) -> "ApiTokenQuerySet":
        """Tokens that still open something."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)

    def with_token(self, token: str) -> "ApiTokenQuerySet":
        """The row behind a token."""
        return self.filter(token_sha256=ApiToken.hash_of(token))


class ApiToken(models.Model):
    """What a program shows instead of logging in: it may do what its owner may, within its scopes.

    The token is shown once and only its hash is kept.
    """

    class Scope(models.TextChoices):
        READ = "read", _("Read: everything that its owner sees, but no exported files")
        IMPORT = "import", _("Import: bring in questions, calibration sets, votes and picks")
        MANAGE = "manage", _("Manage: pools, models, budgets, runs, comparisons, rounds and people")
        LABEL = "label", _("Label: take questions, answer them and decide disagreements")
        EXPORT = "export", _("Export: write gold answers for a trainer and download them")
        CURRICULUM = "curriculum", _("Train: propose questions to a trainer and report its rewards")

    PREFIX = "assay_"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    pool = models.ForeignKey(
        "labeling.Pool",
        models.CASCADE,
        related_name="api_tokens",
        null=True,
        blank=True,
        help_text=_("Empty: every pool in which its owner has a role."),
    )
    scopes = models.JSONField(default=list, help_text=_("What the token opens, of what its owner may."))
    name = models.CharField(max_length=120)
    token_sha256 = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12, help_text=_("The last characters, to tell tokens apart."))
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name

    @property
    def has_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @staticmethod
    def hash_of(token: str) -> str:
        """What is kept of a token."""
        return hashlib.sha256(token.encode()).hexdigest()


class AnsweredRequest(models.Model):
    """The answer to a request that came with an ``Idempotency-Key``, so that the same again is not done again."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64, help_text=_("SHA-256 of method, address and body."))
    status = models.PositiveIntegerField(null=True, help_text=_("Empty while the request is being answered."))
    body = models.JSONField(null=True, help_text=_("Without anything that is shown only once."))
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="request_answered_once")]
