"""Reads the list of contents of a zip archive (APPNOTE 6.3.10, sections 4.3.12 to 4.3.16), record by record.

``zipfile`` is not safe enough for strangers' files: it reads the whole list into the memory as objects (a million empty
files take 600 MB), takes what the list says for true where the file before the data says something else, and reads
entries that lie over one another. Here the list is walked twice and only three numbers of each entry are kept.

Conventions: the list is what counts, and everything else must agree with it to the byte: no bytes before the first
file, between files, or between the list and the end record.
"""

from __future__ import annotations

import stat
import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

from evaluation.formats.sizes import size_words
from portal.submissions.intake.members import refuse_link, refuse_special
from portal.submissions.intake.names import RawName, decode, safe_path, shown_name
from portal.submissions.intake.refusals import (
    Limits,
    check_member_count,
    check_ratio,
    refuse,
    refuse_damaged,
    refuse_truncated,
)  # fmt: skip
from portal.submissions.intake.unpacking import refuse_trailing

RECORD = struct.Struct("<4s6H3L5H2L")
_RECORD_MARK, _END_MARK = b"PK\x01\x02", b"PK\x05\x06"
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LONGEST_COMMENT = 0xFFFF
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_UTF8 = 0x0800
_ZIP64, _UNICODE_PATH = 0x0001, 0x7075
_AES = 99
_REPARSE_POINT = 0x400
_WINDOWS_SYSTEMS = (0, 10, 14)
REPACK = "Make the archive again with a common program and send that."


@dataclass(frozen=True, slots=True)
class Record:
    """What the list of contents says of one entry.

    Attributes:
        raw_name: as it stands in the archive; the header before the data must have the same.
        path: checked; empty for the folder that the archive itself is.
        start: where the header before the data begins.
        length: bytes that lie between this record and the next.
    """

    raw_name: bytes
    path: str
    is_guessed: bool
    is_folder: bool
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    entries: int


