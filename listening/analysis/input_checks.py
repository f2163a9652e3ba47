"""What the inputs of an analysis must hold beyond their types: known tasks, ratings on their scale, places on a board.

Each check looks at one part that was read from a file and adds to its `Faults`, line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from listening.analysis.inputs import (
    BRIDGE,
    GOLD,
    PRACTICE,
    RATED,
    SCORED,
    Flags,
    Objective,
    Placements,
    Ratings,
    StudyFacts,
    Transcripts,
)
from listening.analysis.text_tables import Faults, TextTable, found_at

GREATEST_RATING = 1_000_000  # squares of squares of what lies beyond are no numbers any more
GREATEST_POSITION = 10**9
_MOST_WORDS = 10**9
FORMS = ("rating", "linkability", "transcription")
Scale = Mapping[str, tuple[float, float]]
Check = Callable[[Any, TextTable, Scale, Faults], None]
_AS_MADE = "Take the file as it was made, or correct the line."


def study_from(data: Mapping[str, Any], name: str) -> StudyFacts:
    """Facts of a study from data, as `StudyFacts.as_data` gives them.

    Raises:
        AnalysisInputError: names everything that is missing or of another kind.
    """
    kinds: dict[str, type] = {
        "name": str, "title": str, "form": str, "tasks": list, "scale": dict, "is_simulated": bool, "labels": dict,
        "design": dict, "attribution": str,
    }  # fmt: skip
    faults = Faults(name)
    for key, kind in kinds.items():
        if not isinstance(data.get(key), kind):
            faults.add(f"{key} as {_WORDS[kind]}", repr(data.get(key))[:60], "Take the file as it was made.")
    for key in sorted(set(data) - set(kinds)):
        faults.add(f"only {', '.join(kinds)}", repr(key), "Remove it.")
    faults.raise_any()
    if data["form"] not in FORMS:
        faults.add(f"form as one of {', '.join(FORMS)}", repr(data["form"])[:60], _AS_MADE)
    for key in ("tasks", "labels"):
        values = data[key] if key == "tasks" else data[key].values()
        if not all(isinstance(one, str) for one in values):
            faults.add(f"texts in {key}", "another value", _AS_MADE)
    for task, ends in data["scale"].items():
        if not _is_scale(ends):
            expected = f"a lower and a higher number within ±{GREATEST_RATING:,} as the scale of {task}"
            faults.add(expected, repr(ends)[:60], _AS_MADE)
    remarks = data["design"].get("remarks", [])
    if not isinstance(remarks, list) or not all(isinstance(one, str) for one in remarks):
        faults.add("a list of texts as remarks of the design", repr(remarks)[:60], _AS_MADE)
    faults.raise_any()
    scale = {task: (ends[0], ends[1]) for task, ends in data["scale"].items()}
    return StudyFacts(**{**data, "tasks": tuple(data["tasks"]), "scale": scale})


_WORDS: Mapping[type, str] = {str: "text", list: "a list", dict: "an object", bool: "true or false"}


def _is_scale(ends: Any) -> bool:
    are_numbers = isinstance(ends, list) and len(ends) == 2 and all(type(one) in (int, float) for one in ends)
    return are_numbers and -GREATEST_RATING <= ends[0] < ends[1] <= GREATEST_RATING


def _unlike(allowed: Flags, column: str, expected: str, table: TextTable, faults: Faults) -> None:
    """Report the cells of a column where something is not allowed."""
    rows = np.flatnonzero(~allowed).tolist()
    faults.add_lines(f"{expected} as {column}", found_at(table, table.columns[column], rows), _AS_MADE)


def _named(*columns: str) -> Check:
    """These texts are not empty."""

    def check(part: Any, table: TextTable, scale: Scale, faults: Faults) -> None:  # noqa: ARG001
        for column in columns:
            _unlike(getattr(part, column) != "", column, "a name", table, faults)

    return check


def _single(part: Placements | Transcripts, table: TextTable, scale: Scale, faults: Faults) -> None:  # noqa: ARG001
    """No system has the name under which tables hold all of them."""
    _unlike(part.system != "all", "system", "another name than that of all systems together", table, faults)


def _one_of(column: str, allowed: Sequence[Any]) -> Check:
    def check(part: Any, table: TextTable, scale: Scale, faults: Faults) -> None:  # noqa: ARG001
        expected = f"one of {', '.join(map(str, allowed))}"
        _unlike(np.isin(getattr(part, column), list(allowed)), column, expected, table, faults)

    return check


def _within(column: str, lowest: float, highest: float, *, may_miss: bool = False) -> Check:
    def check(part: Any, table: TextTable, scale: Scale, faults: Faults) -> None:  # noqa: ARG001
        values = np.asarray(getattr(part, column), np.float64)
        allowed = (values >= lowest) & (values <= highest) | (np.isnan(values) & may_miss)
        expected = f"a number from {lowest:g}" + ("" if np.isinf(highest) else f" to {highest:g}")
        _unlike(allowed, column, expected, table, faults)

    return check


def _on_scale(part: Ratings, table: TextTable, scale: Scale, faults: Faults) -> None:
    for task in np.unique(part.task).tolist():
        low, high = scale.get(task, (-np.inf, np.inf))
        allowed = (part.task != task) | ((part.rating >= low) & (part.rating <= high))
        _unlike(allowed, "rating", f"{low:g} to {high:g} for {task}", table, faults)
        if task not in scale:
            faults.add(f"a scale of {task} in study.json", "none", "Add it there.")


def _once(part: Objective, table: TextTable, scale: Scale, faults: Faults) -> None:  # noqa: ARG001
    keys = list(zip(part.system.tolist(), part.utterance.tolist(), strict=True))
    seen: set[tuple[str, str]] = set()
    again = []
    for row, key in enumerate(keys):
        if key in seen:
            again.append((table.lines[row], f"{key[1]} of {key[0]} again"))
        seen.add(key)
    faults.add_lines("each utterance of a system once", again, "Remove the line.")


CHECKS: Mapping[type[Any], tuple[Check, ...]] = {
    Ratings: (
        _named("listener", "system", "item"), _one_of("task", RATED), _one_of("is_target", (-1, 0, 1)),
        _one_of("gender", ("f", "m", "")), _one_of("purpose", (SCORED, BRIDGE, GOLD, PRACTICE)),
        _within("position", 0, GREATEST_POSITION), _on_scale,
    ),
    Placements: (
        _named("listener", "board", "slot", "system", "speaker"), _single, _within("x", 0, 1),
        _within("y", 0, 1, may_miss=True), _within("declared", 0, np.inf),
    ),
    Transcripts: (_named("listener", "system"), _single),
    Objective: (
        _named("system", "utterance"), _within("errors", 0, _MOST_WORDS, may_miss=True),
        _within("words", 0, _MOST_WORDS, may_miss=True), _within("pitch_correlation", -1, 1, may_miss=True), _once,
    ),
}  # fmt: skip
