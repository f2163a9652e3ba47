"""Reads a tar archive from a stream, one header at a time (POSIX ustar and pax, and GNU's long names).

Headers are decoded by ``tarfile.TarInfo.frombuf``; the rest of ``tarfile`` is not safe enough for strangers' files:
it reads extended headers of any size into the memory, keeps all members, takes seconds for some forged pax headers,
expands sparse files, and takes a file that was cut between two members for whole.

Conventions: everything lies in blocks of 512 bytes; the end is a block of zeros.
"""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from common.memory import format_size
from portal.intake.archives.decompression import ByteReader, refuse_trailing
from portal.intake.archives.limits import LARGEST_TAR_HEADER_BYTES, Meter, refuse, refuse_damaged, refuse_truncated
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

BLOCK = 512
_ZEROS = bytes(BLOCK)
_SPECIAL = {tarfile.CHRTYPE: stat.S_IFCHR, tarfile.BLKTYPE: stat.S_IFBLK, tarfile.FIFOTYPE: stat.S_IFIFO}
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_LONGEST_NUMBER = 18
_SPARSE_KEYS = ("GNU.sparse.", "SCHILY.realsize", "SUN.holesdata")


@dataclass(slots=True)
class _Extended:
    """What the headers before a member say of it."""

    name: bytes | None = None
    size: int | None = None
    headers: int = 0


def is_tar_header(block: bytes) -> bool:
    """Whether a block of 512 bytes is the header of a tar member."""
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


