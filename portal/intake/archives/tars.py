"""Reads a tar archive from a stream by `tarfile`: POSIX ustar and pax, and GNU's long names.

Nothing is extracted, so the filters of `tarfile` have nothing to do: names are held against `safe_path`, and what is
neither file nor folder is refused. `tarfile` gets its headers from `_Headers`, since it takes headers of any size and
number, takes minutes for some pax headers (before Python 3.11.10), and takes a damaged header for the end.
"""

from __future__ import annotations

import io
import re
import stat
import tarfile
from collections.abc import Iterator
from typing import NoReturn, Self, cast

from common.memory import format_size
from portal.intake.archives.decompression import Unpacked
from portal.intake.archives.limits import (
    HEAD_BYTES,
    LARGEST_TAR_HEADER_BYTES,
    MOST_TAR_HEADERS,
    Meter,
    refuse,
    refuse_damaged,
    refuse_truncated,
)
from portal.intake.archives.members import (
    MemberBytes,
    decode,
    refuse_filled_folder,
    refuse_special,
    safe_path,
    shown_name,
)

_SPECIAL = {tarfile.CHRTYPE: stat.S_IFCHR, tarfile.BLKTYPE: stat.S_IFBLK, tarfile.FIFOTYPE: stat.S_IFIFO}
_KINDS = (*tarfile.REGULAR_TYPES, *_SPECIAL, tarfile.DIRTYPE)
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_LONGEST_NUMBER = 18
_LONG_NUMBER = re.compile(rb"(?<!\d)\d{300}")  # `tarfile` takes time that grows with the square of their length
_SPARSE_KEYS = ("GNU.sparse.", "SCHILY.realsize", "SUN.holesdata")


def is_tar_header(block: bytes) -> bool:
    """Return whether a block of 512 bytes is the header of a tar member."""
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def tar_members(stream: io.BufferedReader[Unpacked], meter: Meter) -> Iterator[MemberBytes]:
    """Yield each file of a tar; a step further reads what is left of the file before.

    Args:
        stream: the bytes of the archive.

    Raises:
        ProblemFound: at the first thing that is hostile or not readable.
    """
    headers = _Headers(stream, meter)
    tar = _Tar(fileobj=headers, encoding="utf-8", errors="surrogateescape")
    while (member := tar.next()) is not None:
        _check_keys(tar, member, meter.name)
        headers.of_member = 0
        tar.members, tar.pax_headers = [], {}
        name, is_guessed = decode(member.name.encode("utf-8", "surrogateescape"))
        path, shown = safe_path(name, meter.limits), shown_name(name)
        _check_kind(member, shown)
        if member.isdir() or name.endswith("/"):
            if member.size:
                refuse_filled_folder(shown, member.size)
            continue
        if not path:
            refuse("empty-name", meter.name)
        file = _TarredFile(path, is_guessed, member.size, stream, meter, lambda: stream.raw.position)
        yield file
        file.drain()
        padding = tar.offset - stream.tell()
        if len(stream.read(padding)) < padding:
            refuse_truncated(meter.name, "more files or the end mark of the tar")
    while data := stream.read1():
        meter.count_unpacked(stream.tell(), stream.raw.position)
        if data.strip(b"\0"):
            refuse("trailing-data", meter.name, what="the tar")


class _TarredFile(MemberBytes):
    """The bytes of one member."""

    def refuse_short(self) -> NoReturn:
        refuse_truncated(self.shown, f"all {self.size:,} bytes of it")


