"""Who may do what: users, their roles per pool, and invitations to join."""

import hashlib
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q, UniqueConstraint
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    """A person or a machine with an account."""


class Role(models.TextChoices):
    """What a person is in a pool; one person may be several."""

    MANAGER = "manager", _("Manager")
    ANNOTATOR = "annotator", _("Annotator")
    ADJUDICATOR = "adjudicator", _("Adjudicator")


class MembershipQuerySet(models.QuerySet["Membership"]):
    def of(self, user: Any, *roles: Role) -> "MembershipQuerySet":
        """The user's memberships, in the given roles or in any."""
        mine = self.filter(user=user)
        return mine.filter(role__in=roles) if roles else mine


class Membership(models.Model):
    """A person's role in a pool."""

    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [UniqueConstraint(fields=["pool", "user", "role"], name="membership_one_per_role")]

    def __str__(self) -> str:
        return gettext("%(user)s is %(role)s of %(pool)s") % {"user": self.user, "role": self.role, "pool": self.pool}


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def with_token(self, token: str) -> "InvitationQuerySet":
        """The invitation behind a link."""
        return self.filter(token_sha256=Invitation.hash_of(token))

    def open_at(self, now: datetime) -> "InvitationQuerySet":
        """Invitations that can still be accepted."""
        return self.filter(accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now)


class Invitation(models.Model):
    """A link that lets one person join a pool. The token is shown once and only its hash is kept."""

    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=20, choices=Role.choices)
    token_sha256 = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="invitation_accepted_by_and_at_go_together",
                condition=Q(accepted_by__isnull=True, accepted_at__isnull=True)
                | Q(accepted_by__isnull=False, accepted_at__isnull=False),
            )
        ]

    @staticmethod
    def hash_of(token: str) -> str:
        """What is kept of a token."""
        return hashlib.sha256(token.encode()).hexdigest()
