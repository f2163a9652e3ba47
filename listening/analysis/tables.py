"""Tables: all that an analysis gives. A table knows its columns in words, and its CSV is the same byte for byte.

Numbers are rounded to ten significant digits when a table is made, so that a page, a CSV file and the tables made again
on another machine agree. A `Table` is addressed by the kind of scores it rests on and its name: ``raw/summary``,
``normalised/summary``, or ``common/…`` where it rests on neither.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from evaluation.figures.numbers import NumberTable

Cell = str | float | int | None
Scores = Literal["raw", "normalised", "common"]
SIGNIFICANT_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `meaning`: what it holds and in which unit. `digits`: decimals on a page, None for text and counts.

    `is_share`: pages show it in percent.
    """

    name: str
    title: str
    meaning: str
    digits: int | None = None
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """What a table of this name holds, for readers: its columns, and a sentence or two on how to read it."""

    name: str
    title: str
    columns: tuple[Column, ...]
    note: str = ""

    def table(self, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Rows by the names of columns; a name that is missing is an empty cell, one too many raises KeyError."""
        names = [column.name for column in self.columns]
        made = []
        for row in rows:
            if unknown := set(row) - set(names):
                raise KeyError(f"{self.name} has no column {sorted(unknown)}")
            made.append(tuple(_cell(row.get(name)) for name in names))
        return Table(self.name, tuple(names), tuple(made))


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under names of columns; empty cells are None."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def records(self, **equal: Cell) -> list[dict[str, Cell]]:
        """The rows as dictionaries, those where every named column has the given value."""
        found = (dict(zip(self.columns, row, strict=True)) for row in self.rows)
        return [row for row in found if all(row[name] == value for name, value in equal.items())]

    def values(self, column: str) -> list[Cell]:
        """The different values of a column in the order of the rows."""
        place = self.columns.index(column)
        return list(dict.fromkeys(row[place] for row in self.rows))

    def csv(self) -> str:
        return NumberTable(self.columns, self.rows).csv()


@dataclass(frozen=True)
class Results:
    """Everything that an analysis found.

    Attributes:
        study: facts of the study, as `inputs.StudyFacts` gives them.
        settings: those of `settings.Settings`, as data.
        counts: sessions, listeners, ratings: read, left out and why; by name.
        remarks: sentences that a reader has to know, such as what could not be computed and why.
        versions: of this analysis and of what it rests on.
        tables: by ``scores/name``.
    """

    study: Mapping[str, Any]
    settings: Mapping[str, Any]
    counts: Mapping[str, int]
    remarks: Sequence[str]
    versions: Mapping[str, str]
    tables: Mapping[str, Table] = field(default_factory=dict)

    def table(self, scores: str, name: str) -> Table | None:
        return self.tables.get(f"{scores}/{name}")

    def as_json(self) -> str:
        """Equal results give equal text."""
        tables = {path: {"columns": one.columns, "rows": one.rows} for path, one in self.tables.items()}
        parts = {
            "study": dict(self.study), "settings": dict(self.settings), "counts": dict(self.counts),
            "remarks": list(self.remarks), "versions": dict(self.versions), "tables": tables,
        }  # fmt: skip
        return json.dumps(parts, ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")) + "\n"

    @staticmethod
    def from_json(text: str | bytes) -> Results:
        parts = json.loads(text)
        tables = {
            path: Table(path.split("/")[1], tuple(one["columns"]), tuple(map(tuple, one["rows"])))
            for path, one in parts["tables"].items()
        }
        return Results(parts["study"], parts["settings"], parts["counts"], parts["remarks"], parts["versions"], tables)


def _cell(value: Any) -> Cell:
    """Plain Python: numpy's numbers as Python's, NaN and infinities empty, truth as 0 and 1, ten significant digits."""
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        return None
    rounded = float(f"{number:.{SIGNIFICANT_DIGITS}g}")
    return rounded + 0.0  # no negative zero
