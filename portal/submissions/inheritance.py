"""What a version of a system inherits from the earlier ones.

It is the newest sound form of each recording and document. A version holds what its archive brought and what it
inherited, except recordings that came broken. Those, and documents in which its check found errors, are looked for in
the versions before it; a version without an error ends the search, because everything of before that counts is among
its own files. A document that was never sound stays as it is, so that its errors are told until it comes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from django.db.models import Exists, OuterRef

from common.problems import Problem, ProblemList, Severity
from portal.core.storage import read_stored
from portal.intake.contents import RESULTS_PART, part_of, select_offered, select_staying
from portal.intake.expectation import Inherited
from portal.intake.problem_codes import describe
from portal.intake.report import WHOLE_SUBMISSION, IntakeReport, sort_findings
from portal.submissions.models import Submission, SubmittedDocument, SubmittedFile, System

BATCH = 500
Place = tuple[str, str]  # data set and utterance
_ABOUT_RESULTS = {"several-results", "misplaced-results", "missing-directory", "missing-file"}


@dataclass(frozen=True)
class Inheritance:
    """What a version inherits unless its own archive holds it.

    Attributes:
        versions: those that it rests on, the newest first.
        speech: the version whose file stands in, by data set and utterance.
        documents: the newest sound ones, with the version that they are taken from.
        newest_documents: those of the newest version, sound or not, which an archive may complete.
    """

    versions: tuple[Submission, ...] = ()
    speech: dict[Place, Submission] = field(default_factory=dict)
    documents: tuple[SubmittedDocument, ...] = ()
    newest_documents: tuple[SubmittedDocument, ...] = ()

    @property
    def newest(self) -> Submission | None:
        """Return the version that a page names first."""
        return self.versions[0] if self.versions else None

    def count_document_bytes(self) -> int:
        """Count the bytes of all documents that may be read beside an archive."""
        return sum({one.pk: one.bytes for one in (*self.documents, *self.newest_documents)}.values())

    def by_data_set(self) -> dict[str, frozenset[str]]:
        """Return the utterances of each data set that need not come."""
        found: dict[str, set[str]] = {}
        for data_set, name in self.speech:
            found.setdefault(data_set, set()).add(name)
        return {data_set: frozenset(names) for data_set, names in found.items()}

    def told(self, system: System) -> Inherited:
        """Return the same as a team's own machine is told it."""
        return Inherited(
            system=str(system),
            version=self.newest.version if self.newest else 0,
            speech={name: tuple(sorted(found)) for name, found in self.by_data_set().items()},
            documents=tuple(one.path for one in self.documents),
            newest_documents=tuple(one.path for one in self.newest_documents),
        )

    def files(self, sent: Collection[Place], faulty: Collection[str]) -> Iterator[SubmittedFile]:
        """Yield the stored rows of recordings that the archive neither held nor brought broken."""
        origins = self.speech
        for version in self.versions:
            for row in version.files.select_related("data_set", "utterance").iterator(chunk_size=BATCH):
                place = row.data_set.name, row.utterance.name
                if origins.get(place) is version and place not in sent and place[1] not in faulty:
                    yield row

    def documents_beside(self, sent: Collection[str]) -> list[SubmittedDocument]:
        """Return the documents that stay although an archive with the paths `sent` has come."""
        chosen = select_offered(self.documents, self.newest_documents, sent, path=lambda one: one.path)
        stays = set(select_staying([one.path for one in chosen], sent))
        return [one for one in chosen if one.path in stays]

    def noted(
        self,
        report: IntakeReport,
        data_sets: Sequence[str],
        files: Iterable[SubmittedFile],
        documents: Iterable[SubmittedDocument],
    ) -> IntakeReport:
        """Return the report with a note on whatever is inherited from before a version that brought it broken."""
        notes, newest = ProblemList(), self.newest
        if newest is None:
            return report
        versions = {one.pk: one for one in self.versions}
        for row in files:
            if row.submission_id != newest.pk:
                name, origin = row.utterance.name, versions[row.submission_id]
                notes.add(_note(name, "recording", newest, origin).within(row.data_set.name))
        for document in documents:
            if document.submission_id != newest.pk:
                notes.add(_note(document.path, "document", newest, versions[document.submission_id]))
        return replace(report, findings=sort_findings((*report.findings, *notes.report()), data_sets))


def find_inheritance(system: System, *, before: int | None = None) -> Inheritance:
    """Return what a version of this system inherits: the one with the number `before`, or the next one."""
    speech: dict[Place, Submission] = {}
    documents: dict[str, list[SubmittedDocument]] = {}
    newest: tuple[SubmittedDocument, ...] = ()
    versions: list[Submission] = []
    unsound: set[str] = set()
    for version in _holding(system, before):
        held, faulty = tuple(version.documents.all()), _find_faulty_parts(version)
        for place in version.files.order_by().values_list("data_set__name", "utterance__name"):
            speech.setdefault(place, version)
        if not versions:
            newest, documents, unsound = held, _by_part(held), faulty
        else:
            fixed = {part: group for part, group in _by_part(held).items() if part in unsound - faulty}
            documents, unsound = documents | fixed, unsound - fixed.keys()
        versions.append(version)
        if not version.errors:
            break
    return Inheritance(tuple(versions), speech, tuple(chain.from_iterable(documents.values())), newest)


def _holding(system: System, before: int | None) -> Iterator[Submission]:
    """Yield the versions that were not withdrawn and hold anything, the newest first."""
    held = Exists(SubmittedFile.objects.filter(submission=OuterRef("pk"))) | Exists(
        SubmittedDocument.objects.filter(submission=OuterRef("pk"))
    )
    found = system.submissions.exclude(state=Submission.State.WITHDRAWN).filter(held).order_by("-version")
    yield from found if before is None else found.filter(version__lt=before)


def _find_faulty_parts(version: Submission) -> set[str]:
    """Return the parts of the documents in which the check of a version found errors."""
    stored = read_stored(version.report) if version.errors and version.report else None
    if stored is None:
        return set()
    report = IntakeReport.from_json(stored)
    problems = [one for one in report.findings if one.data_set == WHOLE_SUBMISSION]
    grave = [one for one in problems if one.severity is Severity.ERROR]
    paths = set(version.documents.values_list("path", flat=True))
    parts = {part_of(one.file) for one in grave if one.file in paths}
    return parts | {RESULTS_PART for one in grave if one.code in _ABOUT_RESULTS}


def _by_part(documents: Iterable[SubmittedDocument]) -> dict[str, list[SubmittedDocument]]:
    groups: dict[str, list[SubmittedDocument]] = {}
    for one in documents:
        groups.setdefault(part_of(one.path), []).append(one)
    return groups


def _note(name: str, kind: str, newest: Submission, origin: Submission) -> Problem:
    return describe("inherited-older", name, kind=kind, newest=newest.version, origin=origin.version)
