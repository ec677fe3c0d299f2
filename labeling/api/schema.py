"""The OpenAPI description: what drf-spectacular reads off the views, and the errors and keys that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.serializers import Serializer

from labeling.api.endpoint import MOST_KEY_CHARACTERS, Endpoint

Method = TypeVar("Method", bound=Callable[..., Any])
PAGING = [
    OpenApiParameter("page", {"type": "integer", "minimum": 1}, description="Page, from 1."),
    OpenApiParameter("page_size", {"type": "integer", "minimum": 1, "maximum": 500}, description="Rows of a page."),
]
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "maxLength": MOST_KEY_CHARACTERS},
    OpenApiParameter.HEADER,
    description="Any text of yours, such as a UUID. The same request under the same key is done once.",
)
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "properties": {
                "code": {"type": "string", "description": "Stable, for programs."},
                "message": {"type": "string", "description": "For people: what was found, wanted, and what to do."},
                "details": {"type": "object", "additionalProperties": {}},
            },
        }
    },
}


class TokenScheme(OpenApiAuthenticationExtension):
    """``Authorization: Bearer assay_...``"""

    target_class = "labeling.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "assay_…"}


class Schema(AutoSchema):
    """Names the scope that an operation needs, and the key of those that create something."""

    def get_description(self) -> str:
        words = str(super().get_description() or "")
        view = self.view
        return f"{words}\n\nScope: `{view.scope_of(self.method)}`." if isinstance(view, Endpoint) else words

    def get_override_parameters(self) -> list[Any]:
        is_post = self.method == "POST" and isinstance(self.view, Endpoint)
        keeps = is_post and (self.view.takes_key or not self.view.is_repeatable)
        return [*super().get_override_parameters(), *([IDEMPOTENCY_KEY] if keeps else [])]

    def get_operation_id(self) -> str:
        """A name that says whether one thing comes or a page of them."""
        name = str(super().get_operation_id())
        answers = self.get_response_serializers()
        gives_page = isinstance(answers, dict) and any(getattr(found, "is_page", False) for found in answers.values())
        return f"{name.removesuffix('_retrieve')}_list" if gives_page and self.method == "GET" else name

    def get_tags(self) -> list[str]:
        return [self.view.tag] if isinstance(self.view, Endpoint) and self.view.tag else super().get_tags()


def operation(
    *,
    takes: Any = None,
    gives: Any = None,
    status: int = 200,
    query: type[Serializer] | None = None,
    pages: type[Serializer] | None = None,
) -> Callable[[Method], Method]:
    """Say what a method of an endpoint takes in its body or address, and gives; ``pages`` of rows, in its place."""
    parameters: list[Any] = [*([query] if query else []), *(PAGING if pages else [])]
    answer = page_of(pages) if pages else gives
    answers = answer if isinstance(answer, dict) else {status: answer}
    return extend_schema(request=takes, responses=answers, parameters=parameters)


def page_of(rows: type[Serializer]) -> type[Serializer]:
    """The serializer of one page of rows."""
    fields = {
        "count": serializers.IntegerField(help_text="Rows on all pages."),
        "next": serializers.URLField(allow_null=True),
        "previous": serializers.URLField(allow_null=True),
        "results": rows(many=True),
    }
    name = rows.__name__.removesuffix("Serializer") + "Page"
    return type(name, (serializers.Serializer,), {**fields, "__doc__": "", "is_page": True})


def add_errors(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Every operation may answer with an error, in one shape."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR
    answer = {
        "description": "Refused: 400, 401, 403, 404, 405, 406, 409, 413, 415, 422 or 429.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    for methods in result["paths"].values():
        for described in methods.values():
            described["responses"]["default"] = answer
    return result


BINARY = OpenApiTypes.BINARY
ANY_OBJECT = OpenApiTypes.OBJECT
