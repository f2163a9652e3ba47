"""Hostile and faulty archives, each built by code, with the one problem code that it must get.

Every builder writes a small file; the bombs unpack to 10 GB. `ARCHIVES` holds all of them by name.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from portal.intake.archives.decompression import zstd
from portal.intake.archives.reading import ArchiveLimits
from tests.portal.hostile.packing import (
    BLOCK,
    WAV,
    ZipEntry,
    padded,
    pax_header,
    signed,
    tar,
    tar_file,
    tar_header,
    write_many,
    zip_of,
)

TEN_GB = 10 * 10**9
WIDE = ArchiveLimits(total_bytes=10**12, member_bytes=10**12)  # so that nothing but the ratio stops a bomb
Content = bytes | Iterable[bytes]


@dataclass(frozen=True)
class Hostile:
    """One archive. `handed_out` are the files that must come out before it is refused, or in spite of the problem."""

    code: str
    build: Callable[[], Content]
    refused: bool = True
    handed_out: tuple[str, ...] | None = None
    limits: ArchiveLimits = field(default_factory=ArchiveLimits)

    def write(self, path: Path) -> None:
        content = self.build()
        write_many(path, [content] if isinstance(content, bytes) else content)


ARCHIVES: dict[str, Hostile] = {}


def refused(
    code: str, limits: ArchiveLimits | None = None, name: str = ""
) -> Callable[[Callable[[], Content]], Callable[[], Content]]:
    def register(build: Callable[[], Content]) -> Callable[[], Content]:
        ARCHIVES[name or build.__name__] = Hostile(code, build, limits=limits or ArchiveLimits())
        return build

    return register


def reported(code: str, *handed_out: str) -> Callable[[Callable[[], Content]], Callable[[], Content]]:
    def register(build: Callable[[], Content]) -> Callable[[], Content]:
        ARCHIVES[build.__name__] = Hostile(code, build, refused=False, handed_out=handed_out)
        return build

    return register


# Names --------------------------------------------------------------------------------------------

NAMES = {
    "parent": ("../x.wav", "path-traversal"),
    "parent_inside": ("a/../../x.wav", "path-traversal"),
    "parent_backslash": ("a\\..\\..\\x.wav", "path-traversal"),
    "root": ("/etc/passwd", "absolute-path"),
    "drive": ("C:/x.wav", "absolute-path"),
    "drive_relative": ("c:x.wav", "absolute-path"),
    "network": ("\\\\server\\share\\x.wav", "absolute-path"),
    "network_slashes": ("//server/share/x.wav", "absolute-path"),
    "backslash": ("a\\x.wav", "backslash-in-name"),
    "line_end": ("a\nb.wav", "control-character-in-name"),
    "escape": ("a\x1b[2Jb.wav", "control-character-in-name"),
    "separator": ("a\u2028b.wav", "control-character-in-name"),
    "direction": ("a\u202evaw.exe", "direction-character-in-name"),
    "isolate": ("a\u2066b.wav", "direction-character-in-name"),
    "long": ("a" * 90 + "/" + "b" * 400 + ".wav", "long-name"),
    "deep": ("a/" * 30 + "x.wav", "deep-path"),
}
for _case, (_name, _code) in NAMES.items():
    refused(_code, name=f"zip_name_{_case}")(lambda name=_name: zip_of(ZipEntry(b"a.wav"), ZipEntry(name.encode())))
    refused(_code, name=f"tar_name_{_case}")(lambda name=_name: tar(pax_header(("path", name)), tar_file("y.wav")))
    refused(_code, name=f"gnu_name_{_case}")(
        lambda name=_name: tar(
            tar_header("././@LongLink", len(name.encode()) + 1, b"L"), padded(name.encode() + b"\0"), tar_file("y")
        )
    )


@refused("control-character-in-name")
def zip_name_zero() -> bytes:
    return zip_of(ZipEntry(b"x.wav\0.exe"))


@refused("control-character-in-name")
def pax_name_zero() -> bytes:
    return tar(pax_header(("path", "x.wav\0.exe")), tar_file("y.wav"))


@refused("empty-name")
def zip_name_empty() -> bytes:
    return zip_of(ZipEntry(b""))


@refused("empty-name")
def tar_name_dot() -> bytes:
    return tar(tar_file("."))


@refused("path-traversal")
def zip_unicode_path_field() -> bytes:
    """The field of Info-ZIP gives a second name."""
    raw, second = b"x.wav", b"../x.wav"
    value = b"\x01" + struct.pack("<L", zlib.crc32(raw)) + second
    return zip_of(ZipEntry(raw, extra=struct.pack("<HH", 0x7075, len(value)) + value))


@refused("damaged-archive")
def zip_name_that_claims_utf8() -> bytes:
    return zip_of(ZipEntry(b"\xe4.wav", flags=0x800))


@reported("name-not-utf8", "Σ.wav")
def zip_name_latin() -> bytes:
    return zip_of(ZipEntry(b"\xe4.wav"))


@reported("name-not-utf8", "Σ.wav")
def tar_name_latin() -> bytes:
    return tar(tar_file(b"\xe4.wav"))


@reported("duplicate-member", "a/x.wav")
def zip_duplicate() -> bytes:
    return zip_of(ZipEntry(b"a/x.wav"), ZipEntry(b"a//./x.wav"))


@reported("duplicate-member", "a/x.wav")
def tar_duplicate() -> bytes:
    return tar(tar_file("a/x.wav"), tar_file("./a/x.wav", b"other"))


@reported("case-collision", "A.wav")
def zip_case() -> bytes:
    return zip_of(ZipEntry(b"A.wav"), ZipEntry(b"a.wav"))


@reported("unicode-collision", "\u00e9.wav")
def zip_unicode_forms() -> bytes:
    return zip_of(ZipEntry("\u00e9.wav".encode()), ZipEntry("e\u0301.wav".encode()))


@reported("unicode-collision", "x.wav")
def tar_invisible_sign() -> bytes:
    return tar(tar_file("x.wav"), tar_file("x\u200b.wav"))


@reported("file-and-folder", "a")
def zip_file_as_folder() -> bytes:
    return zip_of(ZipEntry(b"a"), ZipEntry(b"a/x.wav"))


@reported("file-and-folder", "a/x.wav")
def tar_folder_as_file() -> bytes:
    return tar(tar_file("a/x.wav"), tar_file("a"))


@reported("droppings", "a/x.wav")
def zip_droppings() -> bytes:
    names = (b"__MACOSX/a/._x.wav", b"a/x.wav", b"a/.DS_Store", b"a/Thumbs.db", b"desktop.ini", b"a/._x.wav")
    return zip_of(*(ZipEntry(name) for name in names))


# Kinds of members ---------------------------------------------------------------------------------

for _kind, _mode, _code in (
    ("symbolic_link", 0o120777, "symbolic-link"),
    ("pipe", 0o010644, "special-file"),
    ("socket", 0o140644, "special-file"),
    ("device", 0o020644, "special-file"),
    ("disk", 0o060644, "special-file"),
):
    refused(_code, name=f"zip_{_kind}")(
        lambda mode=_mode: zip_of(ZipEntry(b"x.wav", b"/etc/passwd", attributes=mode << 16))
    )
for _kind, _type, _code in (
    ("symbolic_link", b"2", "symbolic-link"),
    ("hard_link", b"1", "hard-link"),
    ("device", b"3", "special-file"),
    ("disk", b"4", "special-file"),
    ("pipe", b"6", "special-file"),
    ("old_sparse", b"S", "sparse-file"),
    ("multi_volume", b"M", "unknown-member"),
    ("unknown", b"Z", "unknown-member"),
):
    refused(_code, name=f"tar_{_kind}")(
        lambda kind=_type: tar(tar_file("a.wav"), tar_header("x.wav", 0, kind, "/etc/passwd"))
    )


@refused("symbolic-link")
def zip_reparse_point() -> bytes:
    return zip_of(ZipEntry(b"x.wav", attributes=0x400, system=10))


@refused("sparse-file")
def pax_sparse() -> bytes:
    fields = (("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", str(TEN_GB)))
    return tar(pax_header(*fields), tar_file("x.wav", b"1\n0\n0\n"))


@refused("sparse-file")
def pax_sparse_of_all() -> bytes:
    return tar(pax_header(("GNU.sparse.size", str(TEN_GB)), kind=b"g"), tar_file("x.wav"))


@refused("size-contradiction")
def tar_folder_with_bytes() -> bytes:
    return tar(tar_header("a", 512, b"5"), WAV[:BLOCK], tar_file("x.wav"))


@refused("damaged-archive")
def tar_negative_size() -> bytes:
    block = tar_header("x.wav")
    return tar(tar_file("a.wav"), signed(block[:124] + b"\xff" * 12 + block[136:]))


@refused("damaged-archive")
def pax_size_that_is_none() -> bytes:
    return tar(pax_header(("size", "-512")), tar_file("x.wav"))


@refused("damaged-archive")
def pax_size_of_all() -> bytes:
    return tar(pax_header(("size", "5"), kind=b"g"), tar_file("x.wav"))


@refused("truncated-archive")
def pax_size_beyond_the_end() -> bytes:
    return tar(pax_header(("size", "1000000")), tar_file("x.wav"))


@refused("damaged-archive")
def pax_records_without_end() -> bytes:
    return tar(tar_header("PaxHeaders/x", 600, b"x"), padded(b"9" * 600), tar_file("x.wav"))


@refused("encrypted-archive")
def zip_encrypted() -> bytes:
    return zip_of(ZipEntry(b"x.wav", flags=1))


@refused("encrypted-archive")
def zip_encrypted_aes() -> bytes:
    return zip_of(ZipEntry(b"x.wav", method=99, flags=1))


@refused("unsupported-compression")
def zip_deflate64() -> bytes:
    return zip_of(ZipEntry(b"x.wav", method=9))


# Archives in archives -----------------------------------------------------------------------------


def _tar_of(name: str, data: bytes) -> bytes:
    return tar(tar_file("a.wav"), tar_file(name, data))


for _kind, _inner in {
    "zip": zip_of(ZipEntry(b"x.wav")),
    "empty_zip": zip_of(),
    "tar": tar(tar_file("x.wav")),
    "gzip": gzip.compress(WAV),
    "bzip2": bz2.compress(WAV),
    "xz": lzma.compress(WAV),
    "zstandard": zstd.compress(WAV),
    "seven_zip": b"7z\xbc\xaf\x27\x1c\0\4" + WAV,
    "rar": b"Rar!\x1a\x07\x01\0" + WAV,
}.items():
    ARCHIVES[f"nested_{_kind}"] = Hostile(
        "nested-archive", lambda inner=_inner: _tar_of("b.wav", inner), refused=False, handed_out=("a.wav",)
    )


@refused("nested-archive")
def gzip_in_gzip() -> bytes:
    return gzip.compress(gzip.compress(tar(tar_file("x.wav"))))


@refused("unsupported-archive")
def seven_zip() -> bytes:
    return b"7z\xbc\xaf\x27\x1c\0\4" + WAV


@refused("unsupported-archive")
def rar() -> bytes:
    return b"Rar!\x1a\x07\x01\0" + WAV


# What is cut, damaged, too much or no archive at all ----------------------------------------------


@refused("not-an-archive")
def empty_file() -> bytes:
    return b""


@refused("not-an-archive")
def wav_file() -> bytes:
    return WAV * 3


@refused("not-an-archive")
def packed_wav_file() -> bytes:
    return gzip.compress(WAV * 3)


@refused("empty-archive")
def empty_zip() -> bytes:
    return zip_of()


@refused("empty-archive")
def empty_tar() -> bytes:
    return bytes(10240)


@refused("empty-archive")
def folders_only() -> bytes:
    return tar(tar_header("a/", 0, b"5"), tar_header("a/b/", 0, b"5"))


@refused("empty-archive")
def droppings_only() -> bytes:
    return zip_of(ZipEntry(b"__MACOSX/._x.wav"), ZipEntry(b".DS_Store"))


@refused("truncated-archive")
def zip_cut() -> bytes:
    return zip_of(ZipEntry(b"x.wav"), ZipEntry(b"y.wav"))[:-30]


@refused("truncated-archive")
def tar_cut_in_a_file() -> bytes:
    return tar(tar_file("x.wav"))[:900]


@refused("truncated-archive")
def tar_cut_between_files() -> bytes:
    return tar(tar_file("x.wav"), tar_file("y.wav"), end=b"")


@refused("truncated-archive")
def tar_cut_in_a_header() -> bytes:
    return tar(tar_file("x.wav"), tar_file("y.wav")[:300], end=b"")


for _kind, _pack in (
    ("gzip", gzip.compress),
    ("bzip2", bz2.compress),
    ("xz", lzma.compress),
    ("zstandard", zstd.compress),
):
    refused("truncated-archive", name=f"{_kind}_cut")(lambda pack=_pack: pack(tar(tar_file("x.wav")))[:-5])
    refused("trailing-data", name=f"{_kind}_with_more")(
        lambda pack=_pack: pack(tar(tar_file("x.wav"))) + b"something more"
    )


@refused("trailing-data")
def zip_with_more() -> bytes:
    return zip_of(ZipEntry(b"x.wav"), after=b"something more")


@refused("trailing-data")
def tar_after_tar() -> bytes:
    return tar(tar_file("x.wav")) + tar(tar_file("y.wav"))


@refused("damaged-archive")
def zip_wrong_checksum() -> bytes:
    return zip_of(ZipEntry(b"x.wav", crc=1))


@refused("damaged-archive")
def zip_damaged_data() -> bytes:
    return zip_of(ZipEntry(b"x.wav", packed=b"\x07" + bytes(50)))


@refused("damaged-archive")
def tar_wrong_checksum() -> bytes:
    block = bytearray(tar_header("y.wav"))
    block[0] ^= 1
    return tar(tar_file("x.wav"), bytes(block))


@refused("damaged-archive")
def gzip_wrong_checksum() -> bytes:
    data = bytearray(gzip.compress(tar(tar_file("x.wav"))))
    data[-8] ^= 1
    return bytes(data)


@refused("damaged-archive")
def xz_damaged() -> bytes:
    data = bytearray(lzma.compress(tar(tar_file("x.wav")), preset=0))
    data[60] ^= 0xFF
    return bytes(data)


@refused("damaged-archive")
def zstandard_wrong_checksum() -> bytes:
    data = bytearray(zstd.compress(tar(tar_file("x.wav")), options={zstd.CompressionParameter.checksum_flag: 1}))
    data[-1] ^= 1
    return bytes(data)


@refused("damaged-archive")
def pax_header_of_nothing() -> bytes:
    return tar(tar_file("x.wav"), pax_header(("path", "y.wav")))


# Zips that tell two stories -----------------------------------------------------------------------


@refused("zip-contradiction")
def zip_other_name_before_the_data() -> bytes:
    return zip_of(ZipEntry(b"x.wav", local_name=b"y.wav"))


@refused("zip-contradiction")
def zip_other_size_before_the_data() -> bytes:
    return zip_of(ZipEntry(b"x.wav", local_size=5))


@refused("zip-contradiction")
def zip_other_method_before_the_data() -> bytes:
    return zip_of(ZipEntry(b"x.wav", local_method=0))


@refused("zip-contradiction")
def zip_fewer_entries_counted() -> bytes:
    return zip_of(ZipEntry(b"x.wav"), ZipEntry(b"y.wav"), count=1)


@refused("zip-contradiction")
def zip_more_entries_counted() -> bytes:
    return zip_of(ZipEntry(b"x.wav"), count=2)


@refused("zip-contradiction")
def zip_hidden_entry() -> bytes:
    """A file that lies in the zip but not in its list of contents."""
    hidden = ZipEntry(b"hidden.wav")
    return zip_of(ZipEntry(b"x.wav", after=hidden.local + hidden.packed), ZipEntry(b"y.wav"))


@refused("zip-contradiction")
def zip_after_a_program() -> bytes:
    entry = ZipEntry(b"x.wav", method=0)
    return zip_of(entry, before=b"PK\x03\x04" + bytes(60))


@refused("zip-contradiction")
def zip_in_the_comment_of_a_zip() -> bytes:
    return zip_of(ZipEntry(b"x.wav"), comment=zip_of())


@refused("zip-contradiction")
def zip_wrong_descriptor() -> bytes:
    return zip_of(ZipEntry(b"x.wav", flags=8, after=struct.pack("<4s3L", b"PK\x07\x08", 1, 2, 3)))


@refused("size-contradiction")
def zip_more_than_declared() -> bytes:
    return zip_of(ZipEntry(b"x.wav", size=100))


@refused("size-contradiction")
def zip_less_than_declared() -> bytes:
    return zip_of(ZipEntry(b"x.wav", size=10**6))


@refused("size-contradiction")
def zip_folder_with_bytes() -> bytes:
    return zip_of(ZipEntry(b"a/"), ZipEntry(b"a/x.wav"))


@refused("split-archive")
def zip_part_of_several() -> bytes:
    return b"PK\x07\x08" + zip_of(ZipEntry(b"x.wav"))


@refused("overlapping-entries")
def zip_same_data_twice() -> bytes:
    return zip_of(ZipEntry(b"x.wav"), ZipEntry(b"y.wav", start=0, packed=b"", packed_size=400))


@refused("overlapping-entries", ArchiveLimits(ratio=10**9, total_bytes=10**12))
def zip_quoted_overlap() -> list[bytes]:
    """Fifield's construction: each header is quoted as data by the entry before, and all end in one kernel."""
    kernel = ZipEntry(b"kernel.wav", b"", packed=zeros_deflated(21 * 2**20), size=21 * 2**20)
    body, listing, size, names = kernel.local + kernel.packed, kernel.record(0), kernel.size, 250
    records = [(kernel, 0)]
    for number in range(names):
        quoted = records[0][0].local
        packed = struct.pack("<BHH", 0, len(quoted), len(quoted) ^ 0xFFFF) + body
        size += len(quoted)
        entry = ZipEntry(b"%06d.wav" % number, b"", packed=packed, size=size)
        body = entry.local + packed
        records = [(entry, 0)] + [(one, at + len(entry.local) + 5) for one, at in records]
    listing = b"".join(one.record(at) for one, at in records)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, len(records), len(records), len(listing), len(body), 0)
    return [body, listing, end]


