"""Dataclasses from the tables of a TOML file, each field held against its annotation.

A reader goes on after a fault, so that whoever wrote the file reads everything that is wrong with it at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


class TableReader:
    """Builds dataclasses and keeps in `faults`, in the order of the file, one sentence for each thing that is wrong."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def fault(self, sentence: str) -> None:
        """Keep a sentence, once."""
        if sentence not in self.faults:
            self.faults.append(sentence)

    def one_of(self, found: str, allowed: Iterable[str], place: str) -> None:
        """A fault unless the value is one of those allowed."""
        names = list(allowed)
        if found not in names:
            self.fault(f"{place}: expected one of {', '.join(names)}, found “{found}”.")

    def tables(self, table: dict[str, Any], key: str) -> list[tuple[str, Any]]:
        """The named tables below a key, which is taken out; there has to be one."""
        found = table.pop(key, None)
        if not isinstance(found, dict) or not found:
            self.fault(f"{key}: expected at least one table, found {shown(found)}.")
            return []
        return list(found.items())

    def rows(self, kind: type[T], table: dict[str, Any], key: str, place: str) -> list[T]:
        """The list of tables below a key, which is taken out; those with a fault are left out."""
        found = table.pop(key, [])
        if not isinstance(found, list):
            self.fault(f"{place}: expected a list of tables, found {shown(found)}.")
            return []
        built = [self.build(kind, row, f"{place}[{number}]") for number, row in enumerate(found)]
        return [one for one in built if one is not None]

    def build(self, kind: type[T], table: Any, place: str, **built: Any) -> T | None:
        """A dataclass from a table; `built` fields are taken as they are. None where something is wrong with it."""
        if not isinstance(table, dict):
            self.fault(f"{place}: expected a table, found {shown(table)}.")
            return None
        before = len(self.faults)
        hints = get_type_hints(kind)
        known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
        for name in table:
            if name not in known or name in built:
                self.fault(f"{place}: expected the fields {', '.join(known)}, found “{name}”.")
        values = dict(built)
        for name, field in known.items():
            if name in built:
                continue
            if name in table:
                values[name] = self._value(table[name], str(hints[name]), f"{place}.{name}")
            elif field.default is MISSING:
                self.fault(f"{place}: expected the field “{name}”, found none.")
        return None if len(self.faults) > before else kind(**values)

    def _value(self, found: Any, hint: str, place: str) -> Any:
        if "Mapping" in hint:
            return self._mapping(found, place)
        if hint.startswith("tuple"):
            return self._list(found, hint.removeprefix("tuple["), place)
        number = is_number(found)
        fits = {
            "<class 'str'>": isinstance(found, str),
            "<class 'bool'>": isinstance(found, bool),
            "<class 'float'>": number,
            "float | None": number,
            "int | None": isinstance(found, int) and number,
        }
        if not fits.get(hint, False):
            wanted = "a finite number" if "float" in hint else hint.removeprefix("<class '").removesuffix("'>")
            self.fault(f"{place}: expected {wanted}, found {shown(found)}.")
        return found

    def _mapping(self, found: Any, place: str) -> MappingProxyType[str, Any]:
        """Of each split, numbers by name."""
        rows = found.items() if isinstance(found, dict) else ()
        if not isinstance(found, dict) or not all(isinstance(row, dict) for _, row in rows):
            self.fault(f"{place}: expected a table for each split, found {shown(found)}.")
            return MappingProxyType({})
        for row in found.values():
            for value in row.values():
                if not is_number(value):
                    self.fault(f"{place}: expected a finite number, found “{value}”.")
        return MappingProxyType({split: MappingProxyType(dict(row)) for split, row in found.items()})

    def _list(self, found: Any, hint: str, place: str) -> tuple[Any, ...]:
        if not isinstance(found, list):
            self.fault(f"{place}: expected a list, found {shown(found)}.")
            return ()
        if hint.startswith("tuple"):
            return tuple(self._list(one, hint.removeprefix("tuple["), place) for one in found)
        for value in found:
            if hint.startswith("str"):
                if not isinstance(value, str):
                    self.fault(f"{place}: expected texts in quotation marks, found “{value}”.")
            elif not is_number(value):
                self.fault(f"{place}: expected a finite number, found “{value}”.")
        return tuple(found)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def shown(found: Any) -> str:
    """A value as a sentence gives it."""
    return "nothing" if found is None else f"“{found}”"
