"""The inputs of an analysis as files, exactly and always in the same bytes, and back with everything checked.

`study.json` and `settings.json` are JSON with sorted keys; each part of `Inputs` is a CSV file with one column for each
of its attributes. Numbers are written in the shortest form that reads back the same, unknown ones as empty cells, flags
as 1 and 0. A text that a spreadsheet would run as a formula, or that starts with an apostrophe, gets an apostrophe
before it, which reading takes away again.

`check_part` says what inputs must hold beyond their types: known tasks, ratings on their scale, places on a board. It
looks at one part that was read from a file and adds to the problems of its table, line by line.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.arrays import Flags, Texts
from common.errors import ProblemsError
from common.harmless_cells import mark_text, unmark_text
from listening.analysis.reading.answer_values import find_question_problem
from listening.analysis.reading.inputs import (
    BRIDGE,
    GOLD,
    PRACTICE,
    SCORED,
    Answers,
    InputColumns,
    Inputs,
    ObjectiveRows,
    Placements,
    Ratings,
    Scale,
    Settings,
    StudyFacts,
    Transcripts,
    parse_settings,
)
from listening.analysis.reading.text_tables import (
    TableProblems,
    TextTable,
    map_cells,
    parse_number,
    read_text,
    split_table,
)
from listening.questions import parse_question

GREATEST_RATING = 1_000_000  # squares of squares of what lies beyond are no numbers any more
GREATEST_POSITION = 10**9
_MOST_WORDS = 10**9
FORMS = ("rating", "linkability", "transcription", "answers")
_TAKE_AS_MADE = "Use the file as it was downloaded."
_AS_MADE = "Use the file as it was downloaded, or correct the line."


def parse_study(data: Mapping[str, Any], name: str) -> StudyFacts:
    """Read facts of a study from data, as `StudyFacts.as_data` gives them.

    Raises:
        ProblemsError: names everything that is missing or of another kind.
    """
    kinds: dict[str, type] = dict.fromkeys(("name", "title", "form"), str)
    kinds |= {"tasks": list, "scale": dict, "is_simulated": bool, "labels": dict, "design": dict, "attribution": str}
    kinds |= {"questions": list}
    problems = TableProblems(name)
    for key, kind in kinds.items():
        if not isinstance(data.get(key), kind):
            problems.add(f"{key} as {_WORDS[kind]}", repr(data.get(key))[:60], _TAKE_AS_MADE)
    for key in sorted(set(data) - set(kinds)):
        problems.add(f"only {', '.join(kinds)}", repr(key), "Remove it.")
    problems.raise_any()
    if data["form"] not in FORMS:
        problems.add(f"form as one of {', '.join(FORMS)}", repr(data["form"])[:60], _AS_MADE)
    for key in ("tasks", "labels"):
        values = data[key] if key == "tasks" else data[key].values()
        if not all(isinstance(one, str) for one in values):
            problems.add(f"texts in {key}", "another value", _AS_MADE)
    for task, ends in data["scale"].items():
        if not _is_scale(ends):
            expected = f"a lower and a higher number within ±{GREATEST_RATING:,} as the scale of {task}"
            problems.add(expected, repr(ends)[:60], _AS_MADE)
    questions = data["design"].get("questions", {})
    for name, about in questions.items() if isinstance(questions, dict) else [("", questions)]:
        if expected := find_question_problem(about):
            problems.add(f"{expected} of question {name!r}", repr(about)[:60], _AS_MADE)
    notes = data["design"].get("remarks", [])
    if not isinstance(notes, list) or not all(isinstance(one, str) for one in notes):
        problems.add("a list of texts as notes of the design", repr(notes)[:60], _AS_MADE)
    problems.raise_any()
    scale = {task: (ends[0], ends[1]) for task, ends in data["scale"].items()}
    asked = tuple(parse_question(one, problems.name) for one in data["questions"])
    scale = {task: scale[task] for task in sorted(scale, key=(*data["tasks"], *scale).index)}  # in the order of asking
    return StudyFacts(**{**data, "tasks": tuple(data["tasks"]), "scale": scale, "questions": asked})


_WORDS: Mapping[type, str] = {str: "text", list: "a list", dict: "an object", bool: "true or false"}


def _is_scale(ends: Any) -> bool:
    are_numbers = isinstance(ends, list) and len(ends) == 2 and all(type(one) in (int, float) for one in ends)
    return are_numbers and -GREATEST_RATING <= ends[0] < ends[1] <= GREATEST_RATING


class _Rule(NamedTuple):
    """What the values of a column must be: in words, and as a function of all of them."""

    expected: str
    is_allowed: Callable[[NDArray[Any]], Flags]


def _one_of(*allowed: Any) -> _Rule:
    return _Rule(f"one of {', '.join(map(str, allowed))}", lambda values: np.isin(values, allowed))


def _within(lowest: float, highest: float, *, may_miss: bool = False) -> _Rule:
    expected = f"a number from {lowest:g}" + ("" if np.isinf(highest) else f" to {highest:g}")
    return _Rule(expected, lambda values: (values >= lowest) & (values <= highest) | (np.isnan(values) & may_miss))


_NAME = _Rule("a name", lambda values: values != "")
_SINGLE = _Rule("another name than that of all systems together", lambda values: values != "all")
_WORDS_COUNTED = _within(0, _MOST_WORDS, may_miss=True)
_RULES: Mapping[type[Any], Sequence[tuple[str, _Rule]]] = {
    Ratings: (
        *((name, _NAME) for name in ("listener", "system", "item")),
        ("task", _NAME),
        ("is_target", _one_of(-1, 0, 1)),
        ("gender", _one_of("f", "m", "")),
        ("purpose", _one_of(SCORED, BRIDGE, GOLD, PRACTICE)),
        ("position", _within(0, GREATEST_POSITION)),
    ),
    Placements: (
        *((name, _NAME) for name in ("listener", "board", "slot", "system", "speaker")),
        *(("system", _SINGLE), ("x", _within(0, 1)), ("y", _within(0, 1, may_miss=True))),
        ("declared", _within(0, np.inf)),
    ),
    Transcripts: (("listener", _NAME), ("system", _NAME), ("system", _SINGLE)),
    Answers: (
        *((name, _NAME) for name in ("listener", "question", "item", "condition", "value")),
        *((name, _within(0, GREATEST_POSITION)) for name in ("order", "position")),
    ),
    ObjectiveRows: (
        *(("system", _NAME), ("utterance", _NAME), ("errors", _WORDS_COUNTED), ("words", _WORDS_COUNTED)),
        ("pitch_correlation", _within(-1, 1, may_miss=True)),
    ),
}


def check_part(part: Any, table: TextTable, scale: Scale) -> None:
    """Add what is wrong with a part of the inputs to the problems of the table that it was read from.

    Args:
        scale: lowest and highest rating by task.
    """

    def report(column: str, is_allowed: Flags, expected: str) -> None:
        table.report(~is_allowed, table.columns[column], f"{expected} as {column}", _AS_MADE)

    for column, rule in _RULES.get(type(part), ()):
        report(column, rule.is_allowed(getattr(part, column)), rule.expected)
    if isinstance(part, Ratings):
        for task in np.unique(part.task).tolist():
            low, high = scale.get(task, (-np.inf, np.inf))
            is_allowed = (part.task != task) | ((part.rating >= low) & (part.rating <= high))
            report("rating", is_allowed, f"{low:g} to {high:g} for {task}")
            if task not in scale:
                table.problems.add(f"a scale of {task} in study.json", "none", "Add it there.")
    if isinstance(part, ObjectiveRows):
        seen: Counter[tuple[str, str]] = Counter()
        again = []
        for line, key in zip(table.lines, zip(part.system.tolist(), part.utterance.tolist(), strict=True), strict=True):
            seen[key] += 1
            if seen[key] > 1:
                again.append((line, f"{key[1]} of {key[0]} again"))
        table.problems.add_lines("each utterance of a system once", again, "Remove the line.")


STUDY, SETTINGS, EXCLUSIONS, TEXTS = "study.json", "settings.json", "exclusions.csv", "texts/"
PARTS: Mapping[str, type[Any]] = {
    "ratings.csv": Ratings,
    "placements.csv": Placements,
    "transcripts.csv": Transcripts,
    "answers.csv": Answers,
    "objective.csv": ObjectiveRows,
}


@dataclass(frozen=True, eq=False)
class Exclusions(InputColumns):
    """One row an exclusion: its rule, the session, why, and whether it stands."""

    rule: Texts
    session: Texts
    reason: Texts
    stands: Flags


LONGEST_TEXT = 20_000

Part = TypeVar("Part", bound=InputColumns)


def write_files(inputs: Inputs, settings: Settings) -> dict[str, bytes]:
    """Return each file by its name, in the order in which they are kept."""
    files = {STUDY: _json(inputs.study.as_data()), SETTINGS: _json(settings.as_data())}
    for name in PARTS:
        part = getattr(inputs, name.removesuffix(".csv"))
        if part is not None:
            files[name] = _csv(part)
    files[EXCLUSIONS] = _csv(Exclusions.from_rows(inputs.exclusions))
    return files | {f"{TEXTS}{name}": inputs.texts[name].encode() for name in sorted(inputs.texts)}


def read_files(files: Mapping[str, bytes], place: str) -> tuple[Inputs, Settings]:
    """Return what `write_files` was made from.

    Args:
        place: what the files lie in, for what is said about them.

    Raises:
        ProblemsError: everything that is wrong with them.
    """
    problems: list[str] = []
    unknown = [name for name in files if name not in (STUDY, SETTINGS, EXCLUSIONS, *PARTS) and not _is_text_name(name)]
    problems += [f"{place}: found a file {name!r} that belongs to no inputs. Remove it." for name in sorted(unknown)]

    def attempt(read: Callable[..., Any], *told: Any) -> Any:
        try:
            return read(*told)
        except ProblemsError as error:
            problems.extend(error.problems)

    study = attempt(lambda: parse_study(_json_of(files, STUDY, place), f"{place}, {STUDY}"))
    settings = attempt(lambda: parse_settings(_json_of(files, SETTINGS, place)))
    scale = study.scale if study else {}
    parts = {
        name.removesuffix(".csv"): attempt(_part, files[name], of, f"{place}, {name}", scale)
        for name, of in PARTS.items()
        if name in files
    }
    has_exclusions = bool(files.get(EXCLUSIONS, b"").strip())
    noted = attempt(_part, files[EXCLUSIONS], Exclusions, f"{place}, {EXCLUSIONS}", scale) if has_exclusions else None
    columns = [getattr(noted, one.name).tolist() for one in fields(Exclusions)] if noted else []
    texts = {
        name.removeprefix(TEXTS): attempt(read_text, files[name], f"{place}, {name}")
        for name in files
        if _is_text_name(name)
    }
    if problems or study is None:
        raise ProblemsError(problems)
    return Inputs(study, **parts, exclusions=tuple(zip(*columns, strict=True)), texts=texts), settings


def _is_text_name(name: str) -> bool:
    return name.startswith(TEXTS) and name.endswith(".md") and "/" not in name.removeprefix(TEXTS)


def _json(data: Any) -> bytes:
    return (json.dumps(data, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def _json_of(files: Mapping[str, bytes], name: str, place: str) -> dict[str, Any]:
    if name not in files:
        raise ProblemsError(f"{place}: expected a file {name}, found none. Take the whole download.")
    try:
        data = json.loads(files[name], parse_constant=_finite, parse_float=_finite, parse_int=_whole)
        json.dumps(data, ensure_ascii=False).encode()  # halves of characters cannot be written
    except (ValueError, RecursionError) as error:
        raise ProblemsError(f"{place}, {name}: expected JSON, found “{error}”. Download it again.") from None
    if not isinstance(data, dict):
        raise ProblemsError(f"{place}, {name}: expected a JSON object, found another value. Download it again.")
    return data


def _finite(written: str) -> float:
    """Return the number that is written.

    Raises:
        ValueError: it is no finite number.
    """
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"the number {written[:30]}, which is not finite")
    return number


def _whole(written: str) -> int:
    """Return the whole number that is written.

    Raises:
        ValueError: no number of the analysis can hold it.
    """
    _finite(written)
    return int(written)


def _csv(part: Any) -> bytes:
    """Return a column for each attribute."""
    columns = {one.name: _written(getattr(part, one.name)) for one in fields(part)}
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([columns, *zip(*columns.values(), strict=True)])
    return text.getvalue().encode()


def _written(values: Any) -> list[str]:
    """Return a column as its cells."""
    if values.dtype.kind == "U":
        return map_cells(values.tolist(), mark_text)
    if values.dtype.kind in "bi":
        return [str(int(value)) for value in values.tolist()]
    return ["" if math.isnan(value) else repr(value).removesuffix(".0") for value in values.tolist()]


class _Kind(NamedTuple):
    """What cells of a kind of column are: in words, as a test of what they must not be, and as what they are read."""

    expected: str
    is_wrong: Callable[[str], bool]
    parse: Callable[[str], Any]


_KINDS: Mapping[str, _Kind] = {
    "Texts": _Kind("a text", lambda _: False, unmark_text),
    "Flags": _Kind("1 or 0", lambda cell: cell not in ("0", "1"), "1".__eq__),
    "Ints": _Kind("a whole number", lambda cell: not re.fullmatch(r"-?[0-9]{1,15}", cell), int),
    "Floats": _Kind(
        "a number or nothing",
        lambda cell: cell != "" and parse_number(cell) is None,
        lambda cell: float(cell) if cell else math.nan,
    ),
}


def _part(content: bytes, of: type[Part], name: str, scale: Scale) -> Part:
    """Return one part of the inputs.

    Raises:
        ProblemsError: its columns are others, or cells hold something else than their column.
    """
    kinds = {one.name: _KINDS[str(one.type)] for one in fields(of)}
    text = read_text(content, name)
    if text.strip() == ",".join(kinds):
        return of.from_rows([])
    table = split_table(text, name, kinds.__contains__, is_exact=True, longest_cell=LONGEST_TEXT)
    if list(table.columns) != list(kinds):
        table.problems.add(f"the columns {', '.join(kinds)}", ", ".join(table.columns), _TAKE_AS_MADE, line=1)
    table.problems.raise_any()
    for column, kind in kinds.items():
        cells = table.columns[column]
        table.report(map_cells(cells, kind.is_wrong), cells, f"{kind.expected} in {column}", _TAKE_AS_MADE)
    table.problems.raise_any()
    part = of.make({name: map_cells(table.columns[name], kind.parse) for name, kind in kinds.items()})
    check_part(part, table, scale)
    table.problems.raise_any()
    return part
