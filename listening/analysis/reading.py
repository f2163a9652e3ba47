"""Ratings of any laboratory from a CSV file: columns by usual names, tolerant in values, strict in structure.

Needed are the columns ``listener, task, system, rating``; all others of `rating_columns` are optional. A file in the
form of the Voice Conversion Challenge 2020 is told by its header and read by `vcc2020`. What a reader of the results
has to know (which scale was found, what was left out) becomes a remark of the study, which travels with its inputs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from listening.analysis.errors import AnalysisInputError
from listening.analysis.input_checks import CHECKS, GREATEST_POSITION, GREATEST_RATING
from listening.analysis.inputs import (
    ORIGINAL,
    RATED,
    Flags,
    Floats,
    Inputs,
    Objective,
    Ratings,
    StudyFacts,
    Texts,
)
from listening.analysis.rating_columns import NEEDED, NO, NO_RATING, PURPOSES, TARGETS, TASKS, YES, usual_name
from listening.analysis.text_tables import (
    Faults,
    Source,
    TextTable,
    floats_of,
    found_at,
    mapped,
    number_in,
    read_text,
    shown,
    split_table,
)

Scale = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Attributes:
    original: name of unprotected speech in the file.
    scale: lowest and highest rating, of each task or of all; found in the data where it is not given.
    unconverted: in the form of 2020, teams whose samples are unconverted speech of the source speaker.
    """

    original: str | None = None
    scale: Scale | tuple[float, float] | None = None
    unconverted: str = "team34"
    study: str = ""
    title: str = ""


def read_ratings(
    source: Source,
    name: str,
    *,
    original: str | None = None,
    scale: Scale | tuple[float, float] | None = None,
    unconverted: str = "team34",
    study: str = "",
    title: str = "",
) -> Inputs:
    """The ratings of a file, ready to be analysed.

    Args:
        source: a path, a binary stream or bytes, gzipped or not.
        name: of the file, for what is said about it.
        original: which system is unprotected speech; usually ``original``, or ``ref`` in the form of 2020.
        scale: see `ReadOptions`.
        study, title: what to call it; made of the name of the file where empty.

    Raises:
        AnalysisInputError: the file cannot be read, or lines of it; one sentence for each.
    """
    from listening.analysis.vcc2020 import is_vcc2020, vcc2020_inputs

    stem = Path(name).name.removesuffix(".gz").removesuffix(".csv") or "ratings"
    options = ReadOptions(original, scale, unconverted, study or slug_of(stem), title or stem)
    table = split_table(read_text(source, name), name, lambda cell: usual_name(cell) is not None)
    if is_vcc2020(table):
        return vcc2020_inputs(table, options)
    return _plain_inputs(table, options)


def read_objective(source: Source, name: str) -> Objective:
    """What was computed on each utterance of each system, from a CSV file.

    Needed are the columns ``system, utterance``; ``errors, words`` (of the recogniser) and ``pitch_correlation`` are
    unknown where they are missing or empty.

    Raises:
        AnalysisInputError: the file cannot be read, or lines of it; one sentence for each.
    """
    names = [one.name for one in fields(Objective)]
    table = split_table(read_text(source, name), name, lambda cell: cell.lower() in names)
    cells = {header.lower(): column for header, column in table.columns.items()}
    faults = Faults(name)
    if missing := [one for one in names[:2] if one not in cells]:
        expected = f"the columns {', '.join(names)}"
        faults.add(expected, f"no {', no '.join(missing)}", "Name them in the first line.", line=1)
    faults.raise_any()
    table = TextTable(name, {one: cells.get(one, [""] * len(table)) for one in names}, table.lines, table.delimiter)
    values: dict[str, Any] = {one: np.array(table.columns[one], np.str_) for one in names[:2]}
    for one in names[2:]:
        column = table.columns[one]
        numbers = mapped(column, lambda cell: number_in(cell, decimal_comma=table.delimiter != ","))
        bad = [row for row, number in enumerate(numbers) if number is None and column[row].lower() not in NO_RATING]
        faults.add_lines(f"a number or nothing in {one}", found_at(table, column, bad), "Correct the cell.")
        values[one] = floats_of(numbers)
    faults.raise_any()
    made = Objective(**values)
    for check in CHECKS[Objective]:
        check(made, table, {}, faults)
    faults.raise_any()
    return made


