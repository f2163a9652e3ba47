"""An archive from its first byte to its report: the one check behind the portal's intake and ``vp verify``.

The archive is streamed once. Speech is decoded and measured in threads while the next files are read; what is sound
goes to a `Keeper` at once, so that of thousands of utterances a handful is in memory. Every fault is found in one pass,
and each is told once, under its own name.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Protocol

from evaluation.formats.problems import Problem, Severity
from evaluation.formats.sizes import size_words
from portal.submissions.intake.archives import ArchiveRefused, Member, read_archive
from portal.submissions.intake.contents import Content, classify
from portal.submissions.intake.documents import (
    description_problem,
    missing_parts,
    result_problems,
    target_problems,
    write_document,
)
from portal.submissions.intake.expected import ExpectedSubmission, ExpectedUtterance
from portal.submissions.intake.folders import read_folder
from portal.submissions.intake.report import WHOLE_SUBMISSION, Counts, FindingList, IntakeReport
from portal.submissions.intake.speech import LARGEST_BYTES, InspectedSpeech, Inspection, inspect_speech
from portal.submissions.intake.utterances import Names, Placed, RollCall, missing_findings

READING, RESULTS, MISSING = "Reading the archive", "Reading results", "Looking for what is missing"
MEBIBYTE, MEGABYTE = 2**20, 10**6
LARGEST_DOCUMENT_BYTES = {
    Content.RESULTS: 16 * MEGABYTE,
    Content.SCORES: 256 * MEGABYTE,
    Content.HYPOTHESES: 256 * MEGABYTE,
    Content.SIMILARITY: 64 * MEGABYTE,
    Content.DESCRIPTION: 64 * MEGABYTE,
    Content.TARGETS: 64 * MEGABYTE,
}
_IN_FLIGHT_BYTES = 2 * LARGEST_BYTES
_BATCH_BYTES, _BATCH_FILES = MEBIBYTE, 64
_MOST_WAITING = 8  # batches
_MOST_THREADS = 4
_OTHERS_NAMED = 3

Progress = Callable[[str, int, int], None]
HandDown = Callable[[Sequence[str]], Sequence[str]]


class Keeper(Protocol):
    """Takes what is worth keeping, in the order of the archive, from the thread that called `check_archive`."""

    def keep_speech(self, utterance: str, data_sets: Sequence[str], speech: InspectedSpeech, path: str) -> None:
        """Speech without an error, and the data sets that it serves; called once for each file."""

    def keep_document(self, path: str, content: Content, stream: BinaryIO) -> None:
        """A file that is not speech; the stream can be read once and is closed afterwards."""


class KeepNothing:
    """The keeper of a check that only reports."""

    def keep_speech(self, utterance: str, data_sets: Sequence[str], speech: InspectedSpeech, path: str) -> None:
        """Nothing."""

    def keep_document(self, path: str, content: Content, stream: BinaryIO) -> None:
        """Nothing."""


def check_archive(
    source: Path, *, name: str, expected: ExpectedSubmission, keeper: Keeper, documents: Path,
    inherited: Mapping[str, frozenset[str]] | None = None, hand_down: HandDown | None = None,
    progress: Progress | None = None,
) -> IntakeReport:  # fmt: skip
    """Read an archive, or a plain folder, hold it against what an edition expects, and hand on what is sound.

    Args:
        source: the archive, or a folder with the same content.
        name: the archive as its owner knows it.
        documents: an empty folder; files that are not speech lie there afterwards under their paths in the archive.
        inherited: the utterances of each data set that an earlier submission serves where the archive does not.
        hand_down: is told the paths of the documents that came, puts those that an earlier submission adds to them
            into `documents` and names their paths; they are read with the others. Those that it does not put there
            count as present and sound.
        progress: is told stage, how many speech files are done, and how many there should be (0 where unknown).

    Returns:
        The whole report. Where the archive had to be refused half-way (`IntakeReport.is_refused`), the keeper may have
        been given files before; nothing of them may stay.

    Raises:
        RecipeError: the recipe of the edition cannot be read.
    """
    check = _Check(name, expected, keeper, documents, progress or _no_progress)
    try:
        check.read(source)
    except ArchiveRefused as refusal:
        return check.refused(refusal.problem)
    if hand_down is not None:
        check.inherit(hand_down)
    return check.report(inherited or {})


class _Check:
    """One archive on its way through the check."""

    def __init__(
        self, name: str, expected: ExpectedSubmission, keeper: Keeper, documents: Path, progress: Progress
    ) -> None:
        self._name, self._expected, self._keeper, self._documents = name, expected, keeper, documents
        self._progress = progress
        self._names = Names(expected)
        self._roll = RollCall(expected)
        self._found = FindingList(expected.data_sets)
        self._paths: list[str] = []
        self._handed_down: tuple[str, ...] = ()
        self._contents: set[Content] = set()
        self._others: list[str] = []
        self._files = self._speech = self._unexpected = self._converted = self._other_count = 0
        self._rate_hz = expected.rate_hz

    def read(self, source: Path) -> None:
        """Everything in the archive, once."""
        report = lambda problem: self._found.add(WHOLE_SUBMISSION, problem)  # noqa: E731
        if source.is_dir():
            members = read_folder(source, limits=self._expected.limits, report=report)
        else:
            members = read_archive(source, name=self._name, limits=self._expected.limits, report=report)
        for placed, inspection in _in_order(self._speech_files(members), self._inspect):
            self._take(placed, inspection)

    def refused(self, problem: Problem) -> IntakeReport:
        """The report on an archive that could not be read to its end."""
        self._found.add(WHOLE_SUBMISSION, problem)
        return self._finished(0, 0, is_refused=True)

    def inherit(self, hand_down: HandDown) -> None:
        """Take the documents of an earlier submission for such of this one."""
        self._handed_down = tuple(hand_down(tuple(self._paths)))
        for path in self._handed_down:
            place = self._documents / path
            if not place.is_file() or classify(path) is not Content.DESCRIPTION:
                continue
            if fault := description_problem(path, place, self._expected):
                self._found.add(WHOLE_SUBMISSION, fault)

    def report(self, inherited: Mapping[str, frozenset[str]]) -> IntakeReport:
        """The report on an archive that was read to its end."""
        self._progress(RESULTS, self._speech, self._total())
        paths, contents = (*self._paths, *self._handed_down), {*self._contents, *map(classify, self._handed_down)}
        self._found.keep(WHOLE_SUBMISSION, result_problems(self._documents, paths, self._expected))
        if self._speech or any(inherited.values()) or not self._expected.data_sets:  # without originals none can come
            contents.add(Content.SPEECH)
        self._found.keep(WHOLE_SUBMISSION, missing_parts(contents, self._expected))
        self._found.keep(WHOLE_SUBMISSION, self._left_out())
        self._progress(MISSING, self._speech, self._total())
        for finding in self._roll.findings():
            self._found.add(finding.data_set, finding.problem)
        missing = self._roll.missing(inherited)
        nothing_came = not self._speech and not any(inherited.values())
        for finding in missing_findings(missing, self._expected, nothing_came=nothing_came):
            self._found.add(finding.data_set, finding.problem)
        return self._finished(sum(map(len, missing.values())), self._roll.served())

    def _finished(self, missing: int, received: int, *, is_refused: bool = False) -> IntakeReport:
        expected = sum(map(len, self._expected.data_sets.values()))
        counts = Counts(
            files=self._files,
            speech=self._speech,
            expected=expected,
            received=received,
            inherited=0 if is_refused else expected - missing - received,
            missing=missing,
            converted=self._converted,
            documents=len(self._paths),
        )
        faulty = tuple(sorted(self._roll.faulty))
        return IntakeReport(self._name, self._expected.edition, self._found.findings(), counts, faulty, is_refused)

    def _speech_files(self, members: Iterator[tuple[Member, BinaryIO]]) -> Iterator[tuple[Placed, bytes]]:
        """Each speech file that belongs to the edition with its bytes; any other file is dealt with on the way."""
        for member, stream in members:
            self._files += 1
            content = classify(member.path)
            if content is Content.SPEECH:
                if placed := self._place(member):
                    if member.size <= LARGEST_BYTES:
                        yield placed, stream.read()
                    else:
                        self._take(placed, Inspection(None, (_too_large(member, LARGEST_BYTES),)))
            elif content in LARGEST_DOCUMENT_BYTES:
                self._keep_document(member, content, stream)
            elif content is Content.OTHER:
                self._other_count += 1
                self._others += [member.path] if len(self._others) < _OTHERS_NAMED else []

    def _place(self, member: Member) -> Placed | None:
        if not self._expected.data_sets:
            self._unexpected += 1
            return None
        placed, finding = self._names.place(member.path)
        if finding:
            self._found.add(finding.data_set, finding.problem)
        self._speech += placed is not None
        return placed

    def _inspect(self, placed: Placed, data: bytes) -> Inspection:
        original = self._expected.utterances.get(placed.utterance) or ExpectedUtterance(placed.utterance)
        return inspect_speech(data, file=placed.path, expected=original, rate_hz=self._rate_hz)

    def _take(self, placed: Placed, inspection: Inspection) -> None:
        kept, findings = self._roll.call(placed, inspection)
        for finding in findings:
            self._found.add(finding.data_set, finding.problem)
        if kept and inspection.speech:
            self._converted += bool(inspection.speech.converted_from)
            self._keeper.keep_speech(kept.utterance, kept.data_sets, inspection.speech, kept.path)
        self._progress(READING, self._roll.called, self._total())

    def _keep_document(self, member: Member, content: Content, stream: BinaryIO) -> None:
        largest = LARGEST_DOCUMENT_BYTES[content]
        if member.size > largest:
            self._found.add(WHOLE_SUBMISSION, _too_large(member, largest))
            return
        try:
            place = write_document(self._documents, member.path, stream)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            remedy = "Shorten the names of files and folders and pack again."
            problem = Problem("long-name", member.path, "a name that a disk can hold", "a longer one", remedy)
            self._found.add(WHOLE_SUBMISSION, problem)
            return
        if content is Content.DESCRIPTION and (fault := description_problem(member.path, place, self._expected)):
            self._found.add(WHOLE_SUBMISSION, fault)
        if content is Content.TARGETS:
            self._found.keep(WHOLE_SUBMISSION, target_problems(member.path, place))
        self._contents.add(content)
        self._paths.append(member.path)
        with place.open("rb") as kept:
            self._keeper.keep_document(member.path, content, kept)

    def _left_out(self) -> Iterator[Problem]:
        if self._unexpected:
            remedy = "It is not used: this edition evaluates score files only."
            found = f"{self._unexpected} of speech"
            yield Problem("unexpected-audio", "the archive", "no files of speech", found, remedy, Severity.NOTE)
        if self._other_count:
            more = f" and {self._other_count - len(self._others)} more"
            found = ", ".join(self._others) + (more if self._other_count > len(self._others) else "")
            remedy = "They are not kept; nothing needs to be done."
            expected = "files that something is computed from"
            count = self._other_count
            yield Problem("other-file", "the archive", expected, found, remedy, Severity.NOTE, count=count)

    def _total(self) -> int:
        return max(len(self._names.sets_of), self._roll.called)


def _in_order(
    files: Iterator[tuple[Placed, bytes]], inspect: Callable[[Placed, bytes], Inspection]
) -> Iterator[tuple[Placed, Inspection]]:
    """Inspect in threads while the next files are read; as many as `_IN_FLIGHT_BYTES` allow are in memory."""

    def inspect_all(batch: list[tuple[Placed, bytes]]) -> list[tuple[Placed, Inspection]]:
        return [(placed, inspect(placed, data)) for placed, data in batch]

    waiting: deque[tuple[int, Future[list[tuple[Placed, Inspection]]]]] = deque()
    in_flight = 0
    pool = ThreadPoolExecutor(max(1, min(_MOST_THREADS, os.cpu_count() or 1)), thread_name_prefix="inspect-speech")
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


def _no_progress(_stage: str, _done: int, _total: int) -> None:
    """For those who do not look."""


def _too_large(member: Member, largest: int) -> Problem:
    remedy = "No file of this kind needs to be so large: look at what is in it."
    expected, found = f"at most {size_words(largest)}", size_words(member.size)
    return Problem("too-large", member.path, expected, found, remedy)
