"""Reads the files of a zip archive (APPNOTE 6.3.10) in their order, each checked against the list of contents.

``zipfile`` is not safe enough for strangers' files: it reads the whole list into the memory as objects (a million empty
files take 600 MB), takes what the list says for true where the file before the data says something else, and reads
entries that lie over one another. Here the list is walked twice and only three numbers of each entry are kept.

Methods: stored, deflate, bzip2, LZMA. Conventions: the list is what counts, and everything else must agree with it to
the byte: no bytes before the first file, between files, or between the list and the end record.
"""

from __future__ import annotations

import bz2
import lzma
import stat
import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

from common.memory import format_size
from portal.intake.archives.decompression import (
    DAMAGE,
    UNPACK_BYTES,
    Decompressor,
    Inflater,
    refuse_dictionary,
    refuse_trailing,
)
from portal.intake.archives.limits import (
    LARGEST_DICTIONARY_BYTES,
    READ_BYTES,
    ArchiveLimits,
    Meter,
    check_member_count,
    check_ratio,
    check_size,
    refuse,
    refuse_damaged,
    refuse_truncated,
)
from portal.intake.archives.members import (
    ArchiveEntry,
    MemberStream,
    RawName,
    decode,
    refuse_filled_folder,
    refuse_special,
    safe_path,
    shown_name,
)