def slug_of(text: str) -> str:
    """A name for addresses and files."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "study"


def flags_of(cells: Sequence[str], table: TextTable, column: str, faults: Faults) -> Flags:
    """Cells of yes and no as bool; empty ones are True."""
    values = mapped(cells, lambda cell: {**dict.fromkeys(("", *YES), 1), **dict.fromkeys(NO, 0)}.get(cell.lower()))
    bad = [row for row, value in enumerate(values) if value is None]
    faults.add_lines(f"{column} as 1 or 0", found_at(table, cells, bad), "Write 1 for yes and 0 for no.")
    return np.array([value != 0 for value in values], np.bool_)


def scale_of(task: Texts, rating: Floats, given: Scale | tuple[float, float] | None) -> tuple[Scale, list[str]]:
    """Lowest and highest rating of each task that occurs: as given, else as found, with a remark for each one found."""
    ends: dict[str, tuple[float, float]] = {}
    remarks = []
    for one in (one for one in RATED if (task == one).any()):
        named = given if given is None or isinstance(given, tuple) else given.get(one)
        if named is not None:
            ends[one] = (float(named[0]), float(named[1]))
            continue
        low, high = math.floor(rating[task == one].min()), math.ceil(rating[task == one].max())
        ends[one] = (float(low), float(max(high, low + 1)))
        remarks.append(
            f"The scale of {one}, {low} to {max(high, low + 1)}, was found in the ratings; no other was given."
        )
    return ends, remarks


def rated_lines(table: TextTable, ratings: Sequence[str]) -> tuple[list[int], list[str]]:
    """Rows that hold a rating, and a remark on the others.

    Raises:
        AnalysisInputError: no row does.
    """
    rated = [row for row, cell in enumerate(ratings) if cell.lower() not in NO_RATING]
    if not rated:
        raise AnalysisInputError(f"{table.name}: expected ratings, found none in any line. Fill their column.")
    missing = len(table) - len(rated)
    lines = f"{missing:,} line{'' if missing == 1 else 's'} of the file"
    return rated, [f"{lines} without a rating left out."] if missing else []


def outside_scale(
    table: TextTable, cells: Sequence[str], task: Texts, rating: Floats, scale: Scale, faults: Faults
) -> None:
    """Report ratings that the scale of their task does not have."""
    for one, (low, high) in scale.items():
        bad = np.flatnonzero((task == one) & ((rating < low) | (rating > high)))
        remedy = "Correct the rating, or give the scale that was used."
        faults.add_lines(f"a rating of {one} from {low:g} to {high:g}", found_at(table, cells, bad.tolist()), remedy)


def _plain_inputs(table: TextTable, options: ReadOptions) -> Inputs:
    columns = _columns_of(table)
    rated, remarks = rated_lines(table, columns["rating"])
    if len(rated) < len(table):
        columns = {name: [cells[row] for row in rated] for name, cells in columns.items()}
        table = table.take(rated)
    faults = Faults(table.name)
    ratings, scale = _plain_ratings(table, columns, options, faults, remarks)
    faults.raise_any()
    labels = {} if options.original in (None, ORIGINAL) else {ORIGINAL: str(options.original)}
    facts = StudyFacts(
        options.study, options.title, "rating", tuple(one for one in RATED if one in scale), scale, labels=labels,
        design={"read_from": Path(table.name).name, "form": "table", "remarks": remarks},
    )  # fmt: skip
    return Inputs(facts, ratings=ratings)


def _columns_of(table: TextTable) -> dict[str, Sequence[str]]:
    """Cells by the usual name of their column."""
    faults = Faults(table.name)
    columns: dict[str, Sequence[str]] = {}
    written: dict[str, str] = {}
    for header, cells in table.columns.items():
        name = usual_name(header)
        if name in columns:
            faults.add(f"one column for {name}", f"“{written[name]}” and “{header}”", "Rename one of them.", line=1)
        elif name is not None:
            columns[name], written[name] = cells, header
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        faults.add(
            f"the columns {', '.join(NEEDED)}",
            f"no {', no '.join(missing)} among {', '.join(map(shown, list(table.columns)[:20]))}",
            "Name them in the first line; further columns are optional.",
            line=1,
        )
    faults.raise_any()
    return columns


def _plain_ratings(
    table: TextTable, columns: Mapping[str, Sequence[str]], options: ReadOptions, faults: Faults, remarks: list[str]
) -> tuple[Ratings, Scale]:
    count = len(table)
    task = _known(table, columns["task"], TASKS, "a task", "Use naturalness, intelligibility or verifiability.", faults)
    numbers = mapped(columns["rating"], lambda cell: number_in(cell, decimal_comma=table.delimiter != ","))
    bad = [row for row, number in enumerate(numbers) if number is None]
    faults.add_lines("a number as rating", found_at(table, columns["rating"], bad), "Write a number such as 4 or 3.5.")
    wild = [row for row, number in enumerate(numbers) if number is not None and abs(number) > GREATEST_RATING]
    expected = f"a rating within ±{GREATEST_RATING:,}"
    faults.add_lines(expected, found_at(table, columns["rating"], wild), "Correct the rating, or rescale all of them.")
    for name in ("listener", "system"):
        nameless = [row for row, cell in enumerate(columns[name]) if not cell]
        remedy = "Fill the cell; unprotected speech is named original."
        faults.add_lines(f"a {name}", found_at(table, columns[name], nameless), remedy)
    faults.raise_any()  # what follows takes tasks, numbers and names for granted
    tasks, rating = np.array(task, np.str_), floats_of(numbers)
    scale, said = scale_of(tasks, rating, options.scale)
    remarks += said
    outside_scale(table, columns["rating"], tasks, rating, scale, faults)
    empty: Sequence[str] = [""] * count
    listener = columns["listener"]
    system = _systems(columns["system"], options, faults, remarks)
    item, utterance = _presented(system, columns, remarks)
    targets = _known(
        table,
        _words(columns.get("is_target", empty)),
        TARGETS,
        "target or nontarget",
        "Write 1, 0 or nothing.",
        faults,
    )
    purposes = _known(
        table, columns.get("purpose", empty), PURPOSES, "a purpose", "Use scored, practice, gold or bridge.", faults
    )
    return Ratings(
        listener=np.array(listener, np.str_),
        session=np.array(_or(columns.get("session", empty), listener), np.str_),
        task=tasks,
        system=np.array(system, np.str_),
        is_target=np.array(targets, np.int64),
        item=np.array(item, np.str_),
        utterance=np.array(utterance, np.str_),
        enrolment=np.array(columns.get("enrolment", empty), np.str_),
        speaker=np.array(columns.get("speaker", empty), np.str_),
        gender=np.array(mapped(columns.get("gender", empty), gender_of), np.str_),
        rating=rating,
        position=_positions(table, columns.get("position", empty), faults),
        purpose=np.array(purposes, np.str_),
        is_finished=flags_of(columns.get("finished", empty), table, "finished", faults),
        excluded=_excluded(table, columns, faults),
    ), scale


def gender_of(cell: str) -> str:
    """``f``, ``m``, or nothing for anything else."""
    first = cell.strip().lower()
    return {"f": "f", "female": "f", "w": "f", "woman": "f", "m": "m", "male": "m", "man": "m"}.get(first, "")


def _known(
    table: TextTable, cells: Sequence[str], values: Mapping[str, Any], what: str, remedy: str, faults: Faults
) -> list[Any]:
    """The value of each cell by its small letters; a cell without one is reported and has the value of the first."""
    found = mapped(cells, lambda cell: values.get(re.sub(r"[\s_\-]+(?=[^\d])", " ", cell.lower())))
    faults.add_lines(what, found_at(table, cells, [row for row, one in enumerate(found) if one is None]), remedy)
    usual = next(iter(values.values()))
    return [usual if one is None else one for one in found]


def _words(cells: Sequence[str]) -> list[str]:
    """Without hyphens between letters, so that non-target is nontarget."""
    return mapped(cells, lambda cell: re.sub(r"(?<=[A-Za-z])[-_ ](?=[A-Za-z])", "", cell))


def _or(cells: Sequence[str], others: Sequence[str]) -> list[str]:
    return [cell or other for cell, other in zip(cells, others, strict=True)]


def _systems(cells: Sequence[str], options: ReadOptions, faults: Faults, remarks: list[str]) -> list[str]:
    """Names of systems, the original under its own."""
    names = set(cells)
    called = options.original or ORIGINAL
    if called not in names:
        listed = ", ".join(sorted(names)[:20])
        if options.original:
            faults.add(f"a system named “{called}”", listed, "Say which of these is unprotected speech.")
        remarks.append(
            f"No system is named {called}, so nothing is compared with unprotected speech unless you say which is: "
            f"{listed}."
        )
    elif called != ORIGINAL and ORIGINAL in names:
        found = f"“{called}” and a system “{ORIGINAL}”"
        faults.add("one name for unprotected speech", found, "Rename one of them.")
    return mapped(cells, lambda cell: ORIGINAL if cell == called else cell)


def _presented(
    system: Sequence[str], columns: Mapping[str, Sequence[str]], remarks: list[str]
) -> tuple[list[str], list[str]]:
    """Item and source utterance of each rating, one from the other where only one is there."""
    empty: Sequence[str] = [""] * len(system)
    utterance, enrolment = columns.get("utterance", empty), columns.get("enrolment", empty)
    item = columns.get("item", empty)
    if not any(item) and not any(utterance):
        remarks.append(
            "Neither items nor utterances are named, so every rating counts as one of its own: agreement between "
            "listeners and errors clustered by utterance rest on nothing."
        )
        numbered = [f"{one}/{number}" for number, one in enumerate(system, start=1)]
        return numbered, numbered
    if not any(utterance):
        remarks.append("Source utterances are not named; items stand in their place.")
    joined = ["/".join(part for part in parts if part) for parts in zip(system, utterance, enrolment, strict=True)]
    return _or(item, joined), _or(utterance, item)


def _positions(table: TextTable, cells: Sequence[str], faults: Faults) -> Any:
    numbers = mapped(cells, lambda cell: 0.0 if not cell else number_in(cell))
    bad = [
        row for row, one in enumerate(numbers) if one is None or not 0 <= one <= GREATEST_POSITION or one != int(one)
    ]
    faults.add_lines("a position from 1", found_at(table, cells, bad), "Write a whole number, or nothing.")
    return floats_of(0.0 if one is None or abs(one) > GREATEST_POSITION else one for one in numbers).astype(np.int64)


def _excluded(table: TextTable, columns: Mapping[str, Sequence[str]], faults: Faults) -> Texts:
    """Why each rating does not count: in words, or as a flag of either direction."""
    empty: Sequence[str] = [""] * len(table)
    reasons = np.array(columns.get("excluded", empty), np.str_)
    lower = np.char.lower(reasons)
    if np.isin(lower, ("", *YES, *NO)).all():
        reasons = np.where(np.isin(lower, YES), "marked as excluded in the file", "")
    if "valid" in columns:
        is_valid = flags_of(columns["valid"], table, "valid", faults)
        reasons = np.where((reasons == "") & ~is_valid, "marked as not valid in the file", reasons)
    return reasons.astype(np.str_)
