"""Archives that are streamed, not kept: a zip of stored members whose every byte follows from a list of its files.

The same list always gives the same bytes, so a download that broke off goes on at any byte, and the SHA-256 of the
whole is known before. Nothing is compressed, because speech hardly shrinks. The list is a text with a line for each
member (CRC-32 as eight hexadecimal digits, bytes, key of its content, path), read line by line: memory does not grow
with the archive. Archives beyond the limits of plain zip are written as Zip64; a member is below 4 GiB.
Reference: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 to 4.5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
MOST = _ELSEWHERE = 0xFFFFFFFF  # what a plain zip can count, and what stands where a number is in its Zip64 part
_MOST_COUNTED = 0xFFFF
_UTF8 = 1 << 11
_VERSION, _VERSION_64 = 20, 45
_DAY = 0x21  # 1 January 1980, the first that a zip knows
_ATTRIBUTES = 0o100644 << 16
_UNIX = 3 << 8
OpenKey = Callable[[str], BinaryIO]
Lines = Callable[[], Iterable[str]]


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file of an archive.

    Attributes:
        path: in the archive, with forward slashes.
        key: by which its content is opened.
        bytes: of its content.
        crc32: of its content.
    """

    path: str
    key: str
    bytes: int
    crc32: int

    def line(self) -> str:
        """Return the member as a line of the list."""
        return f"{self.crc32:08x} {self.bytes} {self.key} {self.path}\n"

    @classmethod
    def from_line(cls, line: str) -> ZipMember:
        """Return what `line` wrote."""
        crc32, size, key, path = line.rstrip("\n").split(" ", 3)
        return cls(path, key, int(size), int(crc32, 16))


@dataclass(frozen=True, slots=True)
class _Content:
    """Bytes of a member, to be opened only when they are wanted."""

    key: str
    size: int


def stored_zip(lines: Lines, open_key: OpenKey, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of an archive from `start` up to `stop`, in pieces of at most `CHUNK_BYTES`.

    Args:
        lines: gives the lines of the list again at each call.
        open_key: opens the content of a member; what lies outside of the range is not opened.
        stop: None for the end.

    Raises:
        ValueError: a content that is shorter than the list says, or a member of 4 GiB or more.
    """
    place = 0
    for part in _parts(lines):
        size = part.size if isinstance(part, _Content) else len(part)
        first, last = max(start - place, 0), size if stop is None else min(stop - place, size)
        if first < last:
            if isinstance(part, _Content):
                yield from _read(open_key, part, first, last)
            else:
                yield part[first:last]
        place += size
        if stop is not None and place >= stop:
            return


def count_bytes(lines: Lines) -> int:
    """Of the whole archive."""
    return sum(part.size if isinstance(part, _Content) else len(part) for part in _parts(lines))


def _read(open_key: OpenKey, part: _Content, first: int, last: int) -> Iterator[bytes]:
    with open_key(part.key) as stream:
        stream.seek(first)
        while first < last:
            piece = stream.read(min(CHUNK_BYTES, last - first))
            if not piece:
                raise ValueError(f"{part.key}: expected {part.size} bytes, found {first}.")
            first += len(piece)
            yield piece


def _parts(lines: Lines) -> Iterator[bytes | _Content]:
    place = count = 0
    for member in map(ZipMember.from_line, lines()):
        head = _local_header(member)
        yield head
        yield _Content(member.key, member.bytes)
        place, count = place + len(head) + member.bytes, count + 1
    directory, begins = place, 0
    for member in map(ZipMember.from_line, lines()):
        entry = _entry(member, begins)
        yield entry
        begins += len(_local_header(member)) + member.bytes
        place += len(entry)
    yield _end(count, place - directory, directory)


def _local_header(member: ZipMember) -> bytes:
    if member.bytes >= MOST:
        raise ValueError(f"{member.path}: expected less than 4 GiB, found {member.bytes:,} bytes.")
    name = member.path.encode()
    sizes = (member.crc32, member.bytes, member.bytes, len(name), 0)
    return struct.pack("<IHHHHHIIIHH", 0x04034B50, _VERSION, _UTF8, 0, 0, _DAY, *sizes) + name


def _entry(member: ZipMember, begins: int) -> bytes:
    """Return a line of the central directory; where the member begins stands in an extra field beyond 4 GiB."""
    name = member.path.encode()
    extra = b"" if begins < MOST else struct.pack("<HHQ", 1, 8, begins)
    version = _VERSION_64 if extra else _VERSION
    head = struct.pack("<IHHHHHH", 0x02014B50, _UNIX | version, version, _UTF8, 0, 0, _DAY)
    sizes = struct.pack("<IIIHH", member.crc32, member.bytes, member.bytes, len(name), len(extra))
    return head + sizes + struct.pack("<HHHII", 0, 0, 0, _ATTRIBUTES, _ELSEWHERE if extra else begins) + name + extra


def _end(count: int, size: int, begins: int) -> bytes:
    if count < _MOST_COUNTED and size < MOST and begins < MOST:
        return struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, size, begins, 0)
    plain = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, _MOST_COUNTED, _MOST_COUNTED, _ELSEWHERE, _ELSEWHERE, 0)
    large = struct.pack(
        "<IQHHIIQQQQ", 0x06064B50, 44, _UNIX | _VERSION_64, _VERSION_64, 0, 0, count, count, size, begins
    )
    return large + struct.pack("<IIQI", 0x07064B50, 0, begins + size, 1) + plain
