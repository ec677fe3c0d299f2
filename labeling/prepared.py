"""Queries that are asked again and again: their SQL is worked out once, which takes longer than running it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Expression, Field, IntegerField, QuerySet


class Parameter(Expression):
    """A place in a prepared query, filled in by name each time it is asked."""

    def __init__(self, name: str, output_field: Field[Any, Any] | None = None) -> None:
        super().__init__(output_field=output_field or IntegerField())
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class Prepared:
    """A query built by ``build`` with Parameters, as rows of values.

    ``build`` returns a queryset of ``values_list``; it is called once in a process, when the query is first asked.
    """

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._compiled: tuple[str, tuple[Any, ...]] | None = None

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """Run the query with these values for its parameters."""
        if self._compiled is None:
            self._compiled = self._build().query.sql_with_params()
        sql, parameters = self._compiled
        with connection.cursor() as cursor:
            cursor.execute(sql, [_value(each, values) for each in parameters])
            return cursor.fetchall()


def _value(parameter: Any, values: dict[str, Any]) -> Any:
    found = values[parameter.name] if isinstance(parameter, Parameter) else parameter
    return connection.ops.adapt_datetimefield_value(found) if isinstance(found, datetime) else found
