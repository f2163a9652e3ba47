"""Tables: all that an analysis gives, what their columns mean, and the meanings of every column that it reads.

`data_dictionary.toml` is the contract between those who compute, draw, show and export; `make_table` holds rows to it.
Numbers are rounded to ten significant digits when a table is made, so that a page, a CSV file and the tables made again
on another machine agree. A table is addressed by the kind of scores it rests on and its name: ``raw/summary``,
``normalised/summary``, or ``common/…`` where it rests on neither.
"""

from __future__ import annotations

import json
import math
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from common.tables import Column, DataTable, Table, Value
from listening.questions import AskedQuestion, read_question

Scores = Literal["raw", "normalised", "common"]
Row = dict[str, Any]  # cells by the names of columns
SIGNIFICANT_DIGITS = 10
_WIDTH = 100

DICTIONARY: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("data_dictionary.toml").read_text(encoding="utf-8")
)
# What a table of each name holds, for readers: its columns, and a sentence or two on how to read it.
CONTENTS: Mapping[str, Table] = {
    name: Table(
        tuple(Column(key, **of) for key, of in one["columns"].items()),
        (),
        one["title"],
        name=name,
        note=one.get("note", ""),
    )
    for name, one in DICTIONARY["tables"].items()
}
# Those that exist twice, for raw ratings and for normalised ones; and the others.
BY_SCORES = tuple(one for name, one in CONTENTS.items() if DICTIONARY["tables"][name]["by_scores"])
COMMON = tuple(one for one in CONTENTS.values() if one not in BY_SCORES)
# Tables of what leaving listeners out changes, of ratings and of other answers.
EFFECTS = ("exclusion_effect", "answers_effect")
# Tables that name single listeners; nobody but the organizers of a study sees them.
ABOUT_LISTENERS = frozenset({"listeners", "screening", "transcripts"})
# Tables that name single utterances: for organizers, and for the team of the system.
ABOUT_UTTERANCES = frozenset({"utterances", "disagreements", "map"})


def make_table(name: str, rows: Iterable[Mapping[str, Any]]) -> DataTable:
    """Make a table of rows by the names of columns; a name that is missing is an empty cell.

    Raises:
        KeyError: there is no such table, or it has no such column.
    """
    names = tuple(column.key for column in CONTENTS[name].columns)
    made = []
    for row in rows:
        if unknown := set(row) - set(names):
            raise KeyError(f"{name} has no column {sorted(unknown)}")
        made.append(tuple(_cell(row.get(key)) for key in names))
    return DataTable(names, tuple(made), name)


def choice_in_words(name: str, settings: Mapping[str, Any]) -> str:
    """Return what was chosen for a setting as pages call it; empty where nothing was."""
    return str(DICTIONARY["settings"][name]["choices"].get(settings.get(name), ""))


@dataclass(frozen=True)
class Results:
    """Everything that an analysis found.

    Attributes:
        study: facts of the study, as `inputs.StudyFacts` gives them.
        settings: those of `inputs.Settings`, as data.
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
    tables: Mapping[str, DataTable] = field(default_factory=dict)

    @cached_property
    def questions(self) -> dict[str, AskedQuestion]:
        """Return what was asked, by key, in the order of asking."""
        return {one["key"]: read_question(one) for one in self.study.get("questions", ())}

    @property
    def level(self) -> float:
        """Return the confidence level of intervals, as a share."""
        return float(self.settings.get("level", 0.95))

    @property
    def original(self) -> str:
        """Return what unprotected speech, or the reference of one's own recordings, is called."""
        return str(self.study.get("design", {}).get("original", "original"))

    @property
    def is_crossed(self) -> bool:
        """Return whether recordings of one's own were heard, and no systems of an edition."""
        return bool(self.study.get("design", {}).get("edition") == "")

    def table(self, scores: str, name: str) -> DataTable | None:
        return self.tables.get(f"{scores}/{name}")

    def records(self, scores: str, name: str, **equal: Value) -> list[Row]:
        """Return rows of a table by the names of its columns, as `DataTable.records`; none where it is missing."""
        table = self.table(scores, name)
        return table.records(**equal) if table else []

    def as_json(self) -> str:
        """Return JSON in which equal results are equal text."""
        tables = {path: {"columns": one.columns, "rows": one.rows} for path, one in self.tables.items()}
        parts = {one.name: getattr(self, one.name) for one in fields(self)} | {"tables": tables}
        return json.dumps(parts, ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")) + "\n"

    @staticmethod
    def from_json(text: str | bytes) -> Results:
        parts = json.loads(text)
        tables = {
            path: DataTable(tuple(one["columns"]), tuple(map(tuple, one["rows"])), path.split("/")[1])
            for path, one in parts["tables"].items()
        }
        return Results(parts["study"], parts["settings"], parts["counts"], parts["remarks"], parts["versions"], tables)


def _cell(value: Any) -> Value:
    """Return plain Python: no numpy, NaN and infinities empty, truth as 0 and 1, ten significant digits."""
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, (int, np.integer, np.bool_)):
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        return None
    rounded = float(f"{number:.{SIGNIFICANT_DIGITS}g}")
    return rounded + 0.0  # no negative zero


def describe_tables(names: Iterable[str] = ()) -> str:
    """Say what the tables of these names hold; all without any.

    Raises:
        KeyError: there is no such table.
    """
    return "\n\n".join(map(_describe_table, [CONTENTS[name] for name in names] or [*BY_SCORES, *COMMON]))


def describe_inputs() -> str:
    """Say what the files of inputs in a bundle hold."""
    files: Mapping[str, Mapping[str, str]] = DICTIONARY["inputs"]
    return "\n\n".join("\n".join([name, *_listed(columns.items())]) for name, columns in files.items())


def describe_columns(of: str) -> str:
    """Say what the columns of a CSV from anywhere hold, of ``ratings`` or of ``answers``."""
    said = []
    for name, one in DICTIONARY[of].items():
        others = f" Also named {', '.join(one['aliases'])}." if one["aliases"] else ""
        said.append((name, f"{one['meaning']}{' Needed.' if one.get('is_needed') else ''}{others}"))
    return "\n".join(_listed(said))


def _describe_table(content: Table) -> str:
    kinds = "raw, normalised" if content in BY_SCORES else "common"
    lines = [f"{content.name} ({kinds}): {content.title}"]
    if content.note:
        lines.append(textwrap.fill(content.note, _WIDTH, initial_indent="  ", subsequent_indent="  "))
    lines += _listed((one.key, one.description + ("; in [0, 1]" if one.is_share else "")) for one in content.columns)
    return "\n".join(lines)


def _listed(meanings: Iterable[tuple[str, str]]) -> Iterator[str]:
    listed = list(meanings)
    width = max(len(name) for name, _ in listed) + 4
    for name, meaning in listed:
        yield textwrap.fill(meaning, _WIDTH, initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width)
