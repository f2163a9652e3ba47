"""A report that stays bounded: of many faults of one cause the first thousands are rows, the others a count.

A cause is a kind of fault (`Problem.code`) of one severity with one remedy, as pages and terminals group them. Whoever
shows a report cuts it further (`shorten`); whoever stores it or hands it over gives every row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile

from evaluation.formats.problems import Problem, Severity

ROWS_PER_CAUSE = 10_000
EXAMPLES_PER_CAUSE = 5


@dataclass(slots=True)
class _Cause:
    rows: list[Problem] = field(default_factory=list)
    counted: list[Problem] = field(default_factory=list)  # what a report that came in had cut
    left_out: list[Problem] = field(default_factory=list)  # the first and the last of them
    left_out_count: int = 0
    seen: set[int] = field(default_factory=set)  # hashes: of 600,000 faults the texts would fill the memory

    def report(self) -> list[Problem]:
        if not self.counted and self.left_out_count < 2:
            return [*self.rows, *self.left_out]
        if len(self.counted) == 1 and not self.left_out:
            return [*self.rows, *self.counted]
        count = self.left_out_count + sum(problem.count for problem in self.counted)
        last = [*self.counted, *self.left_out][-1]
        file = _common_place(problem.file for problem in (*self.rows, *self.counted, *self.left_out))
        expected, found = "no further fault of this kind", f"{count} more"
        return [*self.rows, replace(last, file=file, line=None, expected=expected, found=found, count=count)]


class ProblemList:
    """Collects problems; `report` gives them back by cause, in order of first appearance.

    Args:
        rows_per_cause: how many problems of a cause are kept as they are.
    """

    def __init__(self, rows_per_cause: int = ROWS_PER_CAUSE) -> None:
        self._rows_per_cause = rows_per_cause
        self._causes: dict[tuple[Severity, str, str], _Cause] = {}

    def add(self, problem: Problem) -> None:
        """Add one problem, as a row of its cause or to its count; the same twice is one."""
        cause = self._causes.setdefault((problem.severity, problem.code, problem.remedy), _Cause())
        if problem.count > 1:
            cause.counted.append(problem)
            return
        key = hash(problem)
        if key in cause.seen:
            return
        cause.seen.add(key)
        if len(cause.rows) < self._rows_per_cause:
            cause.rows.append(problem)
        else:
            cause.left_out = [*cause.left_out[:1], problem]
            cause.left_out_count += 1

    def keep(self, problems: Iterable[Problem]) -> None:
        """Add all problems of another report; what it only counted stays counted."""
        for problem in problems:
            self.add(problem)

    def error_codes(self) -> set[str]:
        """The kinds of errors so far."""
        return {code for severity, code, _ in self._causes if severity is Severity.ERROR}

    def report(self) -> tuple[Problem, ...]:
        """Each cause: its rows and, where there were more, how many."""
        return tuple(problem for cause in self._causes.values() for problem in cause.report())


def shorten(problems: Iterable[Problem], rows_per_cause: int = EXAMPLES_PER_CAUSE) -> tuple[Problem, ...]:
    """A report as a terminal shows it: the first few of each cause and one that counts all the others."""
    short = ProblemList(rows_per_cause)
    short.keep(problems)
    return short.report()


def _common_place(files: Iterable[str]) -> str:
    """The file that all are, else the folder in which all are; ``.`` where that is the folder handed in."""
    names = set(files)
    if len(names) == 1:
        return names.pop()
    levels = zip(*(name.split("/")[:-1] for name in names), strict=False)
    return "/".join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)) or "."
