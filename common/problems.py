"""What is wrong with an input, as data, and reports of it that stay bounded.

A reader or check never stops at the first problem: it collects every `Problem` and hands all of them to the caller, who
shows the whole report at once. An *error* makes the input unusable, a *warning* deserves a look, a *note* tells a fact.
Of many problems of one cause a report holds the first thousands as rows and counts the others. A cause is a kind of
problem (`Problem.code`) of one severity with one remedy in one data set, as pages and terminals group them. Code that
shows a report cuts it further (`shorten`); what is stored or exported holds every row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from types import MappingProxyType
from typing import Generic, TypeVar

ROWS_PER_CAUSE = 10_000
EXAMPLES_PER_CAUSE = 5
SHOWN_CHARACTERS = 400
_ABBREVIATIONS = {"asr": "ASR", "cllr": "C_llr", "eer": "EER", "rocch": "ROCCH", "uar": "UAR", "wer": "WER"}
# Control characters and signs of direction: what steers a terminal, splits a line, or makes text read as other text.
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


T = TypeVar("T")


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of an input, complete enough to be acted on.

    What it quotes of a file (`expected`, `found`) is cut where it is long, and what would steer a terminal is escaped.

    Attributes:
        code: short stable name of the kind of problem, such as ``wrong-rate``; reports group by it.
        file: path of the file as its owner knows it (relative to what was given).
        line: line number in that file, from 1; None where lines mean nothing.
        expected: what should have been there.
        found: what was there instead.
        remedy: what the owner of the file should do.
        count: how many problems this one stands for, where a report names only some of many alike.
        data_set: the data set that it belongs to; empty where it belongs to none, or to an input as a whole.
    """

    code: str
    file: str
    expected: str
    found: str
    remedy: str
    severity: Severity = Severity.ERROR
    line: int | None = None
    count: int = 1
    data_set: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "severity", Severity(self.severity))  # stored as a text
        for name in ("expected", "found"):
            object.__setattr__(self, name, _shown(getattr(self, name)))

    def sentence(self) -> str:
        """Return the whole problem in one line of prose."""
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{place}: expected {self.expected}, found {self.found}. {self.remedy}"

    def within(self, data_set: str) -> Problem:
        """Return the problem as one of a data set."""
        return replace(self, data_set=data_set)


@dataclass(frozen=True, slots=True)
class ProblemGroup(Generic[T]):
    """Problems of one cause: the first of them as examples, and how many there are."""

    severity: Severity
    title: str
    remedy: str
    examples: Sequence[T]
    count: int
    code: str = ""
    data_set: str = ""

    @property
    def more(self) -> int:
        """Return how many are no examples."""
        return self.count - len(self.examples)


def group_problems(
    problems: Iterable[Problem], examples: int = EXAMPLES_PER_CAUSE, titles: Mapping[str, str] = MappingProxyType({})
) -> list[ProblemGroup[Problem]]:
    """Group problems by data set and cause: data sets as they come first, of each the gravest first.

    What only counts further problems is no example, unless there is nothing else.

    Args:
        titles: by code; other codes become words.
    """
    members: dict[tuple[str, Severity, str, str], list[Problem]] = {}
    for problem in problems:
        members.setdefault((problem.data_set, problem.severity, problem.code, problem.remedy), []).append(problem)
    groups = []
    for (data_set, severity, code, remedy), found in members.items():
        shown = ([problem for problem in found if problem.count == 1] or found)[:examples]
        count = sum(problem.count for problem in found)
        groups.append(ProblemGroup(severity, titles.get(code) or title_of(code), remedy, shown, count, code, data_set))
    order, sets = list(Severity), list(dict.fromkeys(group.data_set for group in groups))
    return sorted(groups, key=lambda group: (sets.index(group.data_set), order.index(group.severity)))


def title_of(code: str) -> str:
    """Return the heading of a kind of problem."""
    words = " ".join(_ABBREVIATIONS.get(word, word) for word in code.split("-"))
    return words[:1].upper() + words[1:]


def find_first_error(problems: Iterable[Problem]) -> Problem:
    """Return the first error, which is why nothing could be read; the first problem where there is no error."""
    given = list(problems)
    return next((problem for problem in given if problem.severity is Severity.ERROR), given[0])


