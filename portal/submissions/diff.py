"""What two submissions have in common and where they differ, file by file.

Files are named by their content, so two are equal exactly if their keys are; nothing is read. Speech is matched by data
set and utterance, documents by their path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from portal.submissions.models import Submission

DOCUMENTS = "documents"


class Change(StrEnum):
    """What became of a file from the older submission to the newer one."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    UNCHANGED = "unchanged"


DIFFERENT = (Change.CHANGED, Change.ADDED, Change.REMOVED)


class ComparedFile(NamedTuple):
    """A file of a submission: what it is called, its row, and its content."""

    name: str
    pk: int
    key: str
    is_inherited: bool


class Difference(NamedTuple):
    """One file in both submissions; None where a submission has none."""

    name: str
    change: Change
    before: ComparedFile | None
    after: ComparedFile | None


# The key of its row, its content and whether it is inherited: of tens of thousands most are compared and not shown.
_Held = tuple[int, str, bool]


@dataclass(frozen=True)
class ComparedSection:
    """The files of one data set, or the documents: their names by change, each in order."""

    title: str
    names: Mapping[Change, list[str]]
    before: Mapping[str, _Held]
    after: Mapping[str, _Held]

    def of(self, *changes: Change, most: int | None = None) -> list[Difference]:
        """Return the files that changed so, by name; the first ones where `most` is given."""
        found = {name: change for change in changes for name in self.names[change][:most]}
        return [self._difference(name, found[name]) for name in sorted(found)[:most]]

    def _difference(self, name: str, change: Change) -> Difference:
        before, after = self.before.get(name), self.after.get(name)
        return Difference(name, change, before and ComparedFile(name, *before), after and ComparedFile(name, *after))

    @property
    def counts(self) -> dict[Change, int]:
        return {change: len(self.names[change]) for change in Change}

    @property
    def is_documents(self) -> bool:
        return self.title == DOCUMENTS


def compare_submissions(before: Submission, after: Submission) -> list[ComparedSection]:
    """Compare each data set that either has, by name, then the documents; in six queries whatever their number."""
    files = _files(before), _files(after)
    parts = [(name, files[0].get(name, {}), files[1].get(name, {})) for name in sorted({*files[0], *files[1]})]
    documents = _documents(before), _documents(after)
    parts += [(DOCUMENTS, *documents)] if any(documents) else []
    return [_section(*part) for part in parts]


def totals(sections: list[ComparedSection]) -> dict[Change, int]:
    """Return how many files of each change there are in all."""
    return {change: sum(section.counts[change] for section in sections) for change in Change}


def difference_rows(sections: list[ComparedSection]) -> Iterator[tuple[Any, ...]]:
    """Yield every file as a row of a CSV file."""
    yield "part", "name", "change", "content before", "content after"
    for section in sections:
        for one in section.of(*Change):
            contents = (entry.key if entry else "" for entry in (one.before, one.after))
            yield section.title, one.name, one.change.value, *contents


def _section(title: str, before: Mapping[str, _Held], after: Mapping[str, _Held]) -> ComparedSection:
    both = before.keys() & after.keys()
    same = {name for name in both if before[name][1] == after[name][1]}
    names = {Change.CHANGED: both - same, Change.UNCHANGED: same}
    names |= {Change.ADDED: after.keys() - both, Change.REMOVED: before.keys() - both}
    return ComparedSection(title, {change: sorted(of_change) for change, of_change in names.items()}, before, after)


def _files(submission: Submission) -> dict[str, dict[str, _Held]]:
    files, columns = submission.files.order_by(), ("data_set", "utterance__name", "pk", "audio", "is_inherited")
    found: dict[int, dict[str, _Held]] = {}
    for data_set, name, pk, key, is_inherited in files.values_list(*columns):
        found.setdefault(data_set, {})[name] = pk, key, is_inherited
    return {name: found[data_set] for data_set, name in files.values_list("data_set", "data_set__name").distinct()}


def _documents(submission: Submission) -> dict[str, _Held]:
    rows = submission.documents.order_by().values_list("path", "pk", "key", "is_inherited")
    return {path: (pk, key, is_inherited) for path, pk, key, is_inherited in rows}
