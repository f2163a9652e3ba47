"""An archive from its first byte to its report: the one check behind the portal's intake and ``vp verify``.

The archive is streamed once. Speech is decoded and measured in threads while the next files are read; what is sound is
given to the caller at once, so that of thousands of utterances a handful is in memory. Every problem is found in one
pass, and each is told once, under its own name.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from common.memory import format_size
from common.problems import Problem, ProblemFound, ProblemList
from common.progress import Progress, ignore_progress
from evaluation.objective_results.results.forms import HEAD_BYTES
from portal.intake.archives.limits import LARGEST_DOCUMENT_BYTES, LARGEST_SPEECH_BYTES, Member
from portal.intake.archives.reading import read_archive, read_folder
from portal.intake.contents import RESULT_KINDS, Content, classify
from portal.intake.documents import (
    description_problem,
    missing_parts,
    result_problems,
    target_problems,
    unused_by_name,
    write_document,
)
from portal.intake.expectation import ExpectedSubmission, ExpectedUtterance
from portal.intake.problem_codes import describe
from portal.intake.report import Counts, IntakeReport, sort_findings
from portal.intake.speech import InspectedSpeech, Inspection, inspect_speech
from portal.intake.utterances import Names, Placed, RollCall, missing_findings

READING, RESULTS, MISSING = "Reading the archive", "Reading results", "Looking for what is missing"
MOST_THREADS = 4
_IN_FLIGHT_BYTES = 2 * LARGEST_SPEECH_BYTES
_BATCH_BYTES, _BATCH_FILES = 2**20, 64
_MOST_WAITING = 8  # batches
_OTHERS_NAMED = 3


@dataclass(frozen=True, slots=True)
class FoundSpeech:
    """Speech without an error, and the data sets that it serves; `path` is its own in the archive."""

    utterance: str
    data_sets: Sequence[str]
    speech: InspectedSpeech
    path: str


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A file that is not speech: its path in the archive, and where it lies now."""

    path: str
    content: Content
    place: Path


