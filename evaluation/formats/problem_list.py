"""A report that stays readable: many faults of one cause become a few examples and a count.

A cause is the kind of fault (`Problem.code`) within one top-level file or folder. Its first faults
are kept as they are; the rest are counted and reported as one more problem without a line number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from evaluation.formats.problems import Problem

EXAMPLES_PER_CAUSE = 5


@dataclass(slots=True)
class _Cause:
    examples: list[Problem] = field(default_factory=list)
    left_out: int = 0
    seen: set[Problem] = field(default_factory=set)

    def report(self) -> list[Problem]:
        if not self.left_out:
            return self.examples
        last = self.examples[-1]
        same_file = all(problem.file == last.file for problem in self.examples)
        file = last.file if same_file else _top(last.file)
        expected, found = "no further fault of this kind", f"{self.left_out} more"
        rest = replace(last, file=file, line=None, expected=expected, found=found, count=self.left_out)
        return [*self.examples, rest]


class ProblemList:
    """Collects problems; `report` gives them back by cause, in order of first appearance."""

    def __init__(self) -> None:
        self._kept: list[Problem] = []
        self._causes: dict[tuple[str, str], _Cause] = {}

    def add(self, problem: Problem) -> None:
        """Add one problem, as an example of its cause or to its count; the same twice is one."""
        cause = self._causes.setdefault((problem.code, _top(problem.file)), _Cause())
        if problem in cause.seen:
            return
        cause.seen.add(problem)
        if len(cause.examples) < EXAMPLES_PER_CAUSE:
            cause.examples.append(problem)
        else:
            cause.left_out += 1

    def keep(self, problems: Iterable[Problem]) -> None:
        """Add problems that are a report already: none of them is counted away."""
        self._kept.extend(problems)

    def report(self) -> tuple[Problem, ...]:
        """What was kept, then each cause: its examples and how many more there were."""
        counted = [problem for cause in self._causes.values() for problem in cause.report()]
        return (*self._kept, *counted)


def _top(file: str) -> str:
    return file.partition("/")[0]
