"""Who asks: a program with ``Authorization: Bearer assay_...`` or a person who is logged in; what a token opens."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

from labeling.models import ApiToken, User

if TYPE_CHECKING:
    from rest_framework.views import APIView

KEYWORD = "Bearer"
NOTED_EVERY = timedelta(minutes=1)  # last_used_at is not worth a write for each request


class TokenAuthentication(BaseAuthentication):
    """The token's owner, as long as the token is not revoked or expired and the owner's account is active.

    An address from which many wrong tokens came is told to wait; right tokens from there are not held up.
    """

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
            wrong_tokens = WrongTokens()
            if not wrong_tokens.allow_request(request, None):
                raise Throttled(wrong_tokens.wait())
            raise AuthenticationFailed("This token is not known, or it was revoked or has expired. Make a new one.")
        if token.last_used_at is None or now - token.last_used_at > NOTED_EVERY:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.owner, token

    def authenticate_header(self, request: Request) -> str:
        return KEYWORD


class WrongTokens(SimpleRateThrottle):
    """So many wrong tokens from one address, in each server process."""

    scope = "wrong_tokens"

    def get_rate(self) -> str:
        return str(settings.ASSAY_API_WRONG_TOKENS)

    def get_cache_key(self, request: Request, view: APIView | None) -> str:
        return f"api-wrong-tokens-{self.get_ident(request)}"


class Requests(SimpleRateThrottle):
    """So many requests of one token or person, in each server process."""

    scope = "requests"

    def get_rate(self) -> str:
        return str(settings.ASSAY_API_RATE)

    def get_cache_key(self, request: Request, view: APIView | None) -> str:
        who = f"token-{request.auth.pk}" if request.auth else f"user-{request.user.pk or self.get_ident(request)}"
        return f"api-requests-{who}"


class HasScope(BasePermission):
    """Somebody is logged in, or the token has the scope that the view names for the method."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.auth, ApiToken):
            return bool(request.user and request.user.is_authenticated)
        needed = view.scope_of(request.method) if hasattr(view, "scope_of") else ApiToken.Scope.READ
        self.message = (
            f"This address needs a token with the scope “{needed}”; this one has: {', '.join(request.auth.scopes)}."
        )
        return needed in request.auth.scopes
