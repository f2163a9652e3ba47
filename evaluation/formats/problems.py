"""What is wrong with an input, as data.

A reader or check never stops at the first fault: it collects every `Problem` and hands all of them to the caller, who
shows the whole report at once. An *error* makes the input unusable, a *warning* deserves a look, a *note* tells a fact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of an input, complete enough to be acted on.

    Attributes:
        code: short stable name of the kind of fault, such as ``wrong-rate``; reports group by it.
        file: path of the file as its owner knows it (relative to what was handed in).
        line: line number in that file, from 1; None where lines mean nothing.
        expected: what should have been there.
        found: what was there instead.
        remedy: what the owner of the file should do.
        count: how many faults this one stands for, where a report names only some of many alike.
    """

    code: str
    file: str
    expected: str
    found: str
    remedy: str
    severity: Severity = Severity.ERROR
    line: int | None = None
    count: int = 1

    def sentence(self) -> str:
        """The whole fault in one line of prose."""
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{place}: expected {self.expected}, found {self.found}. {self.remedy}"


def count_faults(problems: Iterable[Problem], severity: Severity) -> int:
    """How many faults of a severity a report holds, those included that it only counts."""
    return sum(problem.count for problem in problems if problem.severity is severity)


def has_errors(problems: Iterable[Problem]) -> bool:
    """Whether any of the problems makes the input unusable."""
    return any(problem.severity is Severity.ERROR for problem in problems)