# Bombs --------------------------------------------------------------------------------------------


def zeros_deflated(size: int) -> bytes:
    """Zeros as bare deflate, one packed mebibyte repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packer.compress(bytes(2**20))
    packer.flush(zlib.Z_FULL_FLUSH)
    one = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    return one * (size // 2**20) + last.compress(bytes(size % 2**20)) + last.flush()


BIG_HEADER = tar_header("zeros.wav", TEN_GB)


@refused("compression-bomb", WIDE)
def bomb_zip() -> bytes:
    return zip_of(ZipEntry(b"zeros.wav", b"", packed=zeros_deflated(4 * 10**9), size=4 * 10**9))


@refused("size-contradiction", WIDE)
def bomb_zip_that_declares_little() -> bytes:
    return zip_of(ZipEntry(b"zeros.wav", b"", packed=zeros_deflated(TEN_GB), size=10**6))


@refused("compression-bomb", WIDE)
def bomb_zip_of_many() -> bytes:
    packed = zeros_deflated(30 * 2**20)
    return zip_of(*(ZipEntry(b"%d.wav" % n, b"", packed=packed, size=30 * 2**20) for n in range(350)))


@refused("member-too-large")
def bomb_zip_that_declares_much() -> bytes:
    return zip_of(ZipEntry(b"zeros.wav", b"", packed=zeros_deflated(4 * 10**9), size=4 * 10**9))


@refused("compression-bomb", WIDE)
def bomb_zip_bzip2() -> bytes:
    return zip_of(ZipEntry(b"zeros.wav", b"", method=12, packed=bz2.compress(bytes(45 * 10**6)), size=45 * 10**6))


@refused("size-contradiction", WIDE)
def bomb_zip_bzip2_that_declares_little() -> bytes:
    return zip_of(ZipEntry(b"zeros.wav", b"", method=12, packed=bz2.compress(bytes(90 * 10**6)), size=10**5))


@refused("compression-bomb", WIDE)
def bomb_zip_lzma() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("zeros.wav", bytes(45 * 10**6))
    return file.getvalue()


@refused("huge-dictionary")
def zip_lzma_with_huge_dictionary() -> bytes:
    packed = b"\x09\x04\x05\x00\x5d" + struct.pack("<L", 2**32 - 1) + bytes(50)
    return zip_of(ZipEntry(b"x.wav", method=14, packed=packed))


@refused("compression-bomb", WIDE)
def bomb_gzip() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = packer.compress(BIG_HEADER) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + head + zeros_deflated(TEN_GB) + bytes(8)


@refused("member-too-large")
def bomb_gzip_within_usual_limits() -> bytes:
    return bomb_gzip()  # type: ignore[return-value]


@refused("compression-bomb", WIDE)
def bomb_gzip_of_zeros_after_the_end() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = packer.compress(tar(tar_file("x.wav"))) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + head + zeros_deflated(TEN_GB) + bytes(8)


@refused("compression-bomb", WIDE)
def bomb_bzip2() -> bytes:
    return bz2.compress(BIG_HEADER) + bz2.compress(bytes(45 * 10**6)) * 223


@refused("compression-bomb", WIDE)
def bomb_xz() -> bytes:
    return lzma.compress(BIG_HEADER) + lzma.compress(bytes(50 * 10**6), preset=0) * 200


@refused("compression-bomb", WIDE)
def bomb_zstandard() -> bytes:
    """One raw block with the header, then blocks of one repeated byte: 128 KiB in four bytes."""
    raw = (BLOCK << 3).to_bytes(3, "little") + BIG_HEADER
    repeated = (2**17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (0 << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\0" + bytes([7 << 3]) + raw + repeated * (TEN_GB // 2**17) + last


@reported("nested-archive", "a.wav")
def bomb_in_an_archive() -> bytes:
    return _tar_of("bomb.gz", bomb_gzip())  # type: ignore[arg-type]


@refused("nested-archive")
def bomb_in_gzip() -> bytes:
    return gzip.compress(bomb_gzip())  # type: ignore[arg-type]


@refused("huge-dictionary")
def xz_with_huge_dictionary() -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**20}]
    data = bytearray(lzma.compress(tar(tar_file("x.wav")), filters=filters))
    at = data.index(b"\x21\x01", 12)  # the filter of the block: LZMA2, one byte of properties
    data[at + 2] = 40  # 4 GiB less one byte
    end = 12 + (data[12] + 1) * 4
    data[end - 4 : end] = struct.pack("<L", zlib.crc32(bytes(data[12 : end - 4])))
    return bytes(data)


@refused("huge-dictionary")
def zstandard_with_huge_window() -> bytes:
    return b"\x28\xb5\x2f\xfd\0" + bytes([21 << 3]) + (5 << 3 | 1).to_bytes(3, "little") + b"hello"


@refused("too-many-streams")
def gzip_of_empty_streams() -> bytes:
    return gzip.compress(tar_file("x.wav")) + gzip.compress(b"") * 200_000


@refused("too-many-streams")
def bzip2_of_empty_streams() -> bytes:
    return bz2.compress(tar_file("x.wav")) + bz2.compress(b"") * 200_000


@refused("too-many-streams")
def xz_of_empty_streams() -> bytes:
    return lzma.compress(tar_file("x.wav")) + lzma.compress(b"") * 200_000


@refused("too-many-streams")
def zstandard_of_empty_frames() -> bytes:
    return zstd.compress(tar_file("x.wav")) + zstd.compress(b"") * 200_000


@refused("huge-header")
def pax_header_bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = packer.compress(tar_header("PaxHeaders/x", 2**33, b"x")) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + head + zeros_deflated(2**33) + bytes(8)


@refused("huge-header")
def zip_of_long_comments() -> bytes:
    entry = ZipEntry(b"x.wav")
    record = bytearray(entry.record(0) + bytes(0xFFFF))
    record[32:34] = b"\xff\xff"
    body, listing = entry.local + entry.packed, bytes(record) * 20
    return body + listing + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 20, 20, len(listing), len(body), 0)


@refused("damaged-archive")
def pax_number_of_very_many_digits() -> bytes:
    return tar(pax_header(("comment", "1" * 2**17)), tar_file("x.wav"))


@refused("huge-header")
def long_name_bomb() -> bytes:
    return tar(tar_header("././@LongLink", 2**33, b"L"), bytes(BLOCK))


@refused("too-many-members", ArchiveLimits(ratio=10**9, members=20_000))
def tar_of_headers_without_end() -> bytes:
    return gzip.compress(pax_header(("comment", "x")) * 24_000, 1)


@refused("too-many-members")
def tar_of_a_million_empty_folders() -> bytes:
    thousand = b"".join(tar_header(f"{number}/", 0, b"5") for number in range(1000))
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    one = packer.compress(thousand) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + one * 1000 + bytes(8)


@refused("too-many-members", ArchiveLimits(ratio=1000, members=20_000))
def tar_of_very_many_empty_files() -> bytes:
    block = tar_header("000000.wav", form=tarfile.USTAR_FORMAT)
    names = (b"%06d.wav" % number for number in range(24_000))
    return gzip.compress(b"".join(signed(name + block[10:]) for name in names), 1)


@refused("too-many-members")
def zip_of_a_million_empty_files() -> Iterable[bytes]:
    million = 10**6
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 0, 0, 6, 0)
    record = struct.pack("<4s6H3L5HL", b"PK\x01\x02", 20, 20, 0, 0, 0, 33, 0, 0, 0, 6, 0, 0, 0, 0, 0)
    length, start = million * 52, million * 36
    numbers = np.arange(million)
    name = (numbers[:, None] // 10 ** np.arange(5, -1, -1) % 10 + ord("0")).astype(np.uint8)
    at = (36 * numbers).astype("<u4").view(np.uint8).reshape(million, 4)
    yield np.hstack([_repeated(local, million), name]).tobytes()
    yield np.hstack([_repeated(record, million), at, name]).tobytes()
    yield struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, million, million, length, start)
    yield struct.pack("<4sLQL", b"PK\x06\x07", 0, start + length, 1)
    yield struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, length, start, 0)


def _repeated(data: bytes, count: int) -> NDArray[np.uint8]:
    return np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data)))


@refused("zip-contradiction")
def zip_of_more_files_than_counted() -> bytes:
    """As a program without zip64 writes it: the count has lost its upper bits."""
    return zip_of(*(ZipEntry(b"%05d" % number, b"", method=0) for number in range(70_000)), count=70_000 % 65_536)
