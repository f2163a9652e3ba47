"""Recordings of a listening test of one's own: an archive of CONDITION/ITEM.wav or .flac, perhaps with items.csv.

A folder around all of it, as most archives have, does not count. The archive is read as those of submissions are
(`portal.intake.archives.reading`), by a process of its own, and every recording is decoded from end to end. What cannot
be used is an error; what deserves a look before anybody listens is a warning: items that a condition lacks, clipping,
rates and channels that differ, versions of an item that differ in length or level.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import log10
from pathlib import Path, PurePosixPath
from typing import Any

from common.child_process import Child, ChildEnded, ChildLimits, run_in_child
from common.errors import ProblemsError
from common.problems import Problem, ProblemFound, ProblemList, Severity
from common.wording import counted, name_some
from listening.stimuli.making import SHORTEST_S
from portal.core.storage import SPARE_BYTES
from portal.intake.archives.limits import GIGABYTE, MEGABYTE, ArchiveLimits
from portal.intake.archives.reading import read_archive
from portal.intake.documents import write_document
from speech.audio.files import AudioError, inspect_audio

ENDINGS = (".wav", ".flac")
ITEMS = "items.csv"
COLUMNS = ("item", "speaker", "sex", "language", "text", "answer")
PRACTICE, CONTROL = "practice-trials", "control-trials"  # folders of recordings that are not scored
SEXES = {"": "", "f": "f", "female": "f", "w": "f", "m": "m", "male": "m"}
LIMITS = ArchiveLimits(members=20_000, total_bytes=8 * GIGABYTE, member_bytes=200 * MEGABYTE)
LARGEST_TEXT = 4 * MEGABYTE
MOST_CONDITIONS, MOST_ITEMS, MOST_CHANNELS = 50, 2000, 2
LONGEST_S = 300.0
LONGEST_CONDITION, LONGEST_ITEM, LONGEST_LANGUAGE, LONGEST_ANSWER = 40, 120, 8, 20
FULL_SCALE = 1 - 1 / 32768
UNEQUAL_S, UNEQUAL_DB = 0.5, 6.0  # of versions of one item, from which on they are named
# What reading may use; the rest by the size of the archive.
CPU_S, CPU_S_PER_MEGABYTE, MEMORY_BYTES, SLOWEST = 30.0, 1.0, 1 << 30, 10


@dataclass(frozen=True)
class FoundRecording:
    """A recording as it lies in the archive; `path` below the folder to which the archive was unpacked."""

    condition: str
    item: str
    path: str
    rate_hz: int
    channels: int
    seconds: float
    peak: float
    level_dbov: float
    sha256: str


@dataclass(frozen=True)
class FoundItem:
    """What items.csv says of an item."""

    speaker: str = ""
    sex: str = ""
    language: str = ""
    transcript: str = ""
    answer: str = ""


@dataclass(frozen=True)
class FoundRecordings:
    """What an archive holds. `warnings`: sentences for who looks at it before the launch."""

    recordings: tuple[FoundRecording, ...]
    items: Mapping[str, FoundItem] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def conditions(self) -> list[str]:
        return sorted({one.condition for one in _scored(self.recordings)})

    def items_for(self, purpose: str) -> list[str]:
        """Return the recordings for `PRACTICE`, or those with a known answer, `CONTROL`."""
        return sorted(one.item for one in self.recordings if one.condition == purpose)

    def describe(self, item: str) -> FoundItem:
        """Return what is said of an item; nothing where nobody said anything."""
        return self.items.get(item, FoundItem())

    @property
    def common_items(self) -> list[str]:
        """Return the items that every condition has."""
        counts = Counter(one.item for one in _scored(self.recordings))
        conditions = len(self.conditions)
        return sorted(item for item, count in counts.items() if count == conditions)


def _scored(recordings: Iterable[FoundRecording]) -> list[FoundRecording]:
    return [one for one in recordings if one.condition not in (PRACTICE, CONTROL)]


def read_recordings(archive: Path, name: str, folder: Path) -> FoundRecordings:
    """Unpack an archive into an empty folder and say what it holds.

    Args:
        name: of the archive as its owner knows it.

    Raises:
        ProblemsError: with every reason for which it cannot be used.
    """
    cpu_s = CPU_S + CPU_S_PER_MEGABYTE * archive.stat().st_size / MEGABYTE
    limits = ChildLimits(cpu_s, MEMORY_BYTES, SLOWEST * cpu_s)
    try:
        told = run_in_child(lambda child: asdict(_read(archive, name, folder, child)), limits)
    except ChildEnded as ended:
        raise ProblemsError([f"{ended.where(name)} cannot be read: {ended.how}. Pack the archive again."]) from None
    found = _Unpacked([FoundRecording(**one) for one in told["recordings"]], told["texts"], told["problems"])
    problems = [Problem(**one) for one in found.problems]
    errors = [one.sentence() for one in problems if one.severity is Severity.ERROR]
    items, more = _read_items(found)
    scored = _scored(found.recordings)
    errors += [*more, *_find_errors(scored), *_find_unscored_errors(found.recordings, items)]
    if errors:
        raise ProblemsError(errors)
    warnings = [one.sentence() for one in problems if one.severity is Severity.WARNING]
    warnings += _find_warnings(scored, items)
    return FoundRecordings(tuple(found.recordings), items, tuple(warnings))


@dataclass
class _Unpacked:
    recordings: list[FoundRecording]
    texts: dict[str, str]  # by path
    problems: list[dict[str, Any]]


def _read(archive: Path, name: str, folder: Path, child: Child) -> _Unpacked:
    found = _Unpacked([], {}, [])
    problems = ProblemList()
    try:
        for member, stream in read_archive(archive, name=name, limits=LIMITS, report=problems.add):
            child.look_at(member.path)
            path = PurePosixPath(member.path)
            if shutil.disk_usage(folder).free < SPARE_BYTES + member.size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if path.name.lower() == ITEMS and member.size <= LARGEST_TEXT:
                found.texts[member.path] = stream.read().decode("utf-8-sig", "replace")
            elif path.suffix.lower() in ENDINGS and len(path.parts) > 1:
                _inspect(write_document(folder, member.path, stream), path, found, problems)
            else:
                problems.add(_unexpected(member.path))
    except ProblemFound as refused:
        problems.add(refused.problem)
    found.problems = [asdict(one) for one in problems.report()]
    return found


def _inspect(file: Path, path: PurePosixPath, found: _Unpacked, problems: ProblemList) -> None:
    try:
        facts = inspect_audio(file)
    except AudioError as error:
        problems.add(error.problem(str(path)))
        return
    if facts.channels > MOST_CHANNELS:
        wrong = ("too-many-channels", "one or two channels", str(facts.channels), "Mix it down to mono or stereo.")
    elif not SHORTEST_S <= facts.duration_s <= LONGEST_S:
        expected = f"{SHORTEST_S:g} to {LONGEST_S:g} s"
        wrong = ("wrong-length", expected, f"{facts.duration_s:.2f} s", "Cut it, or leave it out.")
    elif facts.is_silent:
        wrong = ("silent", "sound", "silence", "Make it again, or leave it out.")
    else:
        told: dict[str, Any] = {"rate_hz": facts.rate_hz, "channels": facts.channels, "peak": facts.peak}
        level = round(20 * log10(facts.rms), 1)
        place: dict[str, Any] = {
            "condition": path.parts[-2],
            "item": path.stem,
            "path": str(path),
            "sha256": facts.sha256,
        }
        found.recordings.append(FoundRecording(**place, **told, seconds=facts.duration_s, level_dbov=level))
        return
    code, expected, there, remedy = wrong
    problems.add(Problem(code, str(path), expected, there, remedy))


def _unexpected(path: str) -> Problem:
    expected = f"CONDITION/ITEM{' or '.join(ENDINGS)}, or {ITEMS}"
    return Problem("unexpected-file", path, expected, "another file", "It was left out.", Severity.WARNING)


def _read_items(found: _Unpacked) -> tuple[dict[str, FoundItem], list[str]]:
    """Return what items.csv says, and what is wrong with it."""
    known = {one.item for one in found.recordings}
    items: dict[str, FoundItem] = {}
    errors = []
    for path, text in found.texts.items():
        if "\ufffd" in text:
            errors.append(f"{path}: expected text in UTF-8, found other bytes. Save the table as CSV in UTF-8.")
            continue
        rows = csv.DictReader(io.StringIO(text, newline=None))
        try:
            columns = [(name or "").strip().lower() for name in rows.fieldnames or ()]
            rows.fieldnames = columns
            lines = list(rows)
        except csv.Error as error:
            errors.append(f"{path}: expected a table with commas between its columns: {error}. Save it as CSV again.")
            continue
        if "item" not in columns or set(columns) - set(COLUMNS):
            found_columns = text.splitlines()[0][:80] if text else "nothing"
            wanted = ", ".join(COLUMNS[1:])
            errors.append(f"{path}, line 1: expected the column item and any of {wanted}, found {found_columns}.")
            continue
        for number, row in enumerate(lines, 2):
            told = {name: (row.get(name) or "").strip() for name in COLUMNS}
            item = PurePosixPath(told.pop("item")).name
            item = item if item in known else PurePosixPath(item).stem
            sex = told["sex"].lower()
            if sex not in SEXES:
                errors.append(f"{path}, line {number}: expected f, m or nothing as the sex, found {told['sex'][:20]}.")
            elif item in items:
                errors.append(f"{path}, line {number}: expected each item once, found {item} again. Leave one of them.")
            elif item in known:
                language = told["language"][:LONGEST_LANGUAGE]
                speaker, answer = told["speaker"][:LONGEST_ITEM], told["answer"].replace("–", "-")[:LONGEST_ANSWER]
                items[item] = FoundItem(speaker, SEXES[sex], language, told["text"], answer)
    return items, errors


def _find_errors(recordings: Collection[FoundRecording]) -> Iterator[str]:
    conditions = {one.condition for one in recordings}
    if not recordings:
        yield "There is no recording CONDITION/ITEM.wav or .flac in the archive: each condition is a folder."
        return
    if len(conditions) > MOST_CONDITIONS:
        yield f"Expected at most {MOST_CONDITIONS} conditions, each a folder, found {len(conditions)}."
    if (items := len({one.item for one in recordings})) > MOST_ITEMS:
        yield f"Expected at most {MOST_ITEMS} items, found {items}."
    for name in sorted(conditions):
        if len(name) > LONGEST_CONDITION:
            yield f"{name}: expected a folder name of at most {LONGEST_CONDITION} characters. Give it a shorter one."
    paths: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in recordings:
        paths[one.condition, one.item].append(one.path)
        if len(one.item) > LONGEST_ITEM:
            yield f"{one.path}: expected a file name of at most {LONGEST_ITEM} characters. Give it a shorter one."
    for (condition, item), twice in sorted(paths.items()):
        if len(twice) > 1:
            yield f"{condition}: {item} is there {len(twice)} times, as {name_some(sorted(twice))}. Leave one of them."
    counts = Counter(item for _, item in paths)
    if max(counts.values()) < len(conditions):
        yield (
            f"No item is in all {len(conditions)} conditions: one recording has one file name in every folder. "
            f"The folders are {name_some(sorted(conditions))}."
        )


def _find_unscored_errors(recordings: Iterable[FoundRecording], items: Mapping[str, FoundItem]) -> Iterator[str]:
    scored = {one.item for one in _scored(recordings)}
    seen: set[str] = set()
    for one in recordings:
        if one.condition not in (PRACTICE, CONTROL):
            continue
        if one.item in scored | seen:
            yield f"{one.path}: expected a name that no other recording has, found one that is there twice. Rename it."
        seen.add(one.item)
        if one.condition == CONTROL and not items.get(one.item, FoundItem()).answer:
            yield f"{one.path}: expected its right answer in the column answer of {ITEMS}, found none. Add it."


def _find_warnings(recordings: Collection[FoundRecording], items: Mapping[str, FoundItem]) -> Iterator[str]:
    conditions = sorted({one.condition for one in recordings})
    of_item: dict[str, list[FoundRecording]] = defaultdict(list)
    for one in recordings:
        of_item[one.item].append(one)
    for condition in conditions:
        lacking = sorted(item for item, them in of_item.items() if condition not in {one.condition for one in them})
        if lacking:
            yield f"{condition} lacks {len(lacking)} of {len(of_item)} items, which are left out: {name_some(lacking)}."
    if clipped := sorted(one.path for one in recordings if one.peak >= FULL_SCALE):
        found = counted(len(clipped), "recording")
        yield f"Full scale is reached by {found}, which may be clipped: {name_some(clipped)}."
    for words, values in (
        ("Sampling rates differ", {one.path: f"{one.rate_hz:,} Hz" for one in recordings}),
        ("Numbers of channels differ", {one.path: "mono" if one.channels == 1 else "stereo" for one in recordings}),
    ):
        yield from _differing(words, values)
    complete = {item: them for item, them in of_item.items() if len(them) == len(conditions)}
    for words, unit, limit, value in (
        ("length", "s", UNEQUAL_S, lambda one: one.seconds),
        ("level", "dB", UNEQUAL_DB, lambda one: one.level_dbov),
    ):
        apart = {item: max(map(value, them)) - min(map(value, them)) for item, them in complete.items()}
        unequal = sorted((item for item, by in apart.items() if by > limit), key=lambda item: -apart[item])
        if unequal:
            told = name_some([f"{item} ({apart[item]:.1f} {unit})" for item in unequal])
            found = counted(len(unequal), "item")
            yield f"The versions of {found} differ in {words} by more than {limit:g} {unit}: {told}."
    if items and (missing := sorted(of_item.keys() - items.keys())):
        yield f"{ITEMS} does not name {len(missing)} of {len(of_item)} items: {name_some(missing)}."


def _differing(words: str, values: Mapping[str, str]) -> Iterable[str]:
    counts = Counter(values.values())
    if len(counts) < 2:
        return []
    usual = counts.most_common(1)[0][0]
    others = sorted(path for path, value in values.items() if value != usual)
    told = ", ".join(f"{value} {count} times" for value, count in counts.most_common())
    return [f"{words}: {told}. Not as most are: {name_some(others)}."]