class ZipDirectory:
    """The list of contents of a zip archive, checked as a whole.

    Args:
        file: the archive; reading goes on from anywhere.
        size: of the archive in bytes.

    Raises:
        ArchiveRefused: anything in the list is hostile or does not agree with the rest of the file.
    """

    def __init__(self, file: BinaryIO, size: int, name: str, limits: Limits) -> None:
        self._file, self._name, self._limits = file, name, limits
        self._place = _find(file, size, name)
        check_member_count(name, self._place.entries, limits)
        self._starts, self._ends, self._records = array("Q"), array("Q"), array("Q")
        self._walk()
        self._check_overlaps()

    @property
    def start(self) -> int:
        """Where the list begins, and the last entry ends."""
        return self._place.start

    def in_order(self) -> Iterator[tuple[Record, int]]:
        """Each record in the order in which the entries lie in the file, and where the next entry begins."""
        order = self._order()
        for number, entry in enumerate(order):
            following = self._starts[order[number + 1]] if number + 1 < len(order) else self.start
            yield self._read(self._records[entry]), following

    def _walk(self) -> None:
        at, total_size, total_packed = self._place.start, 0, 0
        while at < self._place.end:
            if len(self._records) == self._place.entries:
                refuse_contradiction(
                    self._name, f"as many entries as the end record says ({self._place.entries:,})", "more"
                )
            record = self._read(at)
            total_size, total_packed = total_size + record.size, total_packed + record.packed
            self._check_amounts(record, total_size, total_packed)
            self._starts.append(record.start)
            self._ends.append(record.start + 30 + len(record.raw_name) + record.packed)
            self._records.append(at)
            at += record.length
        if len(self._records) != self._place.entries or at != self._place.end:
            expected = f"as many entries as the end record says ({self._place.entries:,})"
            refuse_contradiction(self._name, expected, f"{len(self._records):,}")

    def _check_amounts(self, record: Record, total_size: int, total_packed: int) -> None:
        remedy = "Leave out what the edition does not ask for, or ask its organizers to raise the limit."
        for code, file, limit, found in (
            ("member-too-large", record.path, self._limits.member_bytes, record.size),
            ("archive-too-large", self._name, self._limits.total_bytes, total_size),
        ):
            if found > limit:
                refuse(code, file, f"at most {size_words(limit)} unpacked", f"at least {size_words(found)}", remedy)
        check_ratio(record.path, record.size, record.packed, self._limits)
        check_ratio(self._name, total_size, total_packed + RECORD.size * len(self._records), self._limits)

    def _check_overlaps(self) -> None:
        limit = self._place.start
        for entry in reversed(self._order()):
            if self._ends[entry] > limit:
                shown = self._read(self._records[entry]).path or self._name
                expected = "each file in a place of its own"
                refuse("overlapping-entries", shown, expected, "one that lies over another", REPACK)
            limit = self._starts[entry]
        if limit:
            refuse_contradiction(self._name, "the first file at the beginning of the zip", f"{limit:,} bytes before it")

    def _order(self) -> list[int]:
        return sorted(range(len(self._starts)), key=self._starts.__getitem__)

    def _read(self, at: int) -> Record:
        self._file.seek(at)
        fixed = self._file.read(RECORD.size)
        if len(fixed) < RECORD.size or not fixed.startswith(_RECORD_MARK):
            refuse_damaged(self._name, "a record of the list of contents", "something else")
        (_, made_by, _, flags, method, _, _, crc, packed, size, name_length, extra_length, comment_length, disk, _,
         attributes, start) = RECORD.unpack(fixed)  # fmt: skip
        raw = self._file.read(name_length)
        extra = self._file.read(extra_length)
        length = RECORD.size + name_length + extra_length + comment_length
        if len(extra) < extra_length or at + length > self._place.end:
            refuse_damaged(self._name, "whole records in the list of contents", "one that is longer than the list")
        fields = extra_fields(extra, self._name)
        name = _name(raw, flags, fields.get(_UNICODE_PATH, b""))
        shown = shown_name(name.text)
        size, packed, start, disk = _wide((size, packed, start, disk), fields.get(_ZIP64, b""), shown)
        if flags & _ENCRYPTED or method == _AES:
            remedy = "Pack again without a password."
            refuse("encrypted-archive", shown, "a zip that can be read", "an encrypted file", remedy)
        if disk:
            _refuse_split(self._name)
        is_folder = _check_kind(name.text, attributes, made_by >> 8, shown)
        path = safe_path(name.text, self._limits)
        if not path and not is_folder:
            refuse("empty-name", self._name, "a name for each file", "an empty one", "Name the file and pack again.")
        if is_folder and size:
            refuse("size-contradiction", shown, "a folder without bytes of its own", f"{size:,} bytes", REPACK)
        return Record(raw, path, name.is_guessed, is_folder, flags, method, crc, packed, size, start, length)


def extra_fields(extra: bytes, name: str) -> dict[int, bytes]:
    """The extra fields of a record or header by their kind."""
    fields: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if at + 4 + length > len(extra):
            break  # some programs pad with a few bytes
        if kind in fields and kind in (_ZIP64, _UNICODE_PATH):
            refuse_contradiction(name, "one name and one size for a file", "two")
        fields[kind] = extra[at + 4 : at + 4 + length]
        at += 4 + length
    return fields


def refuse_contradiction(file: str, expected: str, found: str) -> NoReturn:
    """Refuse a zip whose parts tell different things, so that two programs would see two archives."""
    refuse("zip-contradiction", file, expected, found, REPACK)