class TarReader:
    """The files of a tar archive.

    Args:
        reader: of the bytes of the archive, unpacked.
        first: what was already read of it.
    """

    def __init__(self, reader: ByteReader, first: bytes, meter: Meter) -> None:
        self._reader, self._meter, self._waiting = reader, meter, first

    def entries(self) -> Iterator[ArchiveEntry]:
        """Each file; a step further reads what is left of the file before.

        Raises:
            ProblemFound: at the first thing that is hostile or not readable.
        """
        while True:
            extended = _Extended()
            header = self._member_header(extended)
            if header is None:
                self._check_end()
                return
            if entry := self._entry(header, extended):
                yield entry
                entry.stream.drain()
                self._padding(entry.size)

    def _member_header(self, extended: _Extended) -> tarfile.TarInfo | None:
        """The header of the next member itself; the headers that extend it are taken in."""
        while True:
            block = self._take(BLOCK)
            if len(block) < BLOCK:
                refuse_truncated(self._meter.name, "more files or the end mark of the tar")
            if block == _ZEROS:
                if extended.headers:
                    refuse_damaged(self._meter.name, "a file after its extended header", "the end mark")
                return None
            self._meter.count_member()
            header = self._decoded(block)
            if header.type in _EXTENDED:
                extended.headers += 1
                self._extend(extended, self._header_data(header), is_global=False)
            elif header.type == tarfile.XGLTYPE:
                self._extend(_Extended(), self._header_data(header), is_global=True)
            elif header.type == tarfile.GNUTYPE_LONGNAME:
                extended.headers += 1
                extended.name = self._header_data(header).rstrip(b"\0")
            elif header.type == tarfile.GNUTYPE_LONGLINK:
                extended.headers += 1
                self._header_data(header)  # of a link, which is refused when it comes
            else:
                return header

    def _decoded(self, block: bytes) -> tarfile.TarInfo:
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.TarError, ValueError, IndexError):
            refuse_damaged(self._meter.name, "the header of a file in the tar", "a block that is not one")
        if header.size < 0:
            refuse_damaged(self._meter.name, "sizes of files in the tar", "a negative one")
        return header

    def _entry(self, header: tarfile.TarInfo, extended: _Extended) -> ArchiveEntry | None:
        """The file that a header announces; None for a folder."""
        raw = extended.name if extended.name is not None else header.name.encode("utf-8", "surrogateescape")
        name = decode(raw)
        path = safe_path(name.text, self._meter.limits)
        self._check_kind(header, shown_name(name.text))
        is_folder = header.type == tarfile.DIRTYPE or name.text.endswith("/")
        size = header.size if extended.size is None else extended.size
        if is_folder:
            if size:
                refuse_filled_folder(shown_name(name.text), size)
            return None
        if not path:
            refuse("empty-name", self._meter.name)
        return self._open(RawName(path, name.is_guessed), size)

    def _check_kind(self, header: tarfile.TarInfo, shown: str) -> None:
        if header.type == tarfile.SYMTYPE:
            refuse("symbolic-link", shown)
        if header.type == tarfile.LNKTYPE:
            refuse("hard-link", shown)
        if header.type == tarfile.GNUTYPE_SPARSE:
            refuse("sparse-file", shown)
        refuse_special(_SPECIAL.get(header.type, 0), shown)
        if header.type not in (*_FILES, *_SPECIAL, tarfile.DIRTYPE):
            refuse("unknown-member", shown, kind=shown_name(header.type.decode("latin-1")))

    def _open(self, name: RawName, size: int) -> ArchiveEntry:
        position = self._reader.position
        shown = shown_name(name.text)
        self._meter.begin(shown, size, position)
        return ArchiveEntry(name.text, name.is_guessed, size, position, _TarMember(self, shown, size))

    def take_of_member(self, path: str, size: int, wanted: int) -> bytes:
        """The next bytes of a file of `size` bytes, at most as many as wanted."""
        data = self._take_some(wanted)
        if not data:
            refuse_truncated(path, f"all {size:,} bytes of it")
        self._meter.count(len(data), self._reader.position)
        return data

    def _header_data(self, header: tarfile.TarInfo) -> bytes:
        if header.size > LARGEST_TAR_HEADER_BYTES:
            sizes = {"limit": format_size(LARGEST_TAR_HEADER_BYTES), "found": format_size(header.size)}
            refuse("huge-header", self._meter.name, **sizes)
        data = self._take(header.size)
        if len(data) < header.size:
            refuse_truncated(self._meter.name, "the whole header of a file")
        self._padding(header.size)
        return data

    def _extend(self, extended: _Extended, data: bytes, *, is_global: bool) -> None:
        for key, value in self._records(data):
            if key.startswith(_SPARSE_KEYS):
                refuse("sparse-file", self._meter.name)
            if is_global and key in ("path", "size", "linkpath"):
                found = f"one with the {key} of all"
                refuse_damaged(self._meter.name, "a common header without what is different for each file", found)
            if key == "path":
                extended.name = value
            elif key == "size":
                if not value.isdigit() or len(value) > _LONGEST_NUMBER:
                    refuse_damaged(self._meter.name, "sizes of files in the tar", f"“{shown_name(decode(value).text)}”")
                extended.size = int(value)

    def _records(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """The records ``<length> <key>=<value>`` and a line end of a pax header."""
        at = 0
        while at < len(data) and data[at]:
            digits, blank, _ = data[at : at + _LONGEST_NUMBER].partition(b" ")
            length = int(digits) if blank and digits.isdigit() else 0
            key, sign, value = data[at + len(digits) + 1 : at + length].partition(b"=")
            if length < len(digits) + 4 or at + length > len(data) or not sign or not value.endswith(b"\n"):
                refuse_damaged(self._meter.name, "records of a pax header", "something else")
            yield decode(key).text, value[:-1]
            at += length

    def _padding(self, size: int) -> None:
        missing = -size % BLOCK
        if len(self._take(missing)) < missing:
            refuse_truncated(self._meter.name, "more files or the end mark of the tar")

    def _check_end(self) -> None:
        """After the end mark there may be zeros only."""
        while data := self._take_some(2**16):
            self._meter.count_overhead(len(data), self._reader.position)
            if data.strip(b"\0"):
                refuse_trailing(self._meter.name, "the tar")

    def _take(self, size: int) -> bytes:
        """Bytes that belong to no file; fewer at the end of the archive."""
        data = b""
        while len(data) < size and (more := self._take_some(size - len(data))):
            data += more
        self._meter.count_overhead(len(data), self._reader.position)
        return data

    def _take_some(self, size: int) -> bytes:
        if self._waiting:
            data, self._waiting = self._waiting[:size], self._waiting[size:]
            return data
        return self._reader.read(size) if size else b""


class _TarMember(MemberStream):
    """The bytes of one file of a tar."""

    def __init__(self, tar: TarReader, path: str, size: int) -> None:
        super().__init__(size)
        self._tar, self._path, self._size = tar, path, size

    def take(self, size: int) -> bytes:
        return self._tar.take_of_member(self._path, self._size, size)
