"""Targets as a CSV file: which utterance got the voice of which target, for runs of ours and for uploaded systems.

A heading `utterance,target` and a line for each utterance; further columns are left alone. Where one name stands for
recordings of two data sets, a column `data_set` tells them apart. Conventions: UTF-8, LF, a comma; a text that a
spreadsheet would run, or that starts with an apostrophe, gets an apostrophe before it, which reading takes off again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anonymization.methods.errors import MethodError
from evaluation.formats.csv_cells import harmless_cell
from evaluation.formats.problem_list import ProblemList, shorten
from evaluation.formats.problems import Problem, Severity, has_errors
from evaluation.formats.text_files import Source, read_text_file, source_name

FILE_NAME = "targets.csv"
UTTERANCE, TARGET, DATA_SET = "utterance", "target", "data_set"
LONGEST_NAME = 200
_NAMES_SHOWN = 5

Row = tuple[str, str, str]  # data set (empty where the file has no such column), utterance, target


@dataclass(frozen=True, slots=True)
class TargetFile:
    """What a file says.

    Attributes:
        name: the file as its owner knows it.
        rows: data set, utterance and target of every line that is in order.
        problems: of all others.
    """

    name: str
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]

    def require(self) -> TargetFile:
        """The file itself.

        Raises:
            MethodError: anything in it is wrong; names every kind of fault, with lines.
        """
        errors = [problem for problem in self.problems if problem.severity is Severity.ERROR]
        if errors:
            raise MethodError("\n".join(problem.sentence() for problem in shorten(errors)))
        return self

    def targets_in(self, data_set: str) -> dict[str, str]:
        """Target by utterance of a data set; lines that name none belong to all."""
        return {utterance: target for of, utterance, target in self.rows if of in ("", data_set)}

    def check(self, expected: Collection[str], data_set: str) -> list[Problem]:
        """What does not fit a data set.

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
            remedy = "They count for nothing; correct their names, or remove them."
            found.append(Problem("unknown-utterance", self.name, wanted, text, remedy, Severity.WARNING))
        return found


def target_rows(rows: Iterable[Row]) -> Iterator[list[str]]:
    """The heading and a line for each row, as cells that no spreadsheet runs; data sets where any row names one."""
    kept = list(rows)
    has_sets = any(data_set for data_set, _, _ in kept)
    yield [*([DATA_SET] if has_sets else []), UTTERANCE, TARGET]
    for data_set, utterance, target in kept:
        yield [_cell(name) for name in ((data_set,) if has_sets else ()) + (utterance, target)]


def targets_as_csv(rows: Iterable[Row]) -> str:
    """The text of a file of targets."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(target_rows(rows))
    return text.getvalue()


def read_targets(source: Source, name: str | None = None) -> TargetFile:
    """Read a file of targets; every line that is out of order is a problem and none stops the reading.

    Args:
        name: the file as its owner knows it.
    """
    name = name or source_name(source)
    text, faults = read_text_file(source, name)
    problems = ProblemList()
    problems.keep(faults)
    rows: dict[tuple[str, str], tuple[str, int]] = {}
    columns: dict[str, int] = {}
    for line, cells in _records(name, text, problems):
        if not columns:
            columns = _columns(name, line, cells, problems)
            if not columns:
                return TargetFile(name, (), problems.report())
        elif row := _row(name, line, cells, columns, problems):
            _keep(name, line, row, rows, problems)
    if not rows and not has_errors(problems.report()):
        expected = f"a heading ({UTTERANCE},{TARGET}) and a line for each utterance"
        problems.add(Problem("empty-file", name, expected, "no line", "Write the targets that the system used."))
    kept = tuple((data_set, utterance, target) for (data_set, utterance), (target, _) in rows.items())
    return TargetFile(name, kept, problems.report())


def _records(name: str, text: str, problems: ProblemList) -> Iterator[tuple[int, list[str]]]:
    """The records, each with the line it begins in; blank lines are left out."""
    reader = csv.reader(io.StringIO(text), strict=True)
    begin = 1
    try:
        for cells in reader:
            if any(cells):
                yield begin, [cell.removeprefix("'").strip() for cell in cells]
            begin = reader.line_num + 1
    except csv.Error as error:
        expected, remedy = "comma-separated cells", "Close every quoted cell, double quotes within one."
        problems.add(Problem("malformed-line", name, expected, f"“{error}”", remedy, line=begin))


def _columns(name: str, line: int, cells: Sequence[str], problems: ProblemList) -> dict[str, int]:
    """Place of each column that counts; empty where one is missing or stands twice."""
    wanted = [column for column in (DATA_SET, UTTERANCE, TARGET) if column in cells or column != DATA_SET]
    if any(cells.count(column) != 1 for column in wanted):
        expected, found = f"a heading with {UTTERANCE} and {TARGET}, once each", f"“{','.join(cells)}”"
        remedy = "Write it above the first line, cells separated by commas."
        problems.add(Problem("wrong-heading", name, expected, found, remedy, line=line))
        return {}
    return {column: cells.index(column) for column in wanted} | {"": len(cells)}


def _row(name: str, line: int, cells: Sequence[str], columns: Mapping[str, int], problems: ProblemList) -> Row | None:
    if len(cells) != columns[""]:
        expected = f"{columns['']} cells as in the heading"
        found, remedy = f"{len(cells)}", "Add or remove cells."
        problems.add(Problem("malformed-line", name, expected, found, remedy, line=line))
        return None
    named = {column: cells[place] for column, place in columns.items() if column}
    for column, text in named.items():
        if not text or len(text) > LONGEST_NAME or not text.isprintable():
            found = "none" if not text else f"{len(text)} characters" if len(text) > LONGEST_NAME else ascii(text)
            expected = f"the name of the {column.replace('_', ' ')}, at most {LONGEST_NAME} printable characters"
            problems.add(Problem("malformed-line", name, expected, found, "Correct the cell.", line=line))
            return None
    return named.get(DATA_SET, ""), named[UTTERANCE], named[TARGET]


def _keep(name: str, line: int, row: Row, rows: dict[tuple[str, str], tuple[str, int]], problems: ProblemList) -> None:
    """Keep a row, unless an earlier line gave its utterance another target."""
    data_set, utterance, target = row
    earlier, at = rows.setdefault((data_set, utterance), (target, line))
    if earlier != target:
        expected, found = f"one target for {utterance}", f"{earlier} in line {at} and {target} here"
        problems.add(Problem("contradiction", name, expected, found, "Keep the line that was used.", line=line))


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith("'") or harmless_cell(text) != text else text


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