def _find(file: BinaryIO, size: int, name: str) -> _Place:
    """Where the list of contents lies, by the end record and, in large archives, its wider form."""
    window = min(size, _LONGEST_COMMENT + _END.size)
    file.seek(size - window)
    tail = file.read(window)
    found = [at for at in _places(tail) if at + _END.size + int.from_bytes(tail[at + 20 : at + 22], "little") == window]
    if not found:
        if any(_is_complete(tail, at) for at in _places(tail)):
            refuse_trailing(name, "the zip")
        refuse_truncated(name, "the list of contents at the end of the zip")
    if len(found) > 1:
        refuse_contradiction(name, "one end record", f"{len(found)}, one in the comment of the other")
    at = size - window + found[0]
    _, disk, first_disk, here, entries, length, start, _ = _END.unpack_from(tail, found[0])
    file.seek(max(at - _END64_LOCATOR.size, 0))
    locator = file.read(_END64_LOCATOR.size)
    end = at
    if at >= _END64_LOCATOR.size and locator.startswith(b"PK\x06\x07"):
        narrow = (disk, first_disk, here, entries, length, start)
        end, (disk, first_disk, here, entries, length, start) = _find_wide(file, at, locator, narrow, name)
    if disk or first_disk or here != entries:
        _refuse_split(name)
    if start + length != end:
        found_text = f"{length:,} bytes from byte {start:,} on"
        refuse_contradiction(name, f"a list of contents up to the end record at byte {end:,}", found_text)
    return _Place(start, end, entries)


def _find_wide(
    file: BinaryIO, at: int, locator: bytes, narrow: tuple[int, ...], name: str
) -> tuple[int, tuple[int, int, int, int, int, int]]:
    _, _, place, disks = _END64_LOCATOR.unpack(locator)
    if disks > 1:
        _refuse_split(name)
    if place > at - _END64_LOCATOR.size - _END64.size:
        refuse_contradiction(name, "the zip64 end record before its locator", f"it at byte {place:,}")
    file.seek(place)
    mark, length, _, _, *wide = _END64.unpack(file.read(_END64.size))
    if mark != b"PK\x06\x06" or place + 12 + length != at - _END64_LOCATOR.size:
        refuse_contradiction(name, "a zip64 end record at the place that is named", "something else")
    full = (_FULL16, _FULL16, _FULL16, _FULL16, _FULL32, _FULL32)
    if any(short not in (long, limit) for short, long, limit in zip(narrow, wide, full, strict=True)):
        refuse_contradiction(name, "both end records to say the same", "two different lists of contents")
    disk, first_disk, here, entries, size, start = wide
    return place, (disk, first_disk, here, entries, size, start)


def _places(tail: bytes) -> Iterator[int]:
    at = tail.find(_END_MARK)
    while at >= 0:
        yield at
        at = tail.find(_END_MARK, at + 1)


def _is_complete(tail: bytes, at: int) -> bool:
    return at + _END.size + int.from_bytes(tail[at + 20 : at + 22], "little") < len(tail)


def _refuse_split(name: str) -> NoReturn:
    refuse("split-archive", name, "the whole archive in one file", "one part of several", "Pack again as one file.")


def _name(raw: bytes, flags: int, stated: bytes) -> RawName:
    """The name as the flag says, as the extra field of Info-ZIP says, or UTF-8 where it can be."""
    if len(stated) > 5 and stated[0] == 1 and int.from_bytes(stated[1:5], "little") == zlib.crc32(raw):
        raw = stated[5:]
    name = decode(raw)
    if name.is_guessed and flags & _UTF8:
        shown = shown_name(name.text)
        refuse_damaged(shown, "a name in UTF-8, as its flag says", "another encoding")
    return name


def _wide(narrow: tuple[int, int, int, int], stated: bytes, shown: str) -> tuple[int, int, int, int]:
    """Size, packed size, start and disk; those that do not fit their field stand in the extra field of zip64."""
    values, at = [], 0
    for value, full, width in zip(narrow, (_FULL32, _FULL32, _FULL32, _FULL16), (8, 8, 8, 4), strict=True):
        if value == full:
            if at + width > len(stated):
                refuse_damaged(shown, "its size and place in the zip64 field", "a field that is too short")
            values.append(int.from_bytes(stated[at : at + width], "little"))
            at += width
        else:
            values.append(value)
    size, packed, start, disk = values
    return size, packed, start, disk


def _check_kind(name: str, attributes: int, system: int, shown: str) -> bool:
    """Whether it is a folder; anything but files and folders refuses."""
    kind = stat.S_IFMT(attributes >> 16)
    refuse_special(kind, shown)
    if attributes & _REPARSE_POINT and system in _WINDOWS_SYSTEMS:
        refuse_link("symbolic-link", "a symbolic link", shown)
    return name.endswith("/") or kind == stat.S_IFDIR
