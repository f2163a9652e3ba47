"""What two submissions have in common and where they differ, file by file.

Files are named by their content, so two are equal exactly if their keys are; nothing is read. Speech is matched by data
set and utterance, documents by their path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from portal.submissions.models import Submission

DOCUMENTS = "documents"


class Change(StrEnum):
    """What became of a file from the older submission to the newer one."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    UNCHANGED = "unchanged"


class Entry(NamedTuple):
    """A file of a submission: what it is called, its row, and its content."""

    name: str
    pk: int
    key: str
    is_inherited: bool


class Difference(NamedTuple):
    """One file in both submissions; None where a submission has none."""

    name: str
    change: Change
    before: Entry | None
    after: Entry | None


@dataclass(frozen=True)
class Section:
    """The files of one data set, or the documents, by name; `unchanged`: how many are the same in both."""

    title: str
    differences: tuple[Difference, ...]
    unchanged: int

    def of(self, change: Change) -> list[Difference]:
        return [one for one in self.differences if one.change is change]

    @cached_property
    def counts(self) -> dict[Change, int]:
        found = Counter(one.change for one in self.differences)
        return {change: found[change] for change in Change} | {Change.UNCHANGED: self.unchanged}

    @property
    def is_documents(self) -> bool:
        return self.title == DOCUMENTS


def compare_submissions(before: Submission, after: Submission, *, with_unchanged: bool = False) -> list[Section]:
    """Each data set that either has, by name, then the documents; in four queries whatever their number.

    Args:
        with_unchanged: whether `differences` hold the files that are the same in both, too.
    """
    files = _files(before), _files(after)
    parts = [(name, files[0].get(name, {}), files[1].get(name, {})) for name in sorted({*files[0], *files[1]})]
    documents = _documents(before), _documents(after)
    parts += [(DOCUMENTS, *documents)] if any(documents) else []
    return [_section(*part, with_unchanged=with_unchanged) for part in parts]


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


# The key of its row, its content and whether it is inherited: of tens of thousands most are compared and not shown.
_Held = tuple[int, str, bool]


def _section(title: str, before: Mapping[str, _Held], after: Mapping[str, _Held], *, with_unchanged: bool) -> Section:
    same = {name for name, held in before.items() if name in after and after[name][1] == held[1]}
    told = sorted({*before, *after} - (set() if with_unchanged else same))
    return Section(title, tuple(_difference(name, before.get(name), after.get(name)) for name in told), len(same))


def _difference(name: str, before: _Held | None, after: _Held | None) -> Difference:
    if before is None or after is None:
        change = Change.ADDED if before is None else Change.REMOVED
    else:
        change = Change.UNCHANGED if before[1] == after[1] else Change.CHANGED
    return Difference(name, change, before and Entry(name, *before), after and Entry(name, *after))


def _files(submission: Submission) -> dict[str, dict[str, _Held]]:
    columns = ("data_set__name", "utterance__name", "pk", "audio", "is_inherited")
    found: dict[str, dict[str, _Held]] = {}
    for data_set, name, *held in submission.files.order_by().values_list(*columns).iterator():
        found.setdefault(data_set, {})[name] = (held[0], held[1], held[2])
    return found


def _documents(submission: Submission) -> dict[str, _Held]:
    rows = submission.documents.order_by().values_list("path", "pk", "key", "is_inherited")
    return {path: (pk, key, is_inherited) for path, pk, key, is_inherited in rows}
