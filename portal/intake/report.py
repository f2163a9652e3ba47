"""What was found in an archive: every problem, by data set and cause, for a page, a terminal, JSON and CSV.

A *cause* is a kind of problem of one severity with one remedy, as in `common.problems`. A report is
bounded: of many problems of one cause in one data set the first thousands are rows, the others a count.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common.problems import ROWS_PER_CAUSE, Problem, ProblemList, Severity

EXAMPLES = 5
WHOLE_SUBMISSION = ""  # the data set of a problem that belongs to none
CSV_HEADER = ("data_set", "severity", "code", "file", "line", "expected", "found", "remedy", "count")
_ABBREVIATIONS = {"asr": "ASR", "cllr": "C_llr", "eer": "EER", "rocch": "ROCCH", "uar": "UAR", "wer": "WER"}
TITLES: dict[str, str] = tomllib.loads(Path(__file__).with_name("titles.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class IntakeFinding:
    """A problem and the data set that it belongs to; empty where it belongs to the submission as a whole."""

    data_set: str
    problem: Problem


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
    findings: tuple[IntakeFinding, ...] = ()
    counts: Counts = field(default_factory=Counts)
    faulty: tuple[str, ...] = ()
    is_refused: bool = False

    @property
    def has_errors(self) -> bool:
        """Whether the submission must be refused."""
        return any(one.problem.severity is Severity.ERROR for one in self.findings)

    def count(self, severity: Severity) -> int:
        """How many problems of a severity, those included that are only counted."""
        return sum(one.problem.count for one in self.findings if one.problem.severity is severity)

    def summary(self) -> list[dict[str, Any]]:
        """Each cause of each data set once, the gravest first: what a page shows and JSON keeps.

        Returns:
            Rows with ``data_set``, ``code``, ``severity``, ``title``, ``count``, ``remedy`` and ``examples`` (up to
            five sentences without the remedy).
        """
        groups: dict[tuple[str, Severity, str, str], list[Problem]] = {}
        for one in self.findings:
            problem = one.problem
            groups.setdefault((one.data_set, problem.severity, problem.code, problem.remedy), []).append(problem)
        order, sets = list(Severity), list(dict.fromkeys(one.data_set for one in self.findings))
        ranked = sorted(groups.items(), key=lambda item: (sets.index(item[0][0]), order.index(item[0][1])))
        return [_cause(*key, problems) for key, problems in ranked]

    def to_json(self) -> str:
        """The whole report; `from_json` reads it."""
        content: dict[str, Any] = {
            "archive": self.archive,
            "edition": self.edition,
            "has_errors": self.has_errors,
            "is_refused": self.is_refused,
            **{f"{severity}s": self.count(severity) for severity in Severity},
            "counts": asdict(self.counts),
            "faulty": list(self.faulty),
            "summary": self.summary(),
            "findings": [{"data_set": one.data_set, **asdict(one.problem)} for one in self.findings],
        }
        return json.dumps(content, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> IntakeReport:
        """The report that `to_json` wrote."""
        content = json.loads(text)
        return cls(
            archive=content["archive"],
            edition=content["edition"],
            findings=tuple(_finding(row) for row in content["findings"]),
            counts=Counts(**content["counts"]),
            faulty=tuple(content["faulty"]),
            is_refused=content["is_refused"],
        )

    def csv_rows(self) -> Iterator[tuple[Any, ...]]:
        """The header and one row for each finding."""
        yield CSV_HEADER
        for one in self.findings:
            problem = one.problem
            line = "" if problem.line is None else problem.line
            texts = one.data_set, str(problem.severity), problem.code, problem.file
            yield (*texts, line, problem.expected, problem.found, problem.remedy, problem.count)


class FindingList:
    """Collects the findings of an archive, bounded for each data set and cause.

    Args:
        data_sets: in the order in which the report names them.
    """

    def __init__(self, data_sets: Iterable[str], rows_per_cause: int = ROWS_PER_CAUSE) -> None:
        self._lists = {name: ProblemList(rows_per_cause) for name in (WHOLE_SUBMISSION, *data_sets)}

    def add(self, data_set: str, problem: Problem) -> None:
        """Keep a problem or its count; the same twice is one."""
        self._lists[data_set].add(problem)

    def keep(self, data_set: str, problems: Iterable[Problem]) -> None:
        """Add all problems of another report."""
        self._lists[data_set].keep(problems)

    def findings(self) -> tuple[IntakeFinding, ...]:
        """By data set, then by cause."""
        return tuple(IntakeFinding(name, one) for name, problems in self._lists.items() for one in problems.report())


def title_of(code: str) -> str:
    """The heading of a kind of problem."""
    words = " ".join(_ABBREVIATIONS.get(word, word) for word in code.split("-"))
    return TITLES.get(code) or words[:1].upper() + words[1:]


def _cause(data_set: str, severity: Severity, code: str, remedy: str, problems: list[Problem]) -> dict[str, Any]:
    return {
        "data_set": data_set,
        "code": code,
        "severity": str(severity),
        "title": title_of(code),
        "count": sum(problem.count for problem in problems),
        "remedy": remedy,
        "examples": [_example(problem) for problem in problems[:EXAMPLES]],
    }


def _example(problem: Problem) -> str:
    place = problem.file if problem.line is None else f"{problem.file}, line {problem.line}"
    return f"{place}: expected {problem.expected}, found {problem.found}."


def _finding(row: Mapping[str, Any]) -> IntakeFinding:
    parts = {key: value for key, value in row.items() if key != "data_set"}
    return IntakeFinding(row["data_set"], Problem(**{**parts, "severity": Severity(row["severity"])}))


def describe_kept(kept: object) -> str:
    """What a team may send next, by whether anything of its refused archive was kept."""
    if kept:
        return "Files without errors were kept: a corrected archive may hold only the files that change."
    return "No file of the archive was kept: send the whole archive again."
