"""Reads the files of a zip archive in their order, each checked against the list of contents.

`zipfile` reads the list; it makes an object of each entry (58 MB for 100,000), so the entries are counted before. It
does not unpack: a zip of 766 bytes in bzip2 makes it take 1.7 GB. Conventions: the list is what counts, and everything
else must agree with it: no bytes before the first file, between files, or between the last and the list.
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from common.memory import format_size
from portal.intake.archives.decompression import BZIP2, DEFLATE, LZMA, Packing, Unpacked
from portal.intake.archives.limits import (
    LARGEST_ZIP_LIST_BYTES,
    LARGEST_ZIP_RECORD_BYTES,
    READ_BYTES,
    Meter,
    check_member_count,
    check_ratio,
    check_size,
    refuse,
    refuse_damaged,
    refuse_truncated,
)
from portal.intake.archives.members import (
    FALLBACK,
    MemberBytes,
    decode,
    refuse_filled_folder,
    refuse_special,
    safe_path,
    shown_name,
)

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_RECORD_BYTES, _RECORD_LENGTHS = 46, struct.Struct("<28x3H")
_HEADER = struct.Struct("<4s2x2H4x3L2H")
_LONGEST_COMMENT = 0xFFFF
_FULL32 = 0xFFFFFFFF
_ENCRYPTED, _HAS_DESCRIPTOR, _ENDS_BY_MARK, _UTF8 = 0x0001 | 0x0040 | 0x2000, 0x0008, 0x0002, 0x0800
_UNICODE_PATH = 0x7075
_AES = 99
_REPARSE_POINT = 0x400
_WINDOWS_SYSTEMS = (0, 10, 14)
_PACKINGS: dict[int, Packing | None] = {
    zipfile.ZIP_STORED: None,
    zipfile.ZIP_DEFLATED: DEFLATE,
    zipfile.ZIP_BZIP2: BZIP2,
    zipfile.ZIP_LZMA: LZMA,
}
_UNSUPPORTED = {
    1: "shrinking",
    6: "imploding",
    9: "Deflate64, which Windows uses for large files",
    93: "Zstandard",
    95: "xz",
    98: "PPMd",
}


def zip_members(file: BinaryIO, size: int, meter: Meter) -> Iterator[MemberBytes]:
    """Yield each file of a zip; a step further reads what is left of the file before.

    Args:
        size: of the archive in bytes.

    Raises:
        ProblemFound: at the first thing that is hostile or not readable.
    """
    start, members = _read_list(file, size, meter)
    names = [_check_member(member, meter) for member in members]
    unpacked = sum(member.file_size for member in members)
    check_size("archive-too-large", meter.name, meter.limits.total_bytes, unpacked)
    check_ratio(meter.name, unpacked, size, meter.limits)
    ends = [*(member.header_offset for member in members), start][1:]
    for member, (path, is_guessed), end in zip(members, names, ends, strict=True):
        zipped = _ZippedFile(file, member, path, is_guessed, end, meter)
        if not _is_folder(member):
            yield zipped
        zipped.drain()


def _read_list(file: BinaryIO, size: int, meter: Meter) -> tuple[int, list[zipfile.ZipInfo]]:
    """Return where the list of contents begins, and its members as they lie in the file."""
    name = meter.name
    start, length, count = _find_list(file, size, name)
    check_member_count(name, count, meter.limits)
    _check_count(file, start, length, count, name)
    if length > (largest := LARGEST_ZIP_LIST_BYTES + LARGEST_ZIP_RECORD_BYTES * count):
        refuse("huge-header", name, limit=format_size(largest), found=format_size(length))
    try:
        members = zipfile.ZipFile(file).infolist()
    except NotImplementedError:
        refuse("unsupported-compression", name, method="a zip of a later version")
    except (zipfile.BadZipFile, ValueError, OSError, struct.error, OverflowError) as error:
        expected = "a list of contents that can be read, with names in UTF-8 where their flag says so"
        refuse_damaged(name, expected, f"“{shown_name(str(error))}”")
    members.sort(key=lambda member: member.header_offset)
    if members and members[0].header_offset:
        found = f"{members[0].header_offset:,} bytes before it"
        refuse_contradiction(name, "the first file at the beginning of the zip", found)
    return start, members


def _find_list(file: BinaryIO, size: int, name: str) -> tuple[int, int, int]:
    """Return where the list of contents begins, its bytes and its entries: of the end record, or its wider form."""
    file.seek(max(size - _LONGEST_COMMENT - _END.size, 0))
    tail = file.read()
    matches = re.finditer(rb"(?=PK\x05\x06.{16}(..))", tail, re.DOTALL)
    ends = {match.start(): match.start() + _END.size + int.from_bytes(match[1], "little") for match in matches}
    found = [start for start, end in ends.items() if end == len(tail)]
    if not found:
        if any(end < len(tail) for end in ends.values()):
            refuse("trailing-data", name, what="the zip")
        refuse_truncated(name, "the list of contents at the end of the zip")
    if len(found) > 1:
        refuse_contradiction(name, "one end record", f"{len(found)}, one in the comment of the other")
    end = size - len(tail) + found[0]
    _, disk, first_disk, here, count, length, start, _ = _END.unpack_from(tail, found[0])
    file.seek(max(end - _END64_LOCATOR.size - _END64.size, 0))
    wide = file.read(_END64.size + _END64_LOCATOR.size)
    if wide[_END64.size :].startswith(b"PK\x06\x07"):
        end -= len(wide)
        _, _, place, disks = _END64_LOCATOR.unpack_from(wide, _END64.size)
        if disks > 1:
            refuse("split-archive", name)
        if place != end or not wide.startswith(b"PK\x06\x06"):
            refuse_contradiction(name, "the zip64 end record before its locator", f"it at byte {place:,}")
        _, _, _, _, disk, first_disk, here, count, length, start = _END64.unpack_from(wide)
    if disk or first_disk or here != count:
        refuse("split-archive", name)
    if start + length != end:
        found_text = f"{length:,} bytes from byte {start:,} on"
        refuse_contradiction(name, f"a list of contents up to the end record at byte {end:,}", found_text)
    return start, length, count


def _check_count(file: BinaryIO, start: int, length: int, count: int, name: str) -> None:
    """Refuse a list of contents of other than `count` entries, before `zipfile` makes objects of them."""
    at, found = start, 0
    while at < start + length and found <= count:
        file.seek(at)
        record = file.read(_RECORD_BYTES)
        if len(record) < _RECORD_BYTES or not record.startswith(b"PK\x01\x02"):
            refuse_damaged(name, "a record of the list of contents", "something else")
        at += _RECORD_BYTES + sum(_RECORD_LENGTHS.unpack_from(record))
        found += 1
    if found != count or at != start + length:
        expected = f"as many entries as the end record says ({count:,})"
        refuse_contradiction(name, expected, "more" if found > count else f"{found:,}")


def _check_member(member: zipfile.ZipInfo, meter: Meter) -> tuple[str, bool]:
    """Return the path of a member, and whether its name was not UTF-8."""
    raw = _raw_name(member)
    name, is_guessed = decode(_unicode_path(member.extra, raw) or raw)
    shown = shown_name(name)
    if member.flag_bits & _ENCRYPTED or member.compress_type == _AES:
        refuse("encrypted-archive", shown)
    refuse_special(stat.S_IFMT(member.external_attr >> 16), shown)
    if member.external_attr & _REPARSE_POINT and member.create_system in _WINDOWS_SYSTEMS:
        refuse("symbolic-link", shown)
    path = safe_path(name, meter.limits)
    if _is_folder(member):
        if member.file_size:
            refuse_filled_folder(shown, member.file_size)
    elif not path:
        refuse("empty-name", meter.name)
    elif member.compress_type not in _PACKINGS:
        method = _UNSUPPORTED.get(member.compress_type, f"method {member.compress_type}")
        refuse("unsupported-compression", shown, method=method)
    check_size("member-too-large", path, meter.limits.member_bytes, member.file_size)
    return path, is_guessed


def _is_folder(member: zipfile.ZipInfo) -> bool:
    return member.orig_filename.endswith("/") or stat.S_ISDIR(member.external_attr >> 16)


def _raw_name(member: zipfile.ZipInfo) -> bytes:
    return member.orig_filename.encode("utf-8" if member.flag_bits & _UTF8 else FALLBACK)


def _unicode_path(extra: bytes, raw: bytes) -> bytes:
    """Return the name in the extra field of Info-ZIP; empty where there is none, or one of another name."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        field = extra[at + 4 : at + 4 + length]
        if kind == _UNICODE_PATH and field[:5] == b"\x01" + zlib.crc32(raw).to_bytes(4, "little"):
            return field[5:]
        at += 4 + length
    return b""


