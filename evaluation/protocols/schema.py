"""Every field of a recipe in words: name, type, meaning, default and an example.

Names, types and defaults are those of the dataclasses that the reader fills; meanings and examples stand in
``fields.toml``. A field that stands in one of both alone is refused, so that they cannot disagree.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from evaluation.protocols import recipes
from evaluation.protocols.evaluation_table import EVALUATORS, Evaluation
from evaluation.protocols.recipe_making import write_value

# By the name of the table in fields.toml: the dataclass, and the fields that are its key or tables of their own.
_TABLES: Mapping[str, tuple[type, frozenset[str]]] = {
    "recipe": (
        recipes.Recipe,
        frozenset({"data_sets", "metrics", "tracks", "results", "emotions", "evaluation"}),
    ),
    "data_set": (recipes.DataSet, frozenset({"name"})),
    "evaluation": (Evaluation, frozenset()),
    "emotions": (recipes.Emotions, frozenset()),
    "results": (recipes.ResultLines, frozenset()),
    "metric": (recipes.MetricRule, frozenset()),
    "track": (recipes.Track, frozenset({"name", "averages", "ranking"})),
    "average": (recipes.Average, frozenset()),
    "ranking": (recipes.Ranking, frozenset({"privacy", "utilities", "gates"})),
    "privacy": (recipes.MetricName, frozenset()),
    "utility": (recipes.Utility, frozenset()),
    "gate": (recipes.Gate, frozenset()),
}
_ALLOWED = {
    ("data_set", "role"): recipes.ROLES,
    ("evaluation", "by"): EVALUATORS,
    ("ranking", "policy"): recipes.POLICIES,
    ("utility", "better"): recipes.BETTER,
}
_TYPES = {
    "<class 'str'>": "text",
    "<class 'bool'>": "true or false",
    "<class 'float'>": "number",
    "float | None": "number",
    "int | None": "whole number",
    "tuple[str, ...]": "list of texts",
    "tuple[int, ...]": "list of numbers",
    "tuple[float, ...]": "list of numbers",
    "tuple[tuple[str, ...], ...]": "list of lists of texts",
    "collections.abc.Mapping[str, collections.abc.Mapping[str, float]]": "table for each split",
}


@dataclass(frozen=True, slots=True)
class FieldText:
    """A field for people: `default` is empty where the field is required, `example` is TOML."""

    name: str
    type: str
    meaning: str
    default: str
    example: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class TableText:
    """A table of a recipe: its key, where it stands in the file, what it is, and its fields in their order."""

    key: str
    place: str
    meaning: str
    fields: tuple[FieldText, ...]


@cache
def describe_recipe() -> tuple[TableText, ...]:
    """Return every table of a recipe, in the order of a file.

    Raises:
        LookupError: a table or field stands in ``fields.toml`` or in the reader alone.
    """
    texts = tomllib.loads(Path(__file__).with_name("fields.toml").read_text(encoding="utf-8"))
    _compare("tables", texts, _TABLES)
    return tuple(_describe(key, kind, skipped, texts[key]) for key, (kind, skipped) in _TABLES.items())


def _describe(key: str, kind: type, skipped: frozenset[str], text: Mapping[str, Any]) -> TableText:
    known = {one.name: one for one in fields(kind) if one.name not in skipped}
    _compare(key, text["fields"], known)
    hints = get_type_hints(kind)
    found = tuple(
        FieldText(
            name=name,
            type=_type(key, name, str(hints[name])),
            meaning=text["fields"][name]["meaning"],
            default=_default(one),
            example=_example(name, text["fields"][name]["example"]),
            is_required=one.default is MISSING,
        )
        for name, one in known.items()
    )
    return TableText(key, text["place"], text["meaning"], found)


def _compare(place: str, described: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    if alone := sorted(described.keys() ^ known.keys()):
        raise LookupError(f"{place}: expected the same fields in fields.toml and in the reader, found {alone} in one.")


def _type(key: str, name: str, hint: str) -> str:
    allowed = _ALLOWED.get((key, name))
    return f"{_TYPES[hint]}: {', '.join(allowed)}" if allowed else _TYPES[hint]


def _default(one: Field[Any]) -> str:
    if one.default is MISSING:
        return ""
    return "none" if one.default is None or one.default == () else write_value(one.default)


def _example(name: str, example: Any) -> str:
    is_line = isinstance(example, str) and "=" in example
    return str(example) if is_line else f"{name} = {write_value(example)}"