class _Headers(io.RawIOBase):
    """What `tarfile` reads headers from: counted, of a limited size, and well formed where they are of pax."""

    def __init__(self, stream: io.BufferedReader[Unpacked], meter: Meter) -> None:
        self._stream, self._meter = stream, meter
        self._block = b""
        self._left = 0
        self.of_member = 0  # headers so far of the member that comes next

    def begin(self) -> None:
        """Expect another header."""
        self._block, self._left = b"", HEAD_BYTES + LARGEST_TAR_HEADER_BYTES

    def tell(self) -> int:
        return self._stream.tell()

    def read(self, size: int = -1, /) -> bytes:
        """Return a header, or what belongs to it."""
        if size < 0:
            refuse_damaged(self._meter.name, "sizes of files in the tar", "a negative one")
        self._left -= size
        if self._left < 0:
            found = format_size(LARGEST_TAR_HEADER_BYTES - self._left)
            refuse("huge-header", self._meter.name, limit=format_size(LARGEST_TAR_HEADER_BYTES), found=found)
        data = self._stream.read(size)
        self._meter.count_unpacked(self._stream.tell(), self._stream.raw.position)
        if not self._block:
            self._block = data
            self._count()
        elif len(data) < size:
            refuse_truncated(self._meter.name, "the whole header of a file")
        elif self._block[156:157] in _PAX:
            self._check_records(data)
        return data

    def _count(self) -> None:
        if self._block.strip(b"\0"):
            self.of_member += 1
            self._meter.count_member()
        if self.of_member > MOST_TAR_HEADERS:
            refuse("too-many-members/headers", self._meter.name, limit=MOST_TAR_HEADERS)

    def check_end(self) -> None:
        """Refuse what is no header, unless it is the end mark where a member may begin."""
        if len(self._block) < HEAD_BYTES:
            refuse_truncated(self._meter.name, "more files or the end mark of the tar")
        if self._block.strip(b"\0"):
            self.refuse()
        if self.of_member:
            refuse_damaged(self._meter.name, "a file after its extended header", "the end mark")

    def refuse(self) -> NoReturn:
        refuse_damaged(self._meter.name, "the header of a file in the tar", "a block that is not one")

    def _check_records(self, data: bytes) -> None:
        """Hold a pax header against its form: records ``<length> <key>=<value>`` and a line end."""
        at = 0
        while at < len(data) and data[at]:
            digits, blank, _ = data[at : at + _LONGEST_NUMBER].partition(b" ")
            length = int(digits) if blank and digits.isdigit() else 0
            record = data[at : at + length]
            if length < len(digits) + 4 or len(record) < length or b"=" not in record or not record.endswith(b"\n"):
                refuse_damaged(self._meter.name, "records of a pax header", "something else")
            at += length
        if _LONG_NUMBER.search(data):
            refuse_damaged(self._meter.name, "records of a pax header", "a number of hundreds of digits")


class _Member(tarfile.TarInfo):
    """A header and those that extend it, each of which `tarfile` reads by this method."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        headers = cast("_Headers", tarfile_.fileobj)
        headers.begin()
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.HeaderError:
            headers.check_end()
            raise
        except (ValueError, IndexError):
            headers.refuse()


class _Tar(tarfile.TarFile):
    """A tar whose headers are read as `_Member`."""

    tarinfo = _Member
    members: list[tarfile.TarInfo]


def _check_keys(tar: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
    """Refuse what pax headers say of a file that is not whole, or of all files at once."""
    if any(key.startswith(_SPARSE_KEYS) for key in (*tar.pax_headers, *member.pax_headers)):
        refuse("sparse-file", name)
    for key in ("path", "size", "linkpath"):
        if key in tar.pax_headers:
            found = f"one with the {key} of all"
            refuse_damaged(name, "a common header without what is different for each file", found)
    if member.size < 0:
        refuse_damaged(name, "sizes of files in the tar", "a negative one")


def _check_kind(member: tarfile.TarInfo, shown: str) -> None:
    if member.issym():
        refuse("symbolic-link", shown)
    if member.islnk():
        refuse("hard-link", shown)
    if member.type == tarfile.GNUTYPE_SPARSE:
        refuse("sparse-file", shown)
    refuse_special(_SPECIAL.get(member.type, 0), shown)
    if member.type not in _KINDS:
        refuse("unknown-member", shown, kind=shown_name(member.type.decode("latin-1")))