class ArchiveCheck:
    """One archive, or plain folder, held against what an edition expects: `read` it to its end, then ask for `report`.

    Args:
        name: the archive as its owner knows it.
        documents: an empty folder; files that are not speech lie there afterwards under their paths in the archive.
        progress: is told stage, how many speech files are done, and how many there should be (0 where unknown).
        look_at: is told each file that a thread reads or inspects from now on, and the empty text after it.
        threads: that inspect speech.

    Attributes:
        paths: of the documents that came.
        refusal: why the archive was not read to its end; then nothing of what was found in it may stay.

    Raises:
        ProblemsError: the recipe of the edition cannot be read.
    """

    def __init__(
        self,
        name: str,
        expected: ExpectedSubmission,
        documents: Path,
        progress: Progress = ignore_progress,
        look_at: Callable[[str], None] = ignore_progress,
        threads: int = MOST_THREADS,
    ) -> None:
        self._name, self._expected, self._documents = name, expected, documents
        self.paths: list[str] = []
        self.refusal: Problem | None = None
        self._sound: deque[FoundSpeech | FoundDocument] = deque()
        self._progress, self._look_at = progress, look_at
        self._threads = max(1, min(threads, os.cpu_count() or 1))
        self._names = Names(expected)
        self._roll = RollCall(expected)
        self._found = ProblemList()
        self._contents: set[Content] = set()
        self._others: list[str] = []
        self._empty: list[str] = []  # of the kinds by which a team reports
        self._is_read = False
        self._files = self._speech = self._unexpected = self._converted = self._other_count = self._unused = 0
        self._rate_hz, self._keeps_duration = expected.rate_hz, expected.recipe().keeps_duration

    def read(self, source: Path) -> Generator[FoundSpeech | FoundDocument, None, None]:
        """Yield everything in the archive, once; what is sound is given in its order, as soon as that is known."""
        limits = self._expected.limits
        try:
            members = (
                read_folder(source, limits=limits, report=self._found.add)
                if source.is_dir()
                else read_archive(source, name=self._name, limits=limits, report=self._found.add)
            )
            for placed, inspection in _in_order(self._speech_files(members), self._inspect, self._threads):
                self._take(placed, inspection)
                while self._sound:
                    yield self._sound.popleft()
            told = self._done()
            self._is_read = True
            if self._done() != told:
                self._progress(READING, *self._done())
        except ProblemFound as refused:
            self.refusal = refused.problem
            self._found.add(refused.problem)
        yield from self._sound

    def report(
        self,
        inherited: Mapping[str, frozenset[str]],
        beside: Collection[str] = (),
        trials: Mapping[str, Path] = MappingProxyType({}),
    ) -> IntakeReport:
        """The whole report, once the archive was read.

        Args:
            inherited: the utterances of each data set that an earlier submission serves where the archive does not.
            beside: paths of the documents that an earlier submission adds to those that came. Those that lie in the
                folder of documents are read with the others; the others count as present and sound.
            trials: files with the organizer's trials, by trial set, where they are known.
        """
        if self.refusal is not None:
            return self._finished(0, 0)
        for path in beside:
            if classify(path) is Content.DESCRIPTION and (self._documents / path).is_file():
                self._check_description(path)
        self._progress(RESULTS, *self._done())
        paths, contents = (*self.paths, *beside), {*self._contents, *map(classify, beside)}
        unread = set(self._empty)
        for problem in result_problems(self._documents, paths, self._expected, trials):
            unread.discard(problem.file)
            self._found.add(problem)
        self._found.keep(describe("empty/document", one) for one in self._empty if one in unread)
        if self._speech or any(inherited.values()) or not self._expected.data_sets:  # without originals none can come
            contents.add(Content.SPEECH)
        self._found.keep(missing_parts(contents, self._expected))
        has_earlier = any(inherited.values()) or bool(beside)
        if has_earlier and not self._speech and not self.paths:  # of a first version parts are missing
            self._found.add(describe("nothing-used", "the archive", files=self._files))
        self._found.keep(self._left_out())
        self._progress(MISSING, *self._done())
        self._found.keep(self._roll.findings())
        missing = self._roll.missing(inherited)
        nothing_came = not self._speech and not any(inherited.values())
        self._found.keep(missing_findings(missing, self._expected, nothing_came=nothing_came))
        return self._finished(sum(map(len, missing.values())), self._roll.served(), inherited_documents=len(beside))

    def _finished(self, missing: int, received: int, *, inherited_documents: int = 0) -> IntakeReport:
        expected, is_refused = sum(map(len, self._expected.data_sets.values())), self.refusal is not None
        counts = Counts(
            files=self._files,
            speech=self._speech,
            expected=expected,
            received=received,
            inherited=0 if is_refused else expected - missing - received,
            missing=missing,
            converted=self._converted,
            documents=len(self.paths),
            inherited_documents=inherited_documents,
        )
        faulty = tuple(sorted(self._roll.faulty))
        findings = sort_findings(self._found.report(), self._expected.data_sets)
        return IntakeReport(self._name, self._expected.edition, findings, counts, faulty, is_refused)

    def _speech_files(self, members: Iterator[tuple[Member, BinaryIO]]) -> Iterator[tuple[Placed, bytes]]:
        """Yield each speech file that belongs to the edition with its bytes; any other file is dealt with on the
        way."""
        for member, stream in members:
            self._look_at(member.path)
            self._files += 1
            content = classify(member.path)
            if content is Content.SPEECH:
                if placed := self._place(member):
                    if member.size <= LARGEST_SPEECH_BYTES:
                        data = stream.read()
                        self._look_at("")
                        yield placed, data
                    else:
                        self._take(placed, Inspection(None, (_too_large(member, LARGEST_SPEECH_BYTES),)))
            elif content in RESULT_KINDS and not self._expected.takes_results:
                self._unused += 1
            elif content in LARGEST_DOCUMENT_BYTES:
                self._keep_document(member, content, stream)
            elif content is Content.OTHER:
                self._pass_over(member.path, stream)

    def _place(self, member: Member) -> Placed | None:
        if not self._expected.data_sets:
            self._unexpected += 1
            return None
        placed, finding = self._names.place(member.path)
        if finding:
            self._found.add(finding)
        self._speech += placed is not None
        return placed

    def _inspect(self, placed: Placed, data: bytes) -> Inspection:
        original = self._expected.utterances.get(placed.utterance) or ExpectedUtterance(placed.utterance)
        self._look_at(placed.path)
        inspection = inspect_speech(
            data,
            file=placed.path,
            expected=original,
            rate_hz=self._rate_hz,
            keeps_duration=self._keeps_duration,
        )
        self._look_at("")
        return inspection

    def _take(self, placed: Placed, inspection: Inspection) -> None:
        kept, findings = self._roll.call(placed, inspection)
        for finding in findings:
            self._found.add(finding)
        if kept and inspection.speech:
            self._converted += bool(inspection.speech.converted_from)
            self._sound.append(FoundSpeech(kept.utterance, kept.data_sets, inspection.speech, kept.path))
        self._progress(READING, *self._done())

    def _keep_document(self, member: Member, content: Content, stream: BinaryIO) -> None:
        largest = LARGEST_DOCUMENT_BYTES[content]
        if member.size > largest:
            self._found.add(_too_large(member, largest))
            return
        try:
            place = write_document(self._documents, member.path, stream)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            self._found.add(describe("long-name/disk", member.path))
            return
        if content is Content.DESCRIPTION:
            self._check_description(member.path)
        if content is Content.TARGETS:
            self._found.keep(target_problems(member.path, place))
        if not member.size and content in RESULT_KINDS:
            self._empty.append(member.path)
        else:
            self._contents.add(content)
        self.paths.append(member.path)
        self._sound.append(FoundDocument(member.path, content, place))

    def _pass_over(self, path: str, stream: BinaryIO) -> None:
        """Note a file that is not used; where its content would be of use under another name, that is a warning."""
        problem = unused_by_name(path, stream.read(HEAD_BYTES), self._expected)
        if problem is None:
            self._other_count += 1
            self._others += [path] if len(self._others) < _OTHERS_NAMED else []
        else:
            self._found.add(problem)

    def _check_description(self, path: str) -> None:
        if problem := description_problem(path, self._documents / path):
            self._found.add(problem)

    def _left_out(self) -> Iterator[Problem]:
        if self._unexpected:
            yield describe("unexpected-audio", "the archive", count=self._unexpected)
        if self._unused:
            yield describe("unused-results", "the archive", count=self._unused)
        if self._other_count:
            more = f" and {self._other_count - len(self._others)} more"
            names = ", ".join(self._others) + (more if self._other_count > len(self._others) else "")
            yield describe("other-file", "the archive", count=self._other_count, names=names)

    def _done(self) -> tuple[int, int]:
        """Return how many speech files are done, and how many there should be; once all were read, as many as came."""
        called = self._roll.called
        if self._is_read:
            return max(1, called), max(1, called)
        return called, max(len(self._names.sets_of), called)