class _ZippedFile(MemberBytes):
    """The bytes of one member, with its header before them and what follows them."""

    def __init__(
        self, file: BinaryIO, member: zipfile.ZipInfo, path: str, is_guessed: bool, end: int, meter: Meter
    ) -> None:
        shown = shown_name(path) or meter.name
        start = self._check_header(file, member, shown)
        if start + member.compress_size > end:
            refuse("overlapping-entries", shown)
        head = _lzma_head(file, member, shown) if member.compress_type == zipfile.ZIP_LZMA else b""
        length = start + member.compress_size - file.tell()
        unpacked = Unpacked(file, _PACKINGS.get(member.compress_type), shown, length, head)
        super().__init__(path, is_guessed, member.file_size, unpacked, meter, lambda: start + unpacked.position)
        self._file, self._member, self._end, self._unpacked = file, member, end, unpacked
        self._crc = 0

    def _check_header(self, file: BinaryIO, member: zipfile.ZipInfo, shown: str) -> int:
        """Hold the header before the data against the list of contents; return where the data begin."""
        file.seek(member.header_offset)
        fixed = file.read(_HEADER.size)
        if len(fixed) < _HEADER.size or not fixed.startswith(b"PK\x03\x04"):
            refuse_contradiction(shown, "its header at the place that the list of contents names", "none")
        _, flags, method, *numbers, name_length, extra_length = _HEADER.unpack(fixed)
        if file.read(name_length) != _raw_name(member):
            refuse_contradiction(shown, "the same name before the data as in the list of contents", "another")
        if method != member.compress_type or (flags ^ member.flag_bits) & (_ENCRYPTED | _HAS_DESCRIPTOR):
            refuse_contradiction(shown, "the same method before the data as in the list of contents", "another")
        listed = member.CRC, member.compress_size, member.file_size
        elsewhere = (0, _FULL32) if flags & _HAS_DESCRIPTOR else (_FULL32,)  # behind the data, or in a field of zip64
        if any(number not in (right, *elsewhere) for number, right in zip(numbers, listed, strict=True)):
            refuse_contradiction(shown, "the same size before the data as in the list of contents", "another")
        return file.seek(extra_length, 1)

    def take(self, buffer: memoryview) -> int:
        count = super().take(buffer)
        self._crc = zlib.crc32(buffer[:count], self._crc)
        return count

    def finish(self) -> None:
        """Check that the last byte was the last one and all are right, and that the next member follows at once."""
        member = self._member
        if self._unpacked.read(1):
            self._refuse_size("more")
        if self._crc != member.CRC:
            refuse_damaged(self.shown, f"the checksum {member.CRC:08x}", f"{self._crc:08x}")
        gap = self._end - self._file.tell()
        numbers = member.CRC, member.compress_size, member.file_size
        allowed = [b""]
        if member.flag_bits & _HAS_DESCRIPTOR:
            allowed += struct.pack("<L2Q", *numbers), struct.pack("<3L", *(number & _FULL32 for number in numbers))
        if self._file.read(min(gap, READ_BYTES)).removeprefix(b"PK\x07\x08") not in allowed:
            found = f"{gap:,} bytes that belong to none"
            refuse_contradiction(self.shown, "the next file right after its data", found)

    def refuse_short(self) -> NoReturn:
        self._refuse_size("fewer")

    def _refuse_size(self, found: str) -> NoReturn:
        refuse("size-contradiction", self.shown, expected=f"{self.size:,} bytes as declared", found=found)


def _lzma_head(file: BinaryIO, member: zipfile.ZipInfo, shown: str) -> bytes:
    """Return the head of an LZMA file: five bytes of properties, the last of nine here, and its size."""
    start = file.read(9)
    if member.compress_size < 9 or start[2:4] != b"\x05\x00":
        refuse_damaged(shown, "the properties of LZMA", "something else")
    size = -1 if member.flag_bits & _ENDS_BY_MARK else member.file_size
    return start[4:] + size.to_bytes(8, "little", signed=True)


def refuse_contradiction(file: str, expected: str, found: str) -> NoReturn:
    """Refuse a zip whose parts tell different things, so that two programs would see two archives."""
    refuse("zip-contradiction", file, expected=expected, found=found)
