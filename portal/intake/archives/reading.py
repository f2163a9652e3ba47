"""Archives that strangers send, read safely: zip, tar, and tar packed by gzip, bzip2, xz or Zstandard.

An archive is recognised by its content, streamed once and never extracted; each file is handed out as a stream that is
counted while it is read. What is hostile or cannot be read refuses the whole archive with one sentence
(`ProblemFound`); what is wrong with one file is reported and that file passed over.

Refused (`Problem.code`): ``not-readable``, ``not-an-archive``, ``unsupported-archive``, ``empty-archive``,
``truncated-archive``, ``damaged-archive``, ``trailing-data``, ``encrypted-archive``, ``split-archive``,
``unsupported-compression``, ``zip-contradiction``, ``overlapping-entries``, ``size-contradiction``; names:
``path-traversal``, ``absolute-path``, ``backslash-in-name``, ``control-character-in-name``,
``direction-character-in-name``, ``empty-name``, ``long-name``, ``deep-path``; kinds: ``symbolic-link``, ``hard-link``,
``special-file``, ``sparse-file``, ``unknown-member``; amounts: ``too-many-members``, ``member-too-large``,
``archive-too-large``, ``compression-bomb``, ``huge-header``, ``huge-dictionary``, ``too-many-streams``,
``nested-archive`` (a packed file in a packed file).

Reported: ``duplicate-member``, ``case-collision``, ``unicode-collision``, ``file-and-folder`` and ``nested-archive``
are errors, the file is passed over; ``name-not-utf8`` is a warning, the file is handed out; ``droppings`` is one note
for all that operating systems left behind. Paths are handed out in NFC, whatever the archive has.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from common.file_names import is_dropping, plain_name
from common.problems import Problem, Severity
from portal.intake.archives.decompression import PACKINGS, Unpacked
from portal.intake.archives.limits import HEAD_BYTES, UNPACK_BYTES, ArchiveLimits, Member, Meter, refuse
from portal.intake.archives.members import FALLBACK, KnownPaths, MemberBytes, safe_path
from portal.intake.archives.tars import is_tar_header, tar_members
from portal.intake.archives.zips import zip_members
from portal.intake.problem_codes import describe

__all__ = ["ArchiveLimits", "Member", "read_archive"]
_ZIP, _EMPTY_ZIP, _SPLIT_ZIP = b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"
# First bytes of archives and packed files, by the name that a sentence gives them.
_SIGNATURES = {
    _ZIP: "zip",
    _EMPTY_ZIP: "zip",
    _SPLIT_ZIP: "zip",
    b"\x1f\x8b\x08": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "RAR",
    b"MSCF\0\0\0\0": "cabinet",
    b"!<arch>\n": "ar",
    b"LZIP\x01": "lzip",
    b"\x04\x22\x4d\x18": "LZ4",
    b"\x1f\x9d\x90": "compress",
}
_BZIP2_BLOCKS = (bytes.fromhex("314159265359"), bytes.fromhex("177245385090"))


def read_archive(
    source: Path, *, name: str, limits: ArchiveLimits, report: Callable[[Problem], None]
) -> Iterator[tuple[Member, BinaryIO]]:
    """Yield each file of an archive with a stream of its bytes, in the order in which they lie in it.

    A stream is valid until the next step of the iterator; what was not read of it is read then and thrown away, so that
    the whole archive has been checked at the end. Folders are passed over.

    Args:
        name: of the archive as its owner knows it, for sentences.
        report: is called with each problem of a single file, and with one note of droppings at the end.

    Raises:
        ProblemFound: while iterating, from the first step or from reading a stream.
    """
    first_dropping = ""
    dropping_count = file_count = 0
    known = KnownPaths()
    with _opened(source, name) as file:
        for member in _members(file, Meter(name, limits)):
            if is_dropping(member.path):
                first_dropping = first_dropping or member.path
                dropping_count += 1
                continue
            file_count += 1
            stream = io.BufferedReader(member, UNPACK_BYTES)
            problems = _check_member(member, stream, known)
            for problem in problems:
                report(problem)
            if not any(problem.severity is Severity.ERROR for problem in problems):
                yield Member(plain_name(member.path), member.size, member.start), stream
            stream.close()
    if not file_count:
        refuse("empty-archive", name)
    if dropping_count:
        report(describe("droppings", name, count=dropping_count, first=first_dropping))


def _opened(source: Path, name: str) -> BinaryIO:
    try:
        if not stat.S_ISREG(source.stat().st_mode):
            refuse("not-readable/archive", name, found="a folder, pipe or device")
        return source.open("rb", buffering=UNPACK_BYTES)
    except OSError as error:
        refuse("not-readable/archive", name, found=f"“{error.strerror}”")


def _members(file: BinaryIO, meter: Meter) -> Iterator[MemberBytes]:
    """Return the files of an archive of any kind, told by its first bytes."""
    head = file.read(HEAD_BYTES)
    size = file.seek(0, 2)
    file.seek(0)
    if head.startswith((_ZIP, _EMPTY_ZIP)):
        return zip_members(file, size, meter)
    if head.startswith(_SPLIT_ZIP):
        refuse("split-archive", meter.name)
    packing = next((packing for packing in PACKINGS if head.startswith(packing.starts[0])), None)
    if packing is None and (kind := _packed_kind(head)) not in ("", "tar"):
        refuse("unsupported-archive", meter.name, kind=_article(kind))
    stream = io.BufferedReader(Unpacked(file, packing, meter.name), UNPACK_BYTES)
    first = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
    if len(first) < HEAD_BYTES or (first.strip(b"\0") and not is_tar_header(first)):
        if kind := _packed_kind(first):
            refuse("nested-archive/packed", meter.name, kind=_article(kind))
        otherwise = f"a {packing.title} file that holds no tar" if packing else "something else"
        refuse("not-an-archive", meter.name, found=otherwise if head else "an empty file")
    return tar_members(stream, meter)


def _check_member(member: MemberBytes, stream: io.BufferedReader[MemberBytes], known: KnownPaths) -> list[Problem]:
    """Return what is wrong with one file by its name and its first bytes."""
    if collision := known.add(member.path):
        return [collision]
    if kind := _packed_kind(stream.peek(HEAD_BYTES)[:HEAD_BYTES]):
        return [describe("nested-archive/file", member.path, kind=_article(kind))]
    return [describe("name-not-utf8", member.path, encoding=FALLBACK)] if member.is_guessed else []


def _packed_kind(head: bytes) -> str:
    """Return the name of the kind of archive or packed file that begins so; empty for anything else."""
    for start, kind in _SIGNATURES.items():
        if head.startswith(start):
            return kind
    if head.startswith(b"BZh") and head[4:10] in _BZIP2_BLOCKS:
        return "bzip2"
    if len(head) >= HEAD_BYTES and head[257:262] == b"ustar" and is_tar_header(head[:HEAD_BYTES]):
        return "tar"
    return ""


def _article(kind: str) -> str:
    return f"{'an' if kind in ('ar', 'xz', 'LZ4') else 'a'} {kind} archive"


def read_folder(
    source: Path, *, limits: ArchiveLimits, report: Callable[[Problem], None]
) -> Iterator[tuple[Member, BinaryIO]]:
    """Yield each file below a folder with a stream of its bytes, by path, as `read_archive` does for an archive.

    Args:
        report: is called with each file that cannot be read, or whose name another one has for people or in an
            archive, and with one note of droppings at the end.

    Raises:
        ProblemFound: a name that no archive may hold, or no file at all.
    """
    first_dropping = ""
    dropping_count = file_count = 0
    known = KnownPaths()
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        if is_dropping(name):
            first_dropping = first_dropping or name
            dropping_count += 1
            continue
        file_count += 1
        safe_path(name, limits)
        if collision := known.add(name):
            report(collision)
            continue
        if not path.is_file():
            report(describe("not-a-file", name))
            continue
        try:
            size, stream = path.stat().st_size, path.open("rb")
        except OSError as error:
            report(describe("not-readable/file", name, reason=error.strerror))
            continue
        with stream:
            yield Member(plain_name(name), size), stream
    if not file_count:
        refuse("empty-archive", source.name)
    if dropping_count:
        report(describe("droppings", source.name, count=dropping_count, first=first_dropping))


def _files(source: Path) -> Iterator[Path]:
    seen: set[str] = set()  # a link to a folder above would lead round for ever
    for place, folders, names in os.walk(source, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        yield from (Path(place) / name for name in sorted(names))
