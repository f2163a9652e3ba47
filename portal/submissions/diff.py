"""What two submissions have in common and where they differ, file by file.

Files are named by their content, so two are equal exactly if their keys are; nothing is read. Speech is matched by data
set and utterance, documents by their path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from portal.submissions.models import Submission

DOCUMENTS = "documents"


class Change(StrEnum):
    """What became of a file from the older submission to the newer one."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a submission: its row, what it is called, and its content."""

    pk: int
    name: str
    key: str
    is_inherited: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """One file in both submissions; None where a submission has none."""

    name: str
    change: Change
    before: Entry | None
    after: Entry | None


@dataclass(frozen=True)
class Section:
    """The files of one data set, or the documents, by name."""

    title: str
    differences: tuple[Difference, ...]

    def of(self, change: Change) -> list[Difference]:
        return [one for one in self.differences if one.change is change]

    @property
    def counts(self) -> dict[Change, int]:
        return {change: len(self.of(change)) for change in Change}

    @property
    def is_documents(self) -> bool:
        return self.title == DOCUMENTS


def compare_submissions(before: Submission, after: Submission) -> list[Section]:
    """Each data set that either has, by name, then the documents; in four queries whatever their number."""
    files = _files(before), _files(after)
    sections = [
        _section(name, files[0].get(name, {}), files[1].get(name, {})) for name in sorted({*files[0], *files[1]})
    ]
    documents = _section(DOCUMENTS, _documents(before), _documents(after))
    return [*sections, documents] if documents.differences else sections


def totals(sections: list[Section]) -> dict[Change, int]:
    """How many files of each change there are in all."""
    return {change: sum(section.counts[change] for section in sections) for change in Change}


def difference_rows(sections: list[Section]) -> Iterator[tuple[Any, ...]]:
    """Every file as a row of a CSV file."""
    yield "part", "name", "change", "content before", "content after"
    for section in sections:
        for one in section.differences:
            contents = (entry.key if entry else "" for entry in (one.before, one.after))
            yield section.title, one.name, one.change.value, *contents


def _section(title: str, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Section:
    names = sorted({*before, *after})
    return Section(title, tuple(_difference(name, before.get(name), after.get(name)) for name in names))


def _difference(name: str, before: Entry | None, after: Entry | None) -> Difference:
    if before is None or after is None:
        change = Change.ADDED if before is None else Change.REMOVED
    else:
        change = Change.UNCHANGED if before.key == after.key else Change.CHANGED
    return Difference(name, change, before, after)


def _files(submission: Submission) -> dict[str, dict[str, Entry]]:
    columns = ("data_set__name", "pk", "utterance__name", "audio", "is_inherited")
    found: dict[str, dict[str, Entry]] = {}
    for data_set, pk, name, key, is_inherited in submission.files.order_by().values_list(*columns).iterator():
        found.setdefault(data_set, {})[name] = Entry(pk, name, key, is_inherited)
    return found


def _documents(submission: Submission) -> dict[str, Entry]:
    rows = submission.documents.order_by().values_list("pk", "path", "key", "is_inherited")
    return {path: Entry(pk, path, key, is_inherited) for pk, path, key, is_inherited in rows}
