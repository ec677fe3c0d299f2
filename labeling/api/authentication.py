"""Tokens in place of logins: ``Authorization: Bearer assay_...``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from labeling.models import ApiToken, User

if TYPE_CHECKING:
    from rest_framework.views import APIView

KEYWORD = "Bearer"
NOTED_EVERY = timedelta(minutes=1)  # last_used_at is not worth a write for each request


class TokenAuthentication(BaseAuthentication):
    """The token's owner, as long as the token is not revoked or expired and the owner's account is active."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != KEYWORD.lower().encode():
            return None
        if len(words) != 2:
            raise AuthenticationFailed("The Authorization header is not “Bearer TOKEN”.")
        now = timezone.now()
        text = words[1].decode("latin-1")
        token = ApiToken.objects.usable_at(now).with_token(text).select_related("owner", "pool").first()
        if token is None or not token.owner.is_active:
            raise AuthenticationFailed("This token is not known, or it was revoked or has expired. Make a new one.")
        if token.last_used_at is None or now - token.last_used_at > NOTED_EVERY:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.owner, token

    def authenticate_header(self, request: Request) -> str:
        return KEYWORD


class HasScope(BasePermission):
    """The request's token is of the view's ``scope``."""

    message = "This token is for something else. Make one with the scope that this address needs."

    def has_permission(self, request: Request, view: APIView) -> bool:
        return isinstance(request.auth, ApiToken) and request.auth.scope == getattr(view, "scope", None)
