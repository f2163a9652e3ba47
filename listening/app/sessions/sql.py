"""Queries and writes that come with every answer, with less effort for each than the ORM makes.

Building a query costs the ORM several times what the database needs to answer it. A `Statement` is built from a query
set as any other, with placeholders in place of what it is asked for, and remembers its SQL by kind of database.
`Writes` gathers rows and changes. PostgreSQL gets what is read together, and what is written, in one message each;
SQLite, which is no message away, one after the other. Values are converted as the models' fields do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model, QuerySet
from django.utils import timezone

from portal.core.clock import CLOCK_SQL


@dataclass(frozen=True)
class _Compiled:
    sql: str
    fields: list[Any]
    converters: dict[int, Any]
    compiler: Any


class Statement:
    """`build` makes the query set without its columns, which are `fields` of its model, in the model's order.

    Its filters take the parameters in the alphabetical order of their names.
    """

    def __init__(self, build: Callable[[], QuerySet[Any]], *fields: str) -> None:
        self._build = build
        self._fields = fields
        self._known: dict[str, _Compiled] = {}

    def read(self, *parameters: Any) -> list[tuple[Any, ...]]:
        """The fields of each row."""
        return read_together_with_clock((self, parameters))[0][0]

    def instance(self, row: Sequence[Any]) -> Any:
        """A row as an instance of the model, whose other fields are read when they are asked for."""
        fields = self.compiled().fields
        return fields[0].model.from_db(DEFAULT_DB_ALIAS, [field.attname for field in fields], row)

    def compiled(self) -> _Compiled:
        known = self._known.get(connection.vendor)
        if known is None:
            queryset = self._build().order_by()
            fields = [field for field in queryset.model._meta.concrete_fields if field.name in self._fields]
            sql = queryset.values_list(*(field.name for field in fields)).query.sql_with_params()[0]
            compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
            converters = compiler.get_converters([field.get_col(field.model._meta.db_table) for field in fields])
            known = self._known[connection.vendor] = _Compiled(sql, fields, converters, compiler)
        return known


def read_together_with_clock(
    *asked: tuple[Statement, Sequence[Any]],
) -> tuple[list[list[tuple[Any, ...]]], datetime]:
    """The rows of several statements, each of which sees what was committed before it began, and the time of
    `read_clock` when all was read, which costs no message of its own.

    So a first one that holds a row makes sure that the others see what the holder before has left.
    """
    known = [statement.compiled() for statement, _ in asked]
    found, now = [], timezone.now()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sql = "; ".join([*(one.sql for one in known), CLOCK_SQL])
            cursor.execute(sql, [value for _, values in asked for value in values])
        for number, (one, (_, values)) in enumerate(zip(known, asked, strict=True)):
            if connection.vendor != "postgresql":
                cursor.execute(one.sql, values)
            elif number:
                cursor.nextset()
            rows = cursor.fetchall()
            found.append(
                list(map(tuple, one.compiler.apply_converters(rows, one.converters))) if one.converters else rows
            )
        if connection.vendor == "postgresql":
            cursor.nextset()
            now = cursor.fetchone()[0]
    return found, now


class Writes:
    """Inserts and changes of rows, in the order in which they are called, sent by `send` within a transaction."""

    def __init__(self) -> None:
        self._sql: list[str] = []
        self._parameters: list[list[Any]] = []

    def insert(self, model: type[Model], rows: Sequence[Mapping[str, Any]]) -> None:
        """New rows; each gives every field but the key, relations by key as ``session_id``. No default is filled in."""
        if not rows:
            return
        quote, one_row = connection.ops.quote_name, f"({', '.join(['%s'] * len(rows[0]))})"
        columns = ", ".join(quote(column) for column, _ in _values(model, rows[0]))
        table, values = quote(model._meta.db_table), ", ".join([one_row] * len(rows))
        self._add(
            f"INSERT INTO {table} ({columns}) VALUES {values}",  # noqa: S608 (names of the models alone)
            [value for row in rows for _, value in _values(model, row)],
        )

    def update(self, row: Model, fields: Sequence[str]) -> None:
        """What these fields of a row hold now."""
        quote, model = connection.ops.quote_name, type(row)
        values = _values(model, {field: getattr(row, field) for field in fields})
        changes = ", ".join(f"{quote(column)} = %s" for column, _ in values)
        table = quote(model._meta.db_table)
        sql = f"UPDATE {table} SET {changes} WHERE id = %s"  # noqa: S608 (names of the models alone)
        self._add(sql, [*(value for _, value in values), row.pk])

    def send(self) -> None:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("; ".join(self._sql), [value for of_one in self._parameters for value in of_one])
                return
            for sql, parameters in zip(self._sql, self._parameters, strict=True):
                cursor.execute(sql, parameters)

    def _add(self, sql: str, parameters: list[Any]) -> None:
        self._sql.append(sql)
        self._parameters.append(parameters)


def _values(model: type[Model], row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """By column the values as the database takes them."""
    fields = [(_field(model, name), value) for name, value in row.items()]
    return [(field.column, field.get_db_prep_save(value, connection)) for field, value in fields]


@cache
def _field(model: type[Model], name: str) -> Any:
    return next(field for field in model._meta.concrete_fields if name in (field.name, field.attname))