def count_problems(problems: Iterable[Problem], severity: Severity) -> int:
    """Return how many problems of a severity a report holds, those included that it only counts."""
    return sum(problem.count for problem in problems if problem.severity is severity)


def has_errors(problems: Iterable[Problem]) -> bool:
    """Return whether any of the problems makes the input unusable."""
    return any(problem.severity is Severity.ERROR for problem in problems)


def _shown(text: str) -> str:
    escaped = STEERING.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text[: SHOWN_CHARACTERS + 1])
    return escaped if len(escaped) <= SHOWN_CHARACTERS else f"{escaped[: SHOWN_CHARACTERS - 1]}…"


class ProblemFound(Exception):  # noqa: N818
    """A problem after which a line, or a whole archive, is read no further."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.sentence())
        self.problem = problem


@dataclass(slots=True)
class _Cause:
    rows: list[Problem] = field(default_factory=list)
    counted: list[Problem] = field(default_factory=list)  # what a report that came in had cut
    left_out: list[Problem] = field(default_factory=list)  # the first and the last of them
    left_out_count: int = 0
    seen: set[int] = field(default_factory=set)  # hashes: of 600,000 problems the texts would fill the memory

    def report(self) -> list[Problem]:
        if not self.counted and self.left_out_count < 2:
            return [*self.rows, *self.left_out]
        if len(self.counted) == 1 and not self.left_out:
            return [*self.rows, *self.counted]
        count = self.left_out_count + sum(problem.count for problem in self.counted)
        last = [*self.counted, *self.left_out][-1]
        file = _common_place(problem.file for problem in (*self.rows, *self.counted, *self.left_out))
        expected, found = "no further problem of this kind", f"{count} more"
        return [*self.rows, replace(last, file=file, line=None, expected=expected, found=found, count=count)]


class ProblemList:
    """Collects problems; `report` gives them back by cause, in order of first appearance.

    Args:
        rows_per_cause: how many problems of a cause are kept as they are.
    """

    def __init__(self, rows_per_cause: int = ROWS_PER_CAUSE) -> None:
        self._rows_per_cause = rows_per_cause
        self._causes: dict[tuple[str, Severity, str, str], _Cause] = {}

    def add(self, problem: Problem) -> None:
        """Add one problem, as a row of its cause or to its count; the same twice is one."""
        cause = self._causes.setdefault((problem.data_set, problem.severity, problem.code, problem.remedy), _Cause())
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
        """Return the kinds of errors so far."""
        return {code for _, severity, code, _ in self._causes if severity is Severity.ERROR}

    def report(self) -> tuple[Problem, ...]:
        """Return each cause: its rows and, where there were more, how many."""
        return tuple(problem for cause in self._causes.values() for problem in cause.report())


def shorten(problems: Iterable[Problem], rows_per_cause: int = EXAMPLES_PER_CAUSE) -> tuple[Problem, ...]:
    """Return a report as a terminal shows it: the first few of each cause and one that counts all the others."""
    short = ProblemList(rows_per_cause)
    short.keep(problems)
    return short.report()


def join_equal(problems: Iterable[Problem]) -> list[Problem]:
    """Return the same, but of several files with all else equal one problem, which names the first ones."""
    groups: dict[Problem, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(replace(problem, file=""), []).append(problem)
    joined: list[Problem] = []
    for members in groups.values():
        if len(members) > 1:
            names = ", ".join(each.file for each in members[:EXAMPLES_PER_CAUSE])
            count = sum(each.count for each in members)
            some = f"{count:,} files, such as " if count > EXAMPLES_PER_CAUSE else ""
            members = [replace(members[0], file=f"{some}{names}", count=count)]
        joined += members
    return joined


def _common_place(files: Iterable[str]) -> str:
    """Return the file that all are, else the folder in which all are; ``.`` where that is the folder that was given."""
    names = set(files)
    if len(names) == 1:
        return names.pop()
    levels = zip(*(name.split("/")[:-1] for name in names), strict=False)
    return "/".join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)) or "."
