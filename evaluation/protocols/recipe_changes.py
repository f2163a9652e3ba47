"""What differs in two recipes, and why a changed recipe needs more than what was submitted.

A changed recipe may weigh, average and rank otherwise what the same evaluators measured on the same data sets. It
cannot ask for other speech, other attackers or other files: nobody submitted these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from common.toml_files import parse_toml
from evaluation.protocols.recipes import DataSet, Recipe, Track

UNSEEN = frozenset({"title"})  # an edition shows its own
_NAMED_BY = ("metric", "key")  # fields that name a table of a list
# What a changed recipe has to share with the one that the submissions followed, and why.
_FIXED = {
    "anonymised_suffix": "The files of submissions are named by it.",
    "attack_models": "Speech was attacked by these only.",
    "results": "The result files of submissions were read by it.",
    "emotions": "Emotions were recognised with these labels.",
    "evaluation": "Other engines would have to attack and recognise the speech again.",
    "keeps_duration": "Submissions were accepted or refused by it.",
}
REMEDY = "Copy the edition to ask teams for something else."


@dataclass(frozen=True, slots=True)
class RecipeChange:
    """A value of the recipe that differs; None where there is none."""

    key: str
    before: str | None
    after: str | None


def list_changes(before: str, after: str) -> list[RecipeChange]:
    """Return each value in which two recipes differ, by its dotted key, in the order of the later one.

    Tables of a list are known by their metric, with the estimator where a metric stands there twice.

    Args:
        before, after: TOML that can be read.

    Example:
        >>> list_changes("a = 1", "a = 2")
        [Change(key='a', before='1', after='2')]
    """
    return list(_compare("", parse_toml(before, "before"), parse_toml(after, "after")))


def find_obstacles(known: Recipe, wanted: Recipe, track: str = "") -> list[str]:
    """Return why the numbers that a recipe wants cannot be computed from what was submitted by another one; empty if
    they can.

    Args:
        track: of the edition, where the recipe has several.
    """
    found = [*_find_set_obstacles(known, wanted), *_find_fixed(known, wanted), *_find_track(known, wanted, track)]
    return [*found, REMEDY] if found else []


def _find_set_obstacles(known: Recipe, wanted: Recipe) -> Iterator[str]:
    old, new = known.data_sets, wanted.data_sets
    if added := [name for name in new if name not in old]:
        yield f"data_sets: expected the present {len(old)} sets, found also {', '.join(added)}. Nobody submitted these."
    if lost := [name for name in old if name not in new]:
        yield (
            f"data_sets: expected the present {len(old)} sets, found no {', '.join(lost)}. Keep them here and "
            "leave them out of the averages."
        )
    for name, one in new.items():
        if name in old and (changed := _changed_fields(old[name], one)):
            yield f"data_sets.{name}: expected the present {' and '.join(changed)}, found another."


def _changed_fields(old: DataSet, new: DataSet) -> list[str]:
    """The published number of original speech alone may differ: nothing was measured by it."""
    bare = replace(new, original_value=old.original_value)
    return [one.name for one in fields(DataSet) if getattr(bare, one.name) != getattr(old, one.name)]


def _find_fixed(known: Recipe, wanted: Recipe) -> Iterator[str]:
    for name, reason in _FIXED.items():
        old, new = getattr(known, name), getattr(wanted, name)
        if old == new:
            continue
        if isinstance(old, str | bool | tuple):
            yield f"{name}: expected {_write(old)} as now, found {_write(new)}. {reason}"
        else:
            yield f"{name}: expected the present table, found another. {reason}"


def _find_track(known: Recipe, wanted: Recipe, track: str) -> Iterator[str]:
    name = track or known.track.name
    old, new = known.tracks[name], wanted.tracks.get(name)
    if new is None or (not track and len(wanted.tracks) != 1):
        yield f"tracks: expected {'' if track else 'only '}the track {name}, found {', '.join(wanted.tracks)}."
    elif _languages(old) != _languages(new):
        yield f"tracks.{name}: expected the languages {', '.join(_languages(old))}, found {', '.join(_languages(new))}."


def _languages(track: Track) -> tuple[str, ...]:
    return (*track.languages, *track.surprise_languages)


def _compare(place: str, old: Any, new: Any) -> Iterator[RecipeChange]:
    if _is_table(old) and _is_table(new):
        yield from _compare_tables(place, _named(old, new), _named(new, old))
    elif old != new:
        yield RecipeChange(place, _write(old), _write(new))


def _compare_tables(place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[RecipeChange]:
    for key in dict.fromkeys([*new, *old]):
        if not place and key in UNSEEN:
            continue
        name = f"{place}.{key}" if place else key
        before, after = old.get(key), new.get(key)
        if before is None or after is None:  # each value of a table that is new or goes
            before, after = ({} if one is None and _is_table(other) else one for one, other in _pairs(before, after))
        yield from _compare(name, before, after)


def _pairs(one: Any, other: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    return (one, other), (other, one)


def _is_table(value: Any) -> bool:
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _named(value: Any, other: Any) -> dict[str, Any]:
    """Return a table, or a list of tables by their names; `other`: the list that it is compared with."""
    if isinstance(value, dict):
        return value
    rows = [*value, *(other if isinstance(other, list) else ())]
    is_alone = all(_is_once(_name(one), part) for one in rows for part in (value, other) if isinstance(part, list))
    return {_name(one) if is_alone else _full_name(one, place): one for place, one in enumerate(value)}


def _is_once(name: str, rows: list[dict[str, Any]]) -> bool:
    return bool(name) and sum(_name(one) == name for one in rows) <= 1


def _name(row: dict[str, Any]) -> str:
    return next((str(row[field]) for field in _NAMED_BY if field in row), "")


def _full_name(row: dict[str, Any], place: int) -> str:
    name = _name(row) or str(place)
    return f"{name} ({row['estimator']})" if row.get("estimator") else name


def _write(value: Any) -> str | None:
    """Return a value of a recipe as a table of changes has it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, list | tuple):
        groups = bool(value) and isinstance(value[0], list | tuple)
        return ("; " if groups else ", ").join(str(_write(one)) for one in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_write(one)}" for key, one in value.items()) or "none"
    return str(value)
