"""Voices and targets as CSV files: who got which pseudo-speaker, to be kept, checked, handed over and used again.

A file of voices has a line for each assignment: role, split, level, speaker, utterance (empty where a line stands for
all utterances of a speaker), key, then a column for each parameter, or one for the mixture (`name=share name=share`)
or the vector (as `vectors` writes it) of methods that plan such voices. A file of targets, for runs of ours and for
uploaded systems, has a heading `utterance,target` and a line for each utterance; further columns are left alone, and
where one name stands for recordings of two data sets, a column `data_set` distinguishes them.

Conventions: UTF-8, LF, a comma; numbers are written so that the same float64 is read back; a text that a spreadsheet
would run, or that starts with an apostrophe, gets an apostrophe before it, which reading takes off again.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TextIO, cast, get_args

from anonymization.methods.contract import Anonymizer, MethodError, PseudoSpeaker, makes_vectors, plans_voices
from anonymization.methods.voices.pseudo_speakers import Assignment, Level, Role
from anonymization.methods.voices.vectors import read_vector
from common.atomic_write import write_atomically
from common.csv_rows import read_csv, to_number
from common.errors import InputError
from common.harmless_cells import mark_text, unmark_text
from common.line_texts import find_hidden_character
from common.problems import Problem, ProblemList, Severity, has_errors, shorten
from common.text_files import Source, read_text_file, source_name

COLUMNS = ("role", "split", "level", "speaker", "utterance", "key")
MIXTURE, VECTOR = "mixture", "vector"
# What splits a line, steers a terminal or has no place in UTF-8.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?(?:\d++\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z", re.ASCII)

TARGETS_FILE = "targets.csv"
UTTERANCE, TARGET, DATA_SET = "utterance", "target", "data_set"
LONGEST_NAME = 200
_NAMES_SHOWN = 5

TargetRow = tuple[str, str, str]  # data set (empty where the file has no such column), utterance, target


@dataclass(frozen=True, slots=True)
class _File:
    """What a file says.

    Attributes:
        name: the file as its owner knows it.
        problems: of every line that is not in order.
    """

    name: str
    problems: tuple[Problem, ...]

    def _refuse_errors(self) -> None:
        """Raise MethodError where anything is wrong; it names every kind of problem, with lines."""
        if errors := [problem for problem in self.problems if problem.severity is Severity.ERROR]:
            raise MethodError("\n".join(problem.sentence() for problem in shorten(errors)))


@dataclass(frozen=True, slots=True)
class VoiceFile(_File):
    """A file of voices.

    Attributes:
        parameter_names: the columns after the key, in their order.
        assignments: of every line that is in order, with its number.
    """

    parameter_names: tuple[str, ...]
    assignments: tuple[Assignment, ...]

    def require(self) -> tuple[Assignment, ...]:
        """Return the assignments. Raises MethodError where anything in the file is wrong."""
        self._refuse_errors()
        return self.assignments


def list_voice_rows(assignments: Iterable[Assignment], parameter_names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the heading and a row for each assignment, as cells that no spreadsheet runs; for writers of any kind.

    Raises:
        MethodError: a name that a line cannot hold, or a voice with other parameters.
    """
    yield [*COLUMNS, *map(_cell, parameter_names)]
    for row in assignments:
        if list(parameter_names) == [MIXTURE]:
            yield [*map(_cell, _names(row)), _cell(_write_mixture(row.voice.mixture))]
            continue
        if list(parameter_names) == [VECTOR]:
            yield [*map(_cell, _names(row)), _cell(row.voice.vector)]
            continue
        if set(row.voice.parameters) != set(parameter_names):
            raise MethodError(
                f"The file of voices has the parameters {', '.join(parameter_names) or 'none'}; "
                f"the voice of {row.speaker} has {', '.join(row.voice.parameters) or 'none'}."
            )
        if not all(map(math.isfinite, row.voice.parameters.values())):
            raise MethodError(f"A file of voices holds finite numbers; the voice of {row.speaker} has others.")
        yield [*map(_cell, _names(row)), *(repr(float(row.voice.parameters[name])) for name in parameter_names)]


def list_voice_columns(method: Anonymizer) -> list[str]:
    """Return what follows the key in a file of the method's voices."""
    if makes_vectors(method):
        return [VECTOR]
    return [MIXTURE] if plans_voices(method) else [parameter.name for parameter in method.parameters]


