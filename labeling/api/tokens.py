"""Tokens: listing and revoking them. Making one takes a person who is logged in, never another token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions.tokens import MOST_DAYS, create_token, revoke_token
from labeling.api.access import bound_to
from labeling.api.endpoint import Endpoint
from labeling.api.schema import operation
from labeling.errors import NotAllowed
from labeling.models import ApiToken, Pool
from labeling.queries.tokens import tokens_for


class NewTokenSerializer(Serializer):
    name = serializers.CharField(max_length=120, help_text="The machine or job that will use it.")
    scopes = serializers.MultipleChoiceField(choices=ApiToken.Scope.choices, allow_empty=False)
    pool = serializers.SlugField(required=False, default="", allow_blank=True, help_text="Empty: all pools of yours.")
    days = serializers.IntegerField(
        min_value=1, max_value=MOST_DAYS, required=False, allow_null=True, default=90, help_text="Null: no expiry."
    )


class TokenSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    hint = serializers.CharField(help_text="Its last characters.")
    owner = serializers.CharField(source="owner.username")
    pool = serializers.CharField(source="pool.slug", default=None, allow_null=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(ApiToken.Scope.choices))
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewTokenTextSerializer(TokenSerializer):
    token = serializers.CharField(allow_null=True, help_text="Shown this once; null where the request is sent again.")


class Tokens(Endpoint):
    tag = "tokens"
    shown_once = ["token"]

    @operation(pages=TokenSerializer)
    def get(self, request: Request) -> Response:
        """List your tokens and those of others into pools that you manage."""
        return self.paged(_seen(request), TokenSerializer)

    @operation(takes=NewTokenSerializer, gives=NewTokenTextSerializer, status=201)
    def post(self, request: Request) -> Response:
        """Make a token; it is in this answer and nowhere else."""
        if isinstance(request.auth, ApiToken):
            raise NotAllowed("A token cannot make tokens. Log in and make one on the page “API tokens”.")
        asked = self.asked(NewTokenSerializer)
        slug, days = asked.pop("pool"), asked.pop("days")
        pool = get_object_or_404(Pool.objects.visible_to(request.user), slug=slug) if slug else None
        expires_in = None if days is None else timedelta(days=days)
        asked["scopes"] = sorted(asked["scopes"])
        row, token = create_token(by=request.user, pool=pool, expires_in=expires_in, **asked)
        return Response({**TokenSerializer(row).data, "token": token}, status=201)


class TokenRevoke(Endpoint):
    tag = "tokens"
    is_repeatable = True

    @operation(gives=TokenSerializer)
    def post(self, request: Request, token_id: int) -> Response:
        """Close a token for good."""
        token = get_object_or_404(ApiToken.objects.filter(pk__in=_seen(request, revoked=True)), pk=token_id)
        revoke_token(token=token, by=request.user)
        token.refresh_from_db()
        return Response(TokenSerializer(token).data)


def _seen(request: Request, *, revoked: bool = False) -> Any:
    tokens = tokens_for(request.user, revoked=revoked)
    return tokens if bound_to(request) is None else tokens.filter(pool=bound_to(request))
