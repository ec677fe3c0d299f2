"""API tokens: made once and shown once, revoked at will."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling import policies
from labeling.audit import record_event
from labeling.errors import LabelingError, NotAllowed
from labeling.models import ApiToken, Pool, User

TOKEN_BYTES = 32
MOST_DAYS = 3650


@transaction.atomic
def create_token(
    *,
    name: str,
    by: User,
    pool: Pool | None = None,
    scopes: Sequence[str] = (ApiToken.Scope.CURRICULUM,),
    expires_in: timedelta | None = None,
) -> tuple[ApiToken, str]:
    """Make a token that may do what its maker may, in one pool or in all; return its row and, this once, the token.

    ``expires_in`` None: it opens until it is revoked. Raises LabelingError for no name, no or an unknown scope, and
    an expiry that is not between now and ten years from now; NotAllowed for a pool of others.
    """
    if pool is not None and not Pool.objects.visible_to(by).filter(pk=pool.pk).exists():
        raise NotAllowed(_("You have no role in %(pool)s, so a token of yours opens nothing there.") % {"pool": pool})
    name = name.strip()
    if not name:
        raise LabelingError(_("The token has no name. Say which machine or job it is for."), code="name_missing")
    unknown = [scope for scope in scopes if scope not in ApiToken.Scope.values]
    if unknown or not scopes:
        if unknown:
            words = _("There is no scope %(scope)s. Choose from: %(scopes)s.")
        else:
            words = _("The token has no scope. Choose from: %(scopes)s.")
        named = {"scope": repr(unknown[0]) if unknown else "", "scopes": ", ".join(ApiToken.Scope.values)}
        raise LabelingError(words % named, code="no_such_scope")
    if expires_in is not None and not timedelta(0) < expires_in <= timedelta(days=MOST_DAYS):
        raise LabelingError(
            _("A token can expire after 1 to %(most_days)s days.") % {"most_days": MOST_DAYS}, code="expiry_invalid"
        )
    token = ApiToken.PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    row = ApiToken.objects.create(
        owner=by,
        pool=pool,
        scopes=[scope for scope in ApiToken.Scope.values if scope in scopes],
        name=name,
        token_sha256=ApiToken.hash_of(token),
        hint=token[-4:],
        expires_at=None if expires_in is None else timezone.now() + expires_in,
    )
    record_event("token.created", target=row, by=by, pool=pool, scopes=row.scopes, name=name)
    return row, token


@transaction.atomic
def revoke_token(*, token: ApiToken, by: User) -> None:
    """Close a token of one's own, or of a pool that one manages, for good; a second time changes nothing."""
    if token.owner_id != by.pk:
        if token.pool is None:
            raise NotAllowed(_("Only its owner can revoke a token that opens all of their pools."))
        policies.check_can_manage(token.pool, by)
    if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        record_event("token.revoked", target=token, by=by, pool=token.pool, name=token.name)
