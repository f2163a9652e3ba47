"""Reads the files of a zip archive in the order in which they lie in it, each checked against the list of contents.

Methods: stored, deflate, bzip2, LZMA. See `zip_directory` for why ``zipfile`` is not used.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from evaluation.formats.sizes import size_words
from portal.submissions.intake.members import Entry, MemberStream
from portal.submissions.intake.refusals import READ_BYTES, Meter, refuse, refuse_damaged, refuse_truncated
from portal.submissions.intake.unpacking import (
    DAMAGE,
    LARGEST_DICTIONARY,
    UNPACK_BYTES,
    Decompressor,
    Inflater,
    refuse_dictionary,
)  # fmt: skip
from portal.submissions.intake.zip_directory import REPACK, Record, ZipDirectory, extra_fields, refuse_contradiction

_HEADER = struct.Struct("<4s5H3L2H")
_HEADER_MARK, _DESCRIPTOR_MARK = b"PK\x03\x04", b"PK\x07\x08"
_HAS_DESCRIPTOR = 0x0008
_COMPARED_FLAGS = 0x0001 | _HAS_DESCRIPTOR | 0x0040 | 0x2000
_STORED, _DEFLATED, _BZIP2, _LZMA = 0, 8, 12, 14
_METHODS = {
    1: "shrinking", 6: "imploding", 9: "Deflate64, which Windows uses for large files", 93: "Zstandard", 95: "xz",
    98: "PPMd",
}  # fmt: skip
_ZIP64 = 0x0001
_FULL32 = 0xFFFFFFFF


def zip_entries(file: BinaryIO, listing: BinaryIO, size: int, meter: Meter) -> Iterator[Entry]:
    """Each file of a zip; a step further reads what is left of the file before.

    Args:
        file: the archive.
        listing: the archive opened once more, for its list of contents.
        size: of the archive in bytes.

    Raises:
        ArchiveRefused: at the first thing that is hostile or not readable.
    """
    directory = ZipDirectory(listing, size, meter.name, meter.limits)
    for record, following in directory.in_order():
        meter.count_member()
        zipped = _ZippedFile(file, record, following, meter)
        if record.is_folder:
            zipped.stream.drain()
            continue
        yield Entry(record.path, record.is_guessed, record.size, record.start, zipped.stream)
        zipped.stream.drain()


class _ZippedFile:
    """One entry: its header, its data and what follows them."""

    def __init__(self, file: BinaryIO, record: Record, following: int, meter: Meter) -> None:
        self._file, self._record, self._following, self._meter = file, record, following, meter
        self._shown = record.path or meter.name
        self._position = self._check_header()
        self._packed_left = record.packed
        self._end = self._position + record.packed
        if self._end > following:
            refuse("overlapping-entries", self._shown, "each file in a place of its own", "one that lies over another",
                   REPACK)  # fmt: skip
        self._crc = 0
        self._decompressor = self._new_decompressor()
        self._unpacked, self._taken = b"", 0
        meter.begin(self._shown, record.size, self._position)
        self.stream = MemberStream(record.size, self._take, self._finish)

    def _check_header(self) -> int:
        """Hold the header before the data against the list of contents; where the data begin."""
        record = self._record
        self._file.seek(record.start)
        fixed = self._file.read(_HEADER.size)
        if len(fixed) < _HEADER.size or not fixed.startswith(_HEADER_MARK):
            refuse_contradiction(self._shown, "its header at the place that the list of contents names", "none")
        _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = _HEADER.unpack(fixed)
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
            found = _METHODS.get(method, f"method {method}")
            remedy = "Pack again with the usual method (deflate), or as tar.gz."
            refuse("unsupported-compression", self._shown, "deflate, bzip2, LZMA, or nothing packed", found, remedy)
        if self._record.packed != self._record.size:
            refuse_contradiction(self._shown, "as many bytes packed as unpacked, as nothing is packed", "others")
        return None

    def _new_lzma(self) -> Decompressor:
        """The data begin with two bytes of version, two of length and five of properties."""
        start = self._read_packed(9)
        if len(start) < 9 or start[2:4] != b"\x05\x00" or start[4] >= 9 * 5 * 5:
            refuse_damaged(self._shown, "the properties of LZMA", "something else")
        dictionary = int.from_bytes(start[5:], "little")
        if dictionary > LARGEST_DICTIONARY:
            refuse_dictionary(self._shown, f"one of {size_words(dictionary)}")
        rest, low = divmod(start[4], 9)
        filters: list[dict[str, Any]] = [
            {"id": lzma.FILTER_LZMA1, "dict_size": dictionary, "lc": low, "lp": rest % 5, "pb": rest // 5}
        ]
        try:
            return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
        except DAMAGE:
            refuse_damaged(self._shown, "the properties of LZMA", "some that are not allowed")

    def _take(self, size: int) -> bytes:
        if self._taken == len(self._unpacked):
            self._unpacked, self._taken = self._unpack(), 0
            if not self._unpacked:
                found = "fewer"
                refuse("size-contradiction", self._shown, f"{self._record.size:,} bytes as declared", found, REPACK)
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
                refuse_damaged(self._shown, "data without faults", "damaged data")
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

    def _finish(self) -> None:
        """The last byte was given: is it the last one, are they right, and does the next entry follow at once?"""
        if self._taken < len(self._unpacked) or self._unpack() or self._packed_left:
            refuse("size-contradiction", self._shown, f"{self._record.size:,} bytes as declared", "more", REPACK)
        if self._record.method in (_DEFLATED, _BZIP2) and self._decompressor and not self._decompressor.eof:
            refuse_damaged(self._shown, "the end of its packed data", "data that are cut")
        if self._decompressor is not None and self._decompressor.unused_data:
            refuse_contradiction(self._shown, "nothing after its packed data", "other bytes")
        if self._crc != self._record.crc:
            expected, found = f"the checksum {self._record.crc:08x}", f"{self._crc:08x}"
            refuse_damaged(self._shown, expected, found)
        gap = self._following - self._end
        descriptor = self._file.read(gap) if 0 <= gap <= 24 else b""
        if len(descriptor) != gap or (gap and not self._is_descriptor(descriptor)):
            refuse_contradiction(
                self._shown, "the next file right after its data", f"{gap:,} bytes that belong to none"
            )

    def _is_descriptor(self, data: bytes) -> bool:
        if not self._record.flags & _HAS_DESCRIPTOR:
            return False
        data = data.removeprefix(_DESCRIPTOR_MARK) if len(data) in (16, 24) else data
        if len(data) not in (12, 20):
            return False
        crc, packed, size = struct.unpack("<3L" if len(data) == 12 else "<L2Q", data)
        return (crc, packed, size) == (self._record.crc, self._record.packed, self._record.size)