def _names(row: Assignment) -> tuple[str, ...]:
    return row.role, row.split, row.level, row.speaker, row.utterance, row.voice.key


def _write_mixture(mixture: Mapping[str, float]) -> str:
    return " ".join(f"{name}={float(share)!r}" for name, share in mixture.items())


def _read_mixture(cell: str) -> dict[str, float]:
    """Return the shares of a cell. Raises ValueError where it is none."""
    found = {name: float(share) for name, _, share in (part.rpartition("=") for part in cell.split())}
    if not found or "" in found or not all(0 < share < math.inf for share in found.values()):
        raise ValueError(cell)
    return found


def write_voices(target: Path | TextIO, assignments: Iterable[Assignment], parameter_names: Sequence[str]) -> None:
    """Write the voices to a file, under its name only when it is complete, or to an open text stream.

    Args:
        parameter_names: the columns after the key (`list_voice_columns`).

    Raises:
        MethodError: what `list_voice_rows` refuses, or a file that cannot be written.
    """
    text = _as_csv(list_voice_rows(assignments, parameter_names))
    if not isinstance(target, Path):
        target.write(text)
        return
    try:
        write_atomically(target, text.encode())
    except OSError as error:
        raise MethodError(f"{target}: the voices cannot be written: {error.strerror}. Name another file.") from None


