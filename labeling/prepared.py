"""Queries that are asked again and again: their SQL is worked out once, which takes longer than running it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Expression, Field, IntegerField, Model, QuerySet
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql import InsertQuery, UpdateQuery

from labeling.models import Slot

Row = TypeVar("Row")


class Parameter(Expression):
    """A place in a prepared query, filled in by name each time it is asked."""

    def __init__(self, name: str, output_field: Field[Any, Any] | None = None) -> None:
        super().__init__(output_field=output_field or IntegerField())
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class Prepared(Generic[Row]):
    """A query built by ``build`` with Parameters; ``build`` is called once in a process, when it is first asked.

    Its rows are what those of the queryset are: tuples for ``values_list``, else instances, with what
    ``select_related`` says beside them.
    """

    def __init__(self, build: Callable[[], QuerySet[Any, Row]]) -> None:
        self._build = build
        self._compiled: _Compiled | None = None

    def rows(self, **values: Any) -> list[Row]:
        """Run the query with these values for its parameters."""
        if self._compiled is None:
            self._compiled = _Compiled.of(self._build())
        return self._compiled.run(values)

    def first(self, **values: Any) -> Row | None:
        """Return the first row of what the query finds with these values, None if it finds nothing."""
        return next(iter(self.rows(**values)), None)


class PreparedAbout(Generic[Row]):
    """A query about what a slot asks in its round: built for a question, and for the calibration item of a check."""

    def __init__(self, build: Callable[[Slot], QuerySet[Any, Row]]) -> None:
        question = Slot(round_id=Parameter("round"), question_id=Parameter("asked"))
        check = Slot(round_id=Parameter("round"), calibration_item_id=Parameter("asked"))
        self._question, self._check = Prepared(lambda: build(question)), Prepared(lambda: build(check))

    def rows(self, slot: Slot, **values: Any) -> list[Row]:
        """Run the query for the slot, with these values for its other parameters."""
        if slot.question_id is not None:
            return self._question.rows(round=slot.round_id, asked=slot.question_id, **values)
        return self._check.rows(round=slot.round_id, asked=slot.calibration_item_id, **values)

    def first(self, slot: Slot, **values: Any) -> Row | None:
        """Return the first row of what the query finds for the slot, None if it finds nothing."""
        return next(iter(self.rows(slot, **values)), None)


class PreparedUpdate:
    """An UPDATE of what a queryset finds; ``build`` gives the queryset and the new values, both with Parameters."""

    def __init__(self, build: Callable[[], tuple[QuerySet[Any, Any], dict[str, Any]]]) -> None:
        self._build = build
        self._compiled: tuple[str, tuple[Any, ...]] | None = None

    def run(self, **values: Any) -> int:
        """Write the new values; return how many rows they went to."""
        if self._compiled is None:
            found, new_values = self._build()
            query = found.query.chain(UpdateQuery)
            query.add_update_values(new_values)  # type: ignore[attr-defined]
            self._compiled = query.get_compiler(DEFAULT_DB_ALIAS).as_sql()
        sql, parameters = self._compiled
        with connection.cursor() as cursor:
            cursor.execute(sql, [_value(each, values) for each in parameters])
            return cursor.rowcount


class PreparedInsert:
    """Adds rows of a model one at a time; no signal is sent."""

    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self._sql = ""

    def add(self, row: Model) -> None:
        """Save a new row; its primary key is then set."""
        fields = [field for field in self._model._meta.local_concrete_fields if not field.primary_key]
        if not self._sql:
            query = InsertQuery(self._model)
            query.insert_values(fields, [row])
            compiler = query.get_compiler(DEFAULT_DB_ALIAS)
            compiler.returning_fields = [self._model._meta.pk]
            ((self._sql, _parameters),) = compiler.as_sql()
        values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, values)
            (row.pk,) = cursor.fetchone()
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


@dataclass(frozen=True)
class _Compiled:
    """The SQL of a query, and what its columns become: a model's fields, then those of the models beside it."""

    sql: str
    parameters: tuple[Any, ...]
    converters: tuple[tuple[int, tuple[Any, ...], Any], ...]  # of which column, and the expression that it shows
    model: type[Model] | None
    fields: tuple[str, ...]
    beside: tuple[Any, ...]

    @classmethod
    def of(cls, asked: QuerySet[Any, Any]) -> _Compiled:
        compiler = asked.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        columns = [column[0] for column in compiler.select]
        converters = tuple((at, tuple(each), column) for at, (each, column) in compiler.get_converters(columns).items())
        if not issubclass(asked._iterable_class, ModelIterable):
            return cls(sql, tuple(parameters), converters, None, (), ())
        about = compiler.klass_info
        return cls(
            sql,
            tuple(parameters),
            converters,
            model=about["model"],
            fields=tuple(column.target.attname for column in columns[: len(about["select_fields"])]),
            beside=tuple(get_related_populators(about, compiler.select, DEFAULT_DB_ALIAS)),  # type: ignore[call-arg]
        )

    def run(self, values: dict[str, Any]) -> list[Any]:
        if any(isinstance(value, int) and abs(value) >= 2**63 for value in values.values()):
            return []  # as querysets do: no column holds such a number
        with connection.cursor() as cursor:
            cursor.execute(self.sql, [_value(each, values) for each in self.parameters])
            rows = [self._converted(row) for row in cursor.fetchall()]
        return rows if self.model is None else [self._instance(row) for row in rows]

    def _converted(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.converters:
            return row
        columns = list(row)
        for at, converters, expression in self.converters:
            for convert in converters:
                columns[at] = convert(columns[at], expression, connection)
        return tuple(columns)

    def _instance(self, row: tuple[Any, ...]) -> Model:
        assert self.model is not None  # noqa: S101
        instance = self.model.from_db(DEFAULT_DB_ALIAS, self.fields, row[: len(self.fields)])
        for each in self.beside:
            each.populate(row, instance)
        return instance


def _value(parameter: Any, values: dict[str, Any]) -> Any:
    if not isinstance(parameter, Parameter):
        return parameter
    return parameter.output_field.get_db_prep_value(values[parameter.name], connection)
