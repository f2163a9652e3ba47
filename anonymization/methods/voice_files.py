"""Voices as a CSV file: who got which pseudo-speaker, to be kept, checked, handed over and used again.

One line for each assignment: role, split, level, speaker, utterance (empty where a line stands for all utterances of a
speaker), key, then a column for each parameter. Conventions: UTF-8, LF, a comma; numbers are written so that the same
float64 is read back; a text that a spreadsheet would run, or that starts with an apostrophe, gets an apostrophe before
it, which reading takes off again.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast, get_args

from anonymization.methods.checks import Assignment
from anonymization.methods.contract import PseudoSpeaker
from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import Level, Role
from evaluation.formats.csv_cells import harmless_cell
from evaluation.formats.problem_list import ProblemList, shorten
from evaluation.formats.problems import Problem, Severity, has_errors
from evaluation.formats.text_files import Source, read_text_file, source_name

COLUMNS = ("role", "split", "level", "speaker", "utterance", "key")
# What splits a line, steers a terminal or has no place in UTF-8.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class VoiceFile:
    """What a file says.

    Attributes:
        name: the file as its owner knows it.
        parameter_names: the columns after the key, in their order.
        assignments: of every line that is in order, with its number.
        problems: of all others.
    """

    name: str
    parameter_names: tuple[str, ...]
    assignments: tuple[Assignment, ...]
    problems: tuple[Problem, ...]

    def require(self) -> tuple[Assignment, ...]:
        """The assignments.

        Raises:
            MethodError: anything in the file is wrong; names every kind of fault, with lines.
        """
        errors = [problem for problem in self.problems if problem.severity is Severity.ERROR]
        if errors:
            raise MethodError("\n".join(problem.sentence() for problem in shorten(errors)))
        return self.assignments


def voice_rows(assignments: Iterable[Assignment], parameter_names: Sequence[str]) -> Iterator[list[str]]:
    """The heading and a row for each assignment, as cells that no spreadsheet runs; for writers of any kind.

    Raises:
        MethodError: a name that a line cannot hold, or a voice with other parameters.
    """
    yield [*COLUMNS, *map(_cell, parameter_names)]
    for row in assignments:
        if set(row.voice.parameters) != set(parameter_names):
            raise MethodError(
                f"The file of voices has the parameters {', '.join(parameter_names) or 'none'}; "
                f"the voice of {row.speaker} has {', '.join(row.voice.parameters) or 'none'}."
            )
        if not all(map(math.isfinite, row.voice.parameters.values())):
            raise MethodError(f"A file of voices holds finite numbers; the voice of {row.speaker} has others.")
        names = (row.role, row.split, row.level, row.speaker, row.utterance, row.voice.key)
        yield [*map(_cell, names), *(repr(float(row.voice.parameters[name])) for name in parameter_names)]


def write_voices(target: Path | TextIO, assignments: Iterable[Assignment], parameter_names: Sequence[str]) -> None:
    """Write the voices to a file, under its name only when it is complete, or to an open text stream.

    Args:
        parameter_names: the columns after the key (`Parameter.name`).

    Raises:
        MethodError: what `voice_rows` refuses, or a file that cannot be written.
    """
    rows = voice_rows(assignments, parameter_names)
    if not isinstance(target, Path):
        csv.writer(target, lineterminator="\n").writerows(rows)
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        draft.replace(target)
    except OSError as error:
        raise MethodError(f"{target}: the voices cannot be written: {error.strerror}. Name another file.") from None
    finally:
        draft.unlink(missing_ok=True)


def read_voices(source: Source, name: str | None = None) -> VoiceFile:
    """Read a file of voices; every line that is out of order is a problem and none stops the reading.

    Args:
        name: the file as its owner knows it.
    """
    name = name or source_name(source)
    text, faults = read_text_file(source, name)
    problems = ProblemList()
    problems.keep(faults)
    assignments: list[Assignment] = []
    parameter_names: tuple[str, ...] | None = None
    for line, cells in _records(name, text, problems):
        if parameter_names is None:
            if not _check_heading(name, line, cells, problems):
                return VoiceFile(name, (), (), problems.report())
            parameter_names = tuple(map(_read_back, cells[len(COLUMNS) :]))
        elif row := _assignment(name, line, cells, parameter_names, problems):
            assignments.append(row)
    if not assignments and not has_errors(problems.report()):
        expected = f"a heading ({', '.join(COLUMNS)}, parameters) and a line for each voice"
        problems.add(Problem("empty-file", name, expected, "no line", "Export the voices again."))
    problems.keep(_contradictions(name, assignments))
    return VoiceFile(name, parameter_names or (), tuple(assignments), problems.report())


def _cell(text: str) -> str:
    if _UNWRITABLE.search(text):
        raise MethodError(f"A file of voices holds no control or broken characters in a name; found {text!a}.")
    return f"'{text}" if text.startswith("'") or harmless_cell(text) != text else text


def _read_back(cell: str) -> str:
    return cell.removeprefix("'")


def _records(name: str, text: str, problems: ProblemList) -> Iterator[tuple[int, list[str]]]:
    """The records, each with the line it begins in; blank lines are left out."""
    reader = csv.reader(io.StringIO(text), strict=True)
    begin = 1
    try:
        for cells in reader:
            if any(cells):
                yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        expected, remedy = "comma-separated cells", "Close every quoted cell, double quotes within one."
        problems.add(Problem("malformed-line", name, expected, f"“{error}”", remedy, line=begin))


def _check_heading(name: str, line: int, cells: Sequence[str], problems: ProblemList) -> bool:
    if tuple(cells[: len(COLUMNS)]) != COLUMNS:
        expected, found = f"the columns {','.join(COLUMNS)} first", f"“{','.join(cells)}”"
        remedy = "Export the voices again, or separate the cells by commas."
        problems.add(Problem("wrong-heading", name, expected, found, remedy, line=line))
        return False
    names = [_read_back(cell) for cell in cells[len(COLUMNS) :]]
    if "" in names or len({*names, *COLUMNS}) < len(names) + len(COLUMNS):
        expected, found = "a name of its own for each parameter", f"“{','.join(names)}”"
        problems.add(Problem("wrong-heading", name, expected, found, "Rename or remove columns.", line=line))
        return False
    return True


def _assignment(
    name: str, line: int, cells: Sequence[str], parameter_names: Sequence[str], problems: ProblemList
) -> Assignment | None:
    wanted = len(COLUMNS) + len(parameter_names)
    if len(cells) != wanted:
        expected, remedy = f"{wanted} cells as in the heading", "Add or remove cells."
        problems.add(Problem("malformed-line", name, expected, f"{len(cells)}", remedy, line=line))
        return None
    fields = dict(zip(COLUMNS, map(_read_back, cells), strict=False))
    faults = [*_wrong_fields(fields), *_wrong_numbers(parameter_names, cells[len(COLUMNS) :])]
    for expected, found, remedy in faults:
        problems.add(Problem("malformed-line", name, expected, found, remedy, line=line))
    if faults:
        return None
    numbers = map(float, cells[len(COLUMNS) :])
    voice = PseudoSpeaker(fields["key"], dict(zip(parameter_names, numbers, strict=True)))
    role, level = cast("Role", fields["role"]), cast("Level", fields["level"])
    return Assignment(role, fields["split"], level, fields["speaker"], fields["utterance"], voice, line)


def _wrong_fields(fields: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """What was expected and found, and what to do."""
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


def _contradictions(name: str, assignments: Iterable[Assignment]) -> Iterator[Problem]:
    """Lines that name the same and give it another voice."""
    first: dict[tuple[str, ...], Assignment] = {}
    for row in assignments:
        earlier = first.setdefault((row.role, row.split, row.level, row.speaker, row.utterance), row)
        if earlier.voice != row.voice:
            what = row.utterance or f"speaker {row.speaker}"
            expected, found = f"one voice for {what}", f"another one than in line {earlier.line}"
            yield Problem("contradiction", name, expected, found, "Keep the line that was used.", line=row.line)