def _in_order(
    files: Iterator[tuple[Placed, bytes]], inspect: Callable[[Placed, bytes], Inspection], threads: int
) -> Iterator[tuple[Placed, Inspection]]:
    """Inspect in threads while the next files are read; as many as `_IN_FLIGHT_BYTES` allow are in memory."""

    def inspect_all(batch: list[tuple[Placed, bytes]]) -> list[tuple[Placed, Inspection]]:
        return [(placed, inspect(placed, data)) for placed, data in batch]

    waiting: deque[tuple[int, Future[list[tuple[Placed, Inspection]]]]] = deque()
    in_flight = 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="inspect-speech")
    try:
        for size, batch in _in_batches(files):
            waiting.append((size, pool.submit(inspect_all, batch)))
            in_flight += size
            while in_flight > _IN_FLIGHT_BYTES or len(waiting) > _MOST_WAITING:
                first, future = waiting.popleft()
                yield from future.result()
                in_flight -= first
        for _, future in waiting:
            yield from future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _in_batches(files: Iterator[tuple[Placed, bytes]]) -> Iterator[tuple[int, list[tuple[Placed, bytes]]]]:
    """Lists of about `_BATCH_BYTES`, with their size: handing over one small file costs as much as inspecting it."""
    size, batch = 0, []
    for placed, data in files:
        batch.append((placed, data))
        size += len(data)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield size, batch
            size, batch = 0, []
    if batch:
        yield size, batch


def _too_large(member: Member, largest: int) -> Problem:
    return describe("too-large", member.path, limit=format_size(largest), found=format_size(member.size))
