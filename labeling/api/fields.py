"""Fields of serializers that other libraries leave too wide."""

from __future__ import annotations

from math import isfinite
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

MOST_DEPTH = 20


class Number(serializers.FloatField):
    """A finite number; not the words nan and inf, which Python reads as numbers."""

    def to_internal_value(self, data: Any) -> float:
        number = super().to_internal_value(data)
        if isinstance(data, bool) or not isfinite(number):
            raise serializers.ValidationError("Give a finite number.", code="invalid")
        return float(number)


class Id(serializers.IntegerField):
    """What a row is known by, of those that a database can have."""

    def __init__(self, **more: Any) -> None:
        super().__init__(min_value=1, max_value=2**63 - 1, **more)


@extend_schema_field({"type": "object", "additionalProperties": {}})
class JSONObject(serializers.Field):
    """An object that every database can keep: texts without NUL and lone surrogates, nested at most 20 deep."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Give a JSON object.", code="invalid")
        _check(data, 0)
        return data

    def to_representation(self, value: Any) -> Any:
        return value


def _check(found: Any, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise serializers.ValidationError(f"It is nested more than {MOST_DEPTH} deep.", code="invalid")
    if isinstance(found, str) and any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in found):
        raise serializers.ValidationError("It holds a character that cannot be stored.", code="invalid")
    if isinstance(found, dict):
        for name, value in found.items():
            _check(name, depth)
            _check(value, depth + 1)
    if isinstance(found, list):
        for value in found:
            _check(value, depth + 1)


@extend_schema_field({"nullable": True})
class AnyJSON(serializers.ReadOnlyField):
    """Whatever JSON is stored."""


def choice_of(choices: Any, **more: Any) -> serializers.ChoiceField:
    """A field with a model's choices."""
    return serializers.ChoiceField(choices=choices, **more)
