"""What is wrong with an input, as data.

A reader or check never stops at the first fault: it collects every `Problem` and hands all of them to the caller, who
shows the whole report at once. An *error* makes the input unusable, a *warning* deserves a look, a *note* tells a fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

SHOWN_CHARACTERS = 400
# Control characters and signs of direction: what steers a terminal, splits a line, or makes text read as other text.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of an input, complete enough to be acted on.

    What it quotes of a file (`expected`, `found`) is cut where it is long, and what would steer a terminal is escaped.

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

    def __post_init__(self) -> None:
        for name in ("expected", "found"):
            object.__setattr__(self, name, _shown(getattr(self, name)))

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


def _shown(text: str) -> str:
    escaped = _STEERING.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text[: SHOWN_CHARACTERS + 1])
    return escaped if len(escaped) <= SHOWN_CHARACTERS else f"{escaped[: SHOWN_CHARACTERS - 1]}…"
