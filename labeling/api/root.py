"""The start of the API: every operation in a list, for people and for programs."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.api.browsing import operations
from labeling.api.endpoint import Endpoint
from labeling.api.schema import operation


class OperationSerializer(Serializer):
    tag = serializers.CharField()
    method = serializers.CharField()
    path = serializers.CharField()
    summary = serializers.CharField()
    scope = serializers.CharField(help_text="That a token needs.")


class Root(Endpoint):
    tag = "about"

    @operation(gives=OperationSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List every operation."""
        return Response(OperationSerializer(operations(), many=True).data)
