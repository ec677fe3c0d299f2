"""The API in a browser: each address as a page that says what it takes, with a form where it takes something."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import uuid4

from django.template.loader import render_to_string
from rest_framework.renderers import BaseRenderer, JSONRenderer

Described = dict[str, Any]
TAGS = [
    "pools", "imports", "calibration sets", "models", "runs", "comparisons", "budgets", "rounds", "work",
    "adjudication", "exports", "variance", "curricula", "people", "tokens", "about",
]  # fmt: skip
HIDDEN = {"page", "page_size", "Idempotency-Key"}


class PageRenderer(BaseRenderer):
    """HTML without inline code, which works without JavaScript."""

    media_type = "text/html"
    format = "html"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> str:
        asked = renderer_context["request"]
        response = renderer_context["response"]
        path, operations = described_at(asked.resolver_match.route if asked.resolver_match else "")
        shown = JSONRenderer().render(data, renderer_context={"indent": 2}).decode() if data is not None else ""
        context = {
            "path": path,
            "method": asked.method,
            "address": asked.get_full_path(),
            "status": response.status_code,
            "reason": response.reason_phrase,
            "body": shown,
            "data": data,
            "operations": operations,
            "idempotency_key": uuid4(),
            "groups": grouped(data) if path == "/api/v1/" and response.status_code == 200 else [],
        }
        return render_to_string("labeling/api.html", context, request=asked._request)


def described_at(route: str) -> tuple[str, list[Described]]:
    """The path of a route as the schema writes it, and what each method there takes; none for an unknown route."""
    path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)
    schema = the_schema()
    found = [_described(schema, method, operation) for method, operation in schema["paths"].get(path, {}).items()]
    return path, found


@cache
def the_schema() -> Described:
    """The OpenAPI description, made once in each process."""
    from drf_spectacular.generators import SchemaGenerator  # it imports the views, which import this

    return dict(SchemaGenerator().get_schema(request=None, public=True))


def operations() -> list[Described]:
    """Every operation of the schema, by tag in the order of the work."""
    schema = the_schema()
    found = [
        {"tag": operation["tags"][0], "path": path, **_described(schema, method, operation)}
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    return sorted(found, key=lambda each: TAGS.index(each["tag"]))


def grouped(listed: list[Described]) -> list[tuple[str, list[Described]]]:
    """Operations under their tags; ``link`` where one can be followed as it stands."""
    groups: dict[str, list[Described]] = {}
    for each in listed:
        link = each["path"] if each["method"] == "GET" and "{" not in each["path"] else ""
        groups.setdefault(each["tag"], []).append({**each, "link": link})
    return list(groups.items())


def _described(schema: Described, method: str, operation: Described) -> Described:
    summary, _, rest = operation["description"].partition("\n\n")
    content = operation.get("requestBody", {}).get("content", {})
    body = _resolved(schema, content.get("application/json", {}).get("schema", {}))
    parameters = [each for each in operation.get("parameters", []) if each["in"] == "query"]
    return {
        "method": method.upper(),
        "summary": summary,
        "scope": rest.rpartition("Scope: `")[2].removesuffix("`."),
        "parameters": [_field(each["name"], each, each["schema"]) for each in parameters if each["name"] not in HIDDEN],
        "fields": [
            {**_field(name, _resolved(schema, given), _resolved(schema, given)), "is_required": name in _required(body)}
            for name, given in body.get("properties", {}).items()
        ],
        "takes_file": "multipart/form-data" in content and "application/octet-stream" in content,
        "example": json.dumps(_example(schema, body), indent=2, ensure_ascii=False) if body else "",
    }


def _field(name: str, described: Mapping[str, Any], schema: Mapping[str, Any]) -> Described:
    choices = [str(each) for each in schema.get("enum", []) if each not in {"", None}]
    return {
        "name": name,
        "type": " or ".join(choices) if choices else schema.get("type", "any"),
        "words": "" if choices and "`" in described.get("description", "") else described.get("description", ""),
        "is_required": described.get("required", False),
    }


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required", [])
    return found if isinstance(found, list) else []


def _resolved(schema: Described, found: Mapping[str, Any]) -> Described:
    """What a reference stands for; of several alternatives the first."""
    while True:
        if "$ref" in found:
            found = schema["components"]["schemas"][found["$ref"].rpartition("/")[2]]
        elif "allOf" in found or "oneOf" in found:
            one = (found.get("allOf") or found.get("oneOf") or [{}])[0]
            found = {
                **_resolved(schema, one),
                **{key: found[key] for key in ("default", "description") if key in found},
            }
        else:
            return dict(found)


def _example(schema: Described, found: Mapping[str, Any]) -> Any:
    """What a body might look like: every required field."""
    found = _resolved(schema, found)
    if "default" in found:
        return found["default"]
    if found.get("enum"):
        return found["enum"][0]
    kind = found.get("type")
    if kind == "object":
        fields = found.get("properties", {})
        return {name: _example(schema, fields[name]) for name in fields if name in _required(found)}
    if kind == "array":
        return [_example(schema, found.get("items", {}))]
    if kind in {"integer", "number"}:
        return max(1, found.get("minimum", 1))
    return {"string": "", "boolean": False}.get(str(kind))