def _as_csv(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


class _Sheet:
    """A file that is read line by line, and what is wrong with it."""

    def __init__(self, source: Source, name: str | None) -> None:
        self.name = name or source_name(source)
        self.problems = ProblemList()
        text, problems = read_text_file(source, self.name)
        self.table = read_csv(text, {*COLUMNS, UTTERANCE, TARGET, DATA_SET}.__contains__)
        self.problems.keep(problems)

    def add(self, code: str, line: int | None, expected: str, found: str, remedy: str) -> None:
        self.problems.add(Problem(code, self.name, expected, found, remedy, line=line))

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The records, each with the line it begins in; blank lines are left out."""
        try:
            yield from self.table.rows()
        except InputError as error:
            remedy = "Close every quoted cell, double quotes within one."
            self.add("malformed-line", error.line, "cells between commas, semicolons or tabs", f"“{error}”", remedy)

    def has_width(self, line: int, cells: Sequence[str], wanted: int) -> bool:
        """Return whether a record has so many cells."""
        if len(cells) != wanted:
            expected = f"{wanted} cells as in the heading"
            self.add("malformed-line", line, expected, f"{len(cells)}", "Add or remove cells.")
        return len(cells) == wanted

    def require_rows(self, rows: Collection[object], expected: str, remedy: str) -> None:
        """An empty file is a problem, unless another one says why."""
        if not rows and not has_errors(self.problems.report()):
            self.add("empty-file", None, expected, "no line", remedy)


def read_voices(source: Source, name: str | None = None) -> VoiceFile:
    """Read a file of voices; every line that is out of order is a problem and none stops the reading.

    Args:
        name: the file as its owner knows it.
    """
    sheet = _Sheet(source, name)
    assignments: list[Assignment] = []
    parameter_names: tuple[str, ...] | None = None
    for line, cells in sheet.records():
        if parameter_names is None:
            if not _check_heading(sheet, line, cells):
                return VoiceFile(sheet.name, sheet.problems.report(), (), ())
            parameter_names = tuple(map(unmark_text, cells[len(COLUMNS) :]))
        elif row := _assignment(sheet, line, cells, parameter_names):
            assignments.append(row)
    expected = f"a heading ({', '.join(COLUMNS)}, parameters) and a line for each voice"
    sheet.require_rows(assignments, expected, "Export the voices again.")
    _find_contradictions(sheet, assignments)
    return VoiceFile(sheet.name, sheet.problems.report(), parameter_names or (), tuple(assignments))


def _cell(text: str) -> str:
    if _UNWRITABLE.search(text):
        raise MethodError(f"A file of voices holds no control or broken characters in a name; found {text!a}.")
    return mark_text(text)


def _check_heading(sheet: _Sheet, line: int, cells: Sequence[str]) -> bool:
    if tuple(cells[: len(COLUMNS)]) != COLUMNS:
        remedy = "Export the voices again, or separate the cells by commas, semicolons or tabs."
        sheet.add("wrong-heading", line, f"the columns {','.join(COLUMNS)} first", f"“{','.join(cells)}”", remedy)
        return False
    names = [unmark_text(cell) for cell in cells[len(COLUMNS) :]]
    if "" in names or len({*names, *COLUMNS}) < len(names) + len(COLUMNS):
        expected, found = "a name of its own for each parameter", f"“{','.join(names)}”"
        sheet.add("wrong-heading", line, expected, found, "Rename or remove columns.")
        return False
    return True


def _assignment(sheet: _Sheet, line: int, cells: Sequence[str], parameter_names: Sequence[str]) -> Assignment | None:
    if not sheet.has_width(line, cells, len(COLUMNS) + len(parameter_names)):
        return None
    fields = dict(zip(COLUMNS, map(unmark_text, cells), strict=False))
    problems, mixture, vector = list(_wrong_fields(fields)), dict[str, float](), ""
    if list(parameter_names) == [MIXTURE]:
        try:
            mixture, parameter_names = _read_mixture(unmark_text(cells[-1])), ()
        except ValueError:
            found = f"“{cells[-1]}”"
            problems.append(("shares such as af_sky=0.25 bf_emma=0.75", found, "Export the voices again."))
    elif list(parameter_names) == [VECTOR]:
        vector, parameter_names = unmark_text(cells[-1]), ()
        try:
            read_vector(vector)
        except MethodError:
            problems.append(("numbers as base64 of float16", f"“{vector[:20]}”", "Export the voices again."))
    else:
        written = [to_number(cell, sheet.table.delimiter) for cell in cells[len(COLUMNS) :]]
        cells = [*cells[: len(COLUMNS)], *written]
        problems += _wrong_numbers(parameter_names, cells[len(COLUMNS) :])
    for problem in problems:
        sheet.add("malformed-line", line, *problem)
    if problems:
        return None
    numbers = {name: float(cell) for name, cell in zip(parameter_names, cells[len(COLUMNS) :], strict=False)}
    voice = PseudoSpeaker(fields["key"], numbers, mixture=mixture, vector=vector)
    role, level = cast("Role", fields["role"]), cast("Level", fields["level"])
    return Assignment(role, fields["split"], level, fields["speaker"], fields["utterance"], voice, line)


def _wrong_fields(fields: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield what was expected and found, and what to do."""
    choices: dict[str, tuple[str, ...]] = {"role": get_args(Role), "level": get_args(Level)}
    for column, known in choices.items():
        if fields[column] not in known:
            yield f"the {column} {', '.join(known[:-1])} or {known[-1]}", f"“{fields[column]}”", "Name one of these."
    for column in ("split", "speaker", "key"):
        if not fields[column]:
            yield f"a {column}", "none", "Fill the cell."
    if fields["level"] == "utterance" and not fields["utterance"]:
        yield "an utterance, as the level is utterance", "none", "Name the utterance, or set the level to speaker."
    for column, text in fields.items():
        if _UNWRITABLE.search(text):
            yield f"a {column} without control characters", ascii(text), "Write the name on one line."


def _wrong_numbers(parameter_names: Iterable[str], cells: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for parameter, cell in zip(parameter_names, cells, strict=True):
        if not _NUMBER.match(cell) or not math.isfinite(float(cell)):
            yield f"a number for {parameter}, such as 0.75", f"“{cell}”", "Write it with a decimal point."


def _find_contradictions(sheet: _Sheet, assignments: Iterable[Assignment]) -> None:
    """Lines that name the same and give it another voice."""
    first: dict[tuple[str, ...], Assignment] = {}
    for row in assignments:
        earlier = first.setdefault((row.role, row.split, row.level, row.speaker, row.utterance), row)
        if earlier.voice != row.voice:
            expected = f"one voice for {row.utterance or f'speaker {row.speaker}'}"
            found = f"another one than in line {earlier.line}"
            sheet.add("contradiction", row.line, expected, found, "Keep the line that was used.")


# Targets -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetFile(_File):
    """A file of targets. rows: data set, utterance and target of every line that is in order."""

    rows: tuple[TargetRow, ...]

    def require(self) -> Self:
        """Return the file itself. Raises MethodError where anything in it is wrong."""
        self._refuse_errors()
        return self

    def targets_in(self, data_set: str) -> dict[str, str]:
        """Return target by utterance of a data set; lines that name none belong to all."""
        return {utterance: target for of, utterance, target in self.rows if of in ("", data_set)}

    def check(self, expected: Collection[str], data_set: str) -> list[Problem]:
        """Return what does not fit a data set.

        Args:
            expected: the names of all its utterances.
        """
        known, found = self.targets_in(data_set), list[Problem]()
        if missing := sorted(set(expected) - known.keys()):
            text = f"{len(missing):,} of {len(expected):,} without one: {_listed(missing)}"
            wanted = f"a target for each utterance of {data_set}"
            found.append(Problem("no-target", self.name, wanted, text, "Add a line for each."))
        own = {utterance for of, utterance, _ in self.rows if of == data_set}
        if strangers := sorted(own - set(expected)):
            wanted, text = f"utterances of {data_set}", f"{len(strangers):,} others: {_listed(strangers)}"
            remedy = "They are ignored; correct their names, or remove them."
            found.append(Problem("unknown-utterance", self.name, wanted, text, remedy, Severity.WARNING))
        return found


def list_target_rows(rows: Iterable[TargetRow]) -> Iterator[list[str]]:
    """Yield the heading and a line for each row, as cells that no spreadsheet runs; data sets where any row names
    one."""
    kept = list(rows)
    has_sets = any(data_set for data_set, _, _ in kept)
    yield [*([DATA_SET] if has_sets else []), UTTERANCE, TARGET]
    for data_set, utterance, target in kept:
        yield [mark_text(name) for name in ((data_set,) if has_sets else ()) + (utterance, target)]


def write_targets_csv(rows: Iterable[TargetRow]) -> str:
    """Return the text of a file of targets."""
    return _as_csv(list_target_rows(rows))


def read_targets(source: Source, name: str | None = None) -> TargetFile:
    """Read a file of targets; every line that is out of order is a problem and none stops the reading.

    Args:
        name: the file as its owner knows it.
    """
    sheet = _Sheet(source, name)
    rows: dict[tuple[str, str], tuple[str, int]] = {}
    columns: dict[str, int] = {}
    for line, written in sheet.records():
        cells = [unmark_text(cell).strip() for cell in written]
        if not columns:
            columns = _find_columns(sheet, line, cells)
            if not columns:
                return TargetFile(sheet.name, sheet.problems.report(), ())
        elif row := _read_target(sheet, line, cells, columns):
            data_set, utterance, target = row
            earlier, at = rows.setdefault((data_set, utterance), (target, line))
            if earlier != target:
                expected, found = f"one target for {utterance}", f"{earlier} in line {at} and {target} here"
                sheet.add("contradiction", line, expected, found, "Keep the line that was used.")
    expected = f"a heading ({UTTERANCE},{TARGET}) and a line for each utterance"
    sheet.require_rows(rows, expected, "Write the targets that the system used.")
    kept = tuple((data_set, utterance, target) for (data_set, utterance), (target, _) in rows.items())
    return TargetFile(sheet.name, sheet.problems.report(), kept)


def _find_columns(sheet: _Sheet, line: int, cells: Sequence[str]) -> dict[str, int]:
    """Place of each column that counts; empty where one is missing or stands twice."""
    wanted = [column for column in (DATA_SET, UTTERANCE, TARGET) if column in cells or column != DATA_SET]
    if any(cells.count(column) != 1 for column in wanted):
        expected, found = f"a heading with {UTTERANCE} and {TARGET}, once each", f"“{','.join(cells)}”"
        remedy = "Write it above the first line, cells separated by commas."
        sheet.add("wrong-heading", line, expected, found, remedy)
        return {}
    return {column: cells.index(column) for column in wanted} | {"": len(cells)}


def _read_target(sheet: _Sheet, line: int, cells: Sequence[str], columns: Mapping[str, int]) -> TargetRow | None:
    if not sheet.has_width(line, cells, columns[""]):
        return None
    named = {column: cells[place] for column, place in columns.items() if column}
    for column, text in named.items():
        if not text or len(text) > LONGEST_NAME or find_hidden_character(text):
            found = "none" if not text else f"{len(text)} characters" if len(text) > LONGEST_NAME else ascii(text)
            expected = f"the name of the {column.replace('_', ' ')}, at most {LONGEST_NAME} printable characters"
            sheet.add("malformed-line", line, expected, found, "Correct the cell.")
            return None
    return named.get(DATA_SET, ""), named[UTTERANCE], named[TARGET]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
