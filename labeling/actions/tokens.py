"""API tokens: made once and shown once, revoked at will."""

from __future__ import annotations

import secrets

from django.db import transaction
from django.utils import timezone

from labeling import policies
from labeling.audit import record_event
from labeling.errors import LabelingError
from labeling.models import ApiToken, Pool, User

TOKEN_BYTES = 32


@transaction.atomic
def create_token(*, pool: Pool, name: str, by: User, scope: str = ApiToken.Scope.CURRICULUM) -> tuple[ApiToken, str]:
    """Make a token that may do what its maker may, in one pool and scope; return its row and, this once, the token."""
    policies.check_can_manage(pool, by)
    name = name.strip()
    if not name:
        raise LabelingError("The token has no name. Say which machine or job it is for.", code="name_missing")
    token = ApiToken.PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    row = ApiToken.objects.create(
        owner=by, pool=pool, scope=scope, name=name, token_sha256=ApiToken.hash_of(token), hint=token[-4:]
    )
    record_event("token.created", target=row, by=by, pool=pool, scope=scope, name=name)
    return row, token


@transaction.atomic
def revoke_token(*, token: ApiToken, by: User) -> None:
    """Close a token for good; a second time changes nothing."""
    policies.check_can_manage(token.pool, by)
    if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        record_event("token.revoked", target=token, by=by, pool=token.pool, name=token.name)
