"""Keys with which machines use the API."""

import hashlib
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def usable_at(self, now: datetime) -> "ApiTokenQuerySet":
        """Tokens that still open something."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)

    def with_token(self, token: str) -> "ApiTokenQuerySet":
        """The row behind a token."""
        return self.filter(token_sha256=ApiToken.hash_of(token))


class ApiToken(models.Model):
    """What a program shows instead of logging in: it may do what its owner may, within one pool and its scope.

    The token is shown once and only its hash is kept.
    """

    class Scope(models.TextChoices):
        CURRICULUM = "curriculum", "Propose questions to a trainer and report rewards"

    PREFIX = "assay_"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="api_tokens")
    scope = models.CharField(max_length=40, choices=Scope.choices)
    name = models.CharField(max_length=120)
    token_sha256 = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12, help_text="The last characters, to tell tokens apart.")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def hash_of(token: str) -> str:
        """What is kept of a token."""
        return hashlib.sha256(token.encode()).hexdigest()
