"""What was found in an archive: every problem, by data set and cause, for a page, a terminal, JSON and CSV.

Causes are those of `common.problems`, which bounds a report: of many problems of one cause in one data set the first
thousands are rows, the others a count.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common.problems import Problem, Severity, count_problems, group_problems, has_errors

WHOLE_SUBMISSION = ""  # the data set of a problem that belongs to none
CSV_HEADER = ("data_set", "severity", "code", "file", "line", "expected", "found", "remedy", "count")
TITLES: dict[str, str] = tomllib.loads(Path(__file__).with_name("titles.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Counts:
    """What an archive held.

    Attributes:
        files: members of the archive, droppings of the operating system included.
        speech: files with speech of the edition's utterances, faulty ones included.
        expected: pairs of data set and utterance that the edition asks for.
        received: of these, how many the archive serves.
        inherited: of these, how many an earlier submission serves.
        missing: of these, how many nothing serves.
        converted: speech files that became 16-bit samples at the rate of the challenge.
        documents: files that are not speech and were kept.
        inherited_documents: those of earlier versions beside them.
    """

    files: int = 0
    speech: int = 0
    expected: int = 0
    received: int = 0
    inherited: int = 0
    missing: int = 0
    converted: int = 0
    documents: int = 0
    inherited_documents: int = 0


@dataclass(frozen=True, slots=True)
class IntakeReport:
    """Everything found in one archive.

    Attributes:
        archive: its file name.
        edition: what it was held against.
        findings: by data set and cause, in the order of the edition's data sets, the whole submission first.
        counts: what it held.
        faulty: the utterances whose file has an error, sorted: a corrected archive has to bring these.
        is_refused: whether the archive was not read to its end, because it is unsafe or damaged; then nothing is said
            about what is missing.
    """

    archive: str
    edition: str
    findings: tuple[Problem, ...] = ()
    counts: Counts = field(default_factory=Counts)
    faulty: tuple[str, ...] = ()
    is_refused: bool = False

    @property
    def has_errors(self) -> bool:
        """Return whether the submission must be refused."""
        return has_errors(self.findings)

    def count(self, severity: Severity) -> int:
        """Return how many problems of a severity, those included that are only counted."""
        return count_problems(self.findings, severity)

    def summary(self) -> list[dict[str, Any]]:
        """Return each cause of each data set once, the gravest first: what a page shows and JSON keeps.

        Returns:
            Rows with ``data_set``, ``code``, ``severity``, ``title``, ``count``, ``remedy`` and ``examples`` (up to
            five sentences without the remedy).
        """
        return [
            {
                "data_set": group.data_set,
                "code": group.code,
                "severity": str(group.severity),
                "title": group.title,
                "count": group.count,
                "remedy": group.remedy,
                "examples": [problem.sentence().removesuffix(f" {problem.remedy}") for problem in group.examples],
            }
            for group in group_problems(self.findings, titles=TITLES)
        ]

    def to_json(self) -> str:
        """Return the whole report; `from_json` reads it."""
        content: dict[str, Any] = {
            "archive": self.archive,
            "edition": self.edition,
            "has_errors": self.has_errors,
            "is_refused": self.is_refused,
            **{f"{severity}s": self.count(severity) for severity in Severity},
            "counts": asdict(self.counts),
            "faulty": list(self.faulty),
            "summary": self.summary(),
            "findings": [asdict(one) for one in self.findings],
        }
        return json.dumps(content, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> IntakeReport:
        """Return the report that `to_json` wrote."""
        content = json.loads(text)
        return cls(
            archive=content["archive"],
            edition=content["edition"],
            findings=tuple(Problem(**row) for row in content["findings"]),
            counts=Counts(**content["counts"]),
            faulty=tuple(content["faulty"]),
            is_refused=content["is_refused"],
        )

    def csv_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the header and one row for each finding."""
        yield CSV_HEADER
        for problem in self.findings:
            line = "" if problem.line is None else problem.line
            texts = problem.data_set, str(problem.severity), problem.code, problem.file
            yield (*texts, line, problem.expected, problem.found, problem.remedy, problem.count)


def sort_findings(problems: Iterable[Problem], data_sets: Iterable[str]) -> tuple[Problem, ...]:
    """Sort problems by data set, the whole submission first."""
    order = {name: number for number, name in enumerate((WHOLE_SUBMISSION, *data_sets))}
    return tuple(sorted(problems, key=lambda problem: order[problem.data_set]))


def describe_kept(kept: object) -> str:
    """Return what a team may send next, by whether anything of its refused archive was kept."""
    if kept:
        return "Files without errors were kept: a corrected archive may hold only the files that change."
    return "No file of the archive was kept: send the whole archive again."