RECORD = struct.Struct("<4xH2x2H4x3L4H2x2L")  # what is of no use here is skipped
_RECORD_MARK, _END_MARK = b"PK\x01\x02", b"PK\x05\x06"
_END = struct.Struct("<4x4H2LH")
_END64_LOCATOR = struct.Struct("<8xQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LONGEST_COMMENT = 0xFFFF
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_UTF8 = 0x0800
_ZIP64, _UNICODE_PATH = 0x0001, 0x7075
_AES = 99
_REPARSE_POINT = 0x400
_WINDOWS_SYSTEMS = (0, 10, 14)
_HEADER = struct.Struct("<4x2x2H4x3L2H")
_HEADER_MARK, _DESCRIPTOR_MARK = b"PK\x03\x04", b"PK\x07\x08"
_HAS_DESCRIPTOR = 0x0008
_COMPARED_FLAGS = 0x0001 | _HAS_DESCRIPTOR | 0x0040 | 0x2000
_STORED, _DEFLATED, _BZIP2, _LZMA = 0, 8, 12, 14
_METHODS = {
    1: "shrinking",
    6: "imploding",
    9: "Deflate64, which Windows uses for large files",
    93: "Zstandard",
    95: "xz",
    98: "PPMd",
}


@dataclass(frozen=True, slots=True)
class ZipRecord:
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
        ProblemFound: anything in the list is hostile or does not agree with the rest of the file.
    """

    def __init__(self, file: BinaryIO, size: int, name: str, limits: ArchiveLimits) -> None:
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

    def in_order(self) -> Iterator[tuple[ZipRecord, int]]:
        """Each record in the order in which the entries lie in the file, and where the next entry begins."""
        order = self._order()
        for number, entry in enumerate(order):
            following = self._starts[order[number + 1]] if number + 1 < len(order) else self.start
            yield self._read(self._records[entry]), following

    def _walk(self) -> None:
        at, total_size, total_packed = self._place.start, 0, 0
        expected = f"as many entries as the end record says ({self._place.entries:,})"
        while at < self._place.end:
            if len(self._records) == self._place.entries:
                refuse_contradiction(self._name, expected, "more")
            record = self._read(at)
            total_size, total_packed = total_size + record.size, total_packed + record.packed
            self._check_amounts(record, total_size, total_packed)
            self._starts.append(record.start)
            self._ends.append(record.start + 30 + len(record.raw_name) + record.packed)
            self._records.append(at)
            at += record.length
        if len(self._records) != self._place.entries or at != self._place.end:
            refuse_contradiction(self._name, expected, f"{len(self._records):,}")

    def _check_amounts(self, record: ZipRecord, total_size: int, total_packed: int) -> None:
        check_size("member-too-large", record.path, self._limits.member_bytes, record.size)
        check_size("archive-too-large", self._name, self._limits.total_bytes, total_size)
        check_ratio(record.path, record.size, record.packed, self._limits)
        check_ratio(self._name, total_size, total_packed + RECORD.size * len(self._records), self._limits)

    def _check_overlaps(self) -> None:
        limit = self._place.start
        for entry in reversed(self._order()):
            if self._ends[entry] > limit:
                refuse("overlapping-entries", self._read(self._records[entry]).path or self._name)
            limit = self._starts[entry]
        if limit:
            refuse_contradiction(self._name, "the first file at the beginning of the zip", f"{limit:,} bytes before it")

    def _order(self) -> list[int]:
        return sorted(range(len(self._starts)), key=self._starts.__getitem__)

    def _read(self, at: int) -> ZipRecord:
        self._file.seek(at)
        fixed = self._file.read(RECORD.size)
        if len(fixed) < RECORD.size or not fixed.startswith(_RECORD_MARK):
            refuse_damaged(self._name, "a record of the list of contents", "something else")
        made_by, flags, method, crc, packed, size, *lengths, disk, attributes, start = RECORD.unpack(fixed)
        name_length, extra_length, comment_length = lengths
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
            refuse("encrypted-archive", shown)
        if disk:
            refuse("split-archive", self._name)
        is_folder = _check_kind(name.text, attributes, made_by >> 8, shown)
        path = safe_path(name.text, self._limits)
        if not path and not is_folder:
            refuse("empty-name", self._name)
        if is_folder and size:
            refuse_filled_folder(shown, size)
        return ZipRecord(raw, path, name.is_guessed, is_folder, flags, method, crc, packed, size, start, length)


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
    refuse("zip-contradiction", file, expected=expected, found=found)


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
    disk, first_disk, here, entries, length, start, _ = _END.unpack_from(tail, found[0])
    file.seek(max(at - _END64_LOCATOR.size, 0))
    locator = file.read(_END64_LOCATOR.size)
    end = at
    if at >= _END64_LOCATOR.size and locator.startswith(b"PK\x06\x07"):
        narrow = (disk, first_disk, here, entries, length, start)
        end, (disk, first_disk, here, entries, length, start) = _find_wide(file, at, locator, narrow, name)
    if disk or first_disk or here != entries:
        refuse("split-archive", name)
    if start + length != end:
        found_text = f"{length:,} bytes from byte {start:,} on"
        refuse_contradiction(name, f"a list of contents up to the end record at byte {end:,}", found_text)
    return _Place(start, end, entries)


def _find_wide(
    file: BinaryIO, at: int, locator: bytes, narrow: tuple[int, ...], name: str
) -> tuple[int, tuple[int, int, int, int, int, int]]:
    place, disks = _END64_LOCATOR.unpack(locator)
    if disks > 1:
        refuse("split-archive", name)
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
        refuse("symbolic-link", shown)
    return name.endswith("/") or kind == stat.S_IFDIR


def zip_entries(file: BinaryIO, listing: BinaryIO, size: int, meter: Meter) -> Iterator[ArchiveEntry]:
    """Each file of a zip; a step further reads what is left of the file before.

    Args:
        file: the archive.
        listing: the archive opened once more, for its list of contents.
        size: of the archive in bytes.

    Raises:
        ProblemFound: at the first thing that is hostile or not readable.
    """
    directory = ZipDirectory(listing, size, meter.name, meter.limits)
    for record, following in directory.in_order():
        meter.count_member()
        zipped = _ZippedFile(file, record, following, meter)
        if not record.is_folder:
            yield ArchiveEntry(record.path, record.is_guessed, record.size, record.start, zipped)
        zipped.drain()


class _ZippedFile(MemberStream):
    """The bytes of one entry, with its header before them and what follows them."""

    def __init__(self, file: BinaryIO, record: ZipRecord, following: int, meter: Meter) -> None:
        super().__init__(record.size)
        self._file, self._record, self._following, self._meter = file, record, following, meter
        self._shown = shown_name(record.path) or meter.name
        self._position = self._check_header()
        self._packed_left = record.packed
        self._end = self._position + record.packed
        if self._end > following:
            refuse("overlapping-entries", self._shown)
        self._crc = 0
        self._decompressor = self._new_decompressor()
        self._unpacked, self._taken = b"", 0
        meter.begin(self._shown, record.size, self._position)

    def _check_header(self) -> int:
        """Hold the header before the data against the list of contents; where the data begin."""
        record = self._record
        self._file.seek(record.start)
        fixed = self._file.read(_HEADER.size)
        if len(fixed) < _HEADER.size or not fixed.startswith(_HEADER_MARK):
            refuse_contradiction(self._shown, "its header at the place that the list of contents names", "none")
        flags, method, crc, packed, size, name_length, extra_length = _HEADER.unpack(fixed)
        raw_name, extra = self._file.read(name_length), self._file.read(extra_length)
        if raw_name != record.raw_name:
            refuse_contradiction(self._shown, "the same name before the data as in the list of contents", "another")
        if method != record.method or (flags ^ record.flags) & _COMPARED_FLAGS:
            refuse_contradiction(self._shown, "the same method before the data as in the list of contents", "another")
        wide = extra_fields(extra, self._shown).get(_ZIP64, b"")
        if _FULL32 in (size, packed) and len(wide) >= 16:
            size, packed = struct.unpack_from("<2Q", wide)
        stated, listed = (crc, packed, size), (record.crc, record.packed, record.size)
        is_left_open = flags & _HAS_DESCRIPTOR and crc in (0, record.crc) and {packed, size} <= {0, *listed}
        if stated != listed and not is_left_open:
            refuse_contradiction(self._shown, "the same size before the data as in the list of contents", "another")
        return record.start + _HEADER.size + len(raw_name) + len(extra)

    def _new_decompressor(self) -> Decompressor | None:
        method = self._record.method
        if method == _DEFLATED:
            return Inflater(-zlib.MAX_WBITS)
        if method == _BZIP2:
            return bz2.BZ2Decompressor()
        if method == _LZMA:
            return self._new_lzma()
        if method != _STORED:
            refuse("unsupported-compression", self._shown, method=_METHODS.get(method, f"method {method}"))
        if self._record.packed != self._record.size:
            refuse_contradiction(self._shown, "as many bytes packed as unpacked, as nothing is packed", "others")
        return None

    def _new_lzma(self) -> Decompressor:
        """The data begin with two bytes of version, two of length and five of properties."""
        start = self._read_packed(9)
        if len(start) < 9 or start[2:4] != b"\x05\x00" or start[4] >= 9 * 5 * 5:
            refuse_damaged(self._shown, "the properties of LZMA", "something else")
        dictionary = int.from_bytes(start[5:], "little")
        if dictionary > LARGEST_DICTIONARY_BYTES:
            refuse_dictionary(self._shown, f"one of {format_size(dictionary)}")
        rest, low = divmod(start[4], 9)
        filters: list[dict[str, Any]] = [
            {"id": lzma.FILTER_LZMA1, "dict_size": dictionary, "lc": low, "lp": rest % 5, "pb": rest // 5}
        ]
        try:
            return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
        except DAMAGE:
            refuse_damaged(self._shown, "the properties of LZMA", "some that are not allowed")

    def take(self, size: int) -> bytes:
        if self._taken == len(self._unpacked):
            self._unpacked, self._taken = self._unpack(), 0
            if not self._unpacked:
                self._refuse_size("fewer")
        data = self._unpacked[self._taken : self._taken + size]
        self._taken += len(data)
        self._crc = zlib.crc32(data, self._crc)
        self._meter.count(len(data), self._position)
        return data

    def _unpack(self) -> bytes:
        """The next unpacked bytes; none at the end."""
        if self._decompressor is None:
            return self._read_packed(UNPACK_BYTES)
        while not self._decompressor.eof:
            packed = self._read_packed(READ_BYTES) if self._decompressor.needs_input else b""
            is_end = self._decompressor.needs_input and not packed
            try:
                unpacked = self._decompressor.decompress(packed, UNPACK_BYTES)
            except DAMAGE:
                refuse_damaged(self._shown, "data without problems", "damaged data")
            if unpacked or is_end:
                return unpacked
        return b""

    def _read_packed(self, size: int) -> bytes:
        data = self._file.read(min(size, self._packed_left))
        if not data and self._packed_left and size:
            refuse_truncated(self._shown, "the rest of its data")
        self._packed_left -= len(data)
        self._position += len(data)
        return data

    def finish(self) -> None:
        """The last byte was given: is it the last one, are they right, and does the next entry follow at once?"""
        if self._taken < len(self._unpacked) or self._unpack() or self._packed_left:
            self._refuse_size("more")
        if self._record.method in (_DEFLATED, _BZIP2) and self._decompressor and not self._decompressor.eof:
            refuse_damaged(self._shown, "the end of its packed data", "data that are cut")
        if self._decompressor is not None and self._decompressor.unused_data:
            refuse_contradiction(self._shown, "nothing after its packed data", "other bytes")
        if self._crc != self._record.crc:
            refuse_damaged(self._shown, f"the checksum {self._record.crc:08x}", f"{self._crc:08x}")
        gap = self._following - self._end
        descriptor = self._file.read(gap) if 0 <= gap <= 24 else b""
        if len(descriptor) != gap or (gap and not self._is_descriptor(descriptor)):
            found = f"{gap:,} bytes that belong to none"
            refuse_contradiction(self._shown, "the next file right after its data", found)

    def _refuse_size(self, found: str) -> NoReturn:
        refuse("size-contradiction", self._shown, expected=f"{self._record.size:,} bytes as declared", found=found)

    def _is_descriptor(self, data: bytes) -> bool:
        if not self._record.flags & _HAS_DESCRIPTOR:
            return False
        data = data.removeprefix(_DESCRIPTOR_MARK) if len(data) in (16, 24) else data
        if len(data) not in (12, 20):
            return False
        crc, packed, size = struct.unpack("<3L" if len(data) == 12 else "<L2Q", data)
        return (crc, packed, size) == (self._record.crc, self._record.packed, self._record.size)
