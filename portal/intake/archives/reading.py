"""Archives that strangers send, read safely: zip, tar, and tar packed by gzip, bzip2, xz or Zstandard.

An archive is recognised by its content, streamed once and never extracted; each file is handed out as a stream that is
counted while it is read. What is hostile or cannot be read refuses the whole archive with one sentence
(`ArchiveRefused`); what is wrong with one file is reported and that file passed over.

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
for all that macOS and Windows left behind.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from evaluation.formats.problems import Problem, Severity
from portal.submissions.intake.members import Entry
from portal.submissions.intake.names import FALLBACK, KnownPaths, is_dropping
from portal.submissions.intake.refusals import ArchiveRefused, Limits, Member, Meter, refuse
from portal.submissions.intake.tars import BLOCK, TarReader, is_tar_header
from portal.submissions.intake.unpacking import PACKINGS, UNPACK_BYTES, PlainReader, Reader, open_packed
from portal.submissions.intake.zips import zip_entries

__all__ = ["ArchiveRefused", "Limits", "Member", "read_archive"]

_SHAPES = "a zip, tar, tar.gz, tar.bz2, tar.xz or tar.zst archive"
_ZIP, _EMPTY_ZIP, _SPLIT_ZIP = b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"
# First bytes of archives and packed files, by the name that a sentence gives them.
_SIGNATURES = {
    _ZIP: "zip", _EMPTY_ZIP: "zip", _SPLIT_ZIP: "zip", b"\x1f\x8b\x08": "gzip", b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard", b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "RAR", b"MSCF\0\0\0\0": "cabinet",
    b"!<arch>\n": "ar", b"LZIP\x01": "lzip", b"\x04\x22\x4d\x18": "LZ4", b"\x1f\x9d\x90": "compress",
}  # fmt: skip
_BZIP2_BLOCKS = (bytes.fromhex("314159265359"), bytes.fromhex("177245385090"))
_HEAD_BYTES = BLOCK


def read_archive(
    source: Path, *, name: str, limits: Limits, report: Callable[[Problem], None]
) -> Iterator[tuple[Member, BinaryIO]]:
    """Each file of an archive with a stream of its bytes, in the order in which they lie in it.

    A stream is valid until the next step of the iterator; what was not read of it is read then and thrown away, so that
    the whole archive has been checked at the end. Folders are passed over.

    Args:
        name: of the archive as its owner knows it, for sentences.
        report: is called with each fault of a single file, and with one note of droppings at the end.

    Raises:
        ArchiveRefused: while iterating, from the first step or from reading a stream.
    """
    first_dropping = ""
    dropping_count = file_count = 0
    known = KnownPaths()
    with _opened(source, name) as file, _opened(source, name) as listing:
        for entry in _entries(file, listing, Meter(name, limits)):
            if is_dropping(entry.path):
                first_dropping = first_dropping or entry.path
                dropping_count += 1
                continue
            file_count += 1
            problems = _check_entry(entry, known)
            for problem in problems:
                report(problem)
            if not any(problem.severity is Severity.ERROR for problem in problems):
                yield Member(entry.path, entry.size, entry.position), entry.stream.as_file()
                entry.stream.drain()
            entry.stream.close()
    if not file_count:
        remedy = "Pack the files of the submission and send that archive."
        refuse("empty-archive", name, "the files of a submission", "an archive without files", remedy)
    if dropping_count:
        found = f"{dropping_count:,} that macOS or Windows left behind, such as {first_dropping}"
        remedy = "Nothing needs to be done; they were passed over."
        report(Problem("droppings", name, "files of the submission only", found, remedy, Severity.NOTE))


def _opened(source: Path, name: str) -> BinaryIO:
    remedy = "Name the archive itself, and let the account read it."
    try:
        if not stat.S_ISREG(source.stat().st_mode):
            refuse("not-readable", name, _SHAPES, "a folder, pipe or device", remedy)
        return source.open("rb", buffering=UNPACK_BYTES)
    except OSError as error:
        refuse("not-readable", name, _SHAPES, f"“{error.strerror}”", remedy)


def _entries(file: BinaryIO, listing: BinaryIO, meter: Meter) -> Iterator[Entry]:
    """The files of an archive of any kind, told by its first bytes."""
    head = file.read(_HEAD_BYTES)
    size = file.seek(0, 2)
    file.seek(0)
    if head.startswith((_ZIP, _EMPTY_ZIP)):
        return zip_entries(file, listing, size, meter)
    if head.startswith(_SPLIT_ZIP):
        refuse(
            "split-archive",
            meter.name,
            "the whole archive in one file",
            "one part of several",
            "Pack again as one file.",
        )
    for packing in PACKINGS:
        if head.startswith(packing.start):
            reader = open_packed(file, packing, meter.name)
            return _tar_entries(reader, meter, f"a {packing.title} file that holds no tar")
    if (kind := _packed_kind(head)) not in ("", "tar"):
        remedy = "Pack again as zip or tar.gz."
        refuse("unsupported-archive", meter.name, _SHAPES, _article(kind), remedy)
    return _tar_entries(PlainReader(file), meter, "something else" if head else "an empty file")


def _tar_entries(reader: Reader, meter: Meter, otherwise: str) -> Iterator[Entry]:
    first = b""
    while len(first) < BLOCK and (more := reader.read(BLOCK - len(first))):
        first += more
    if len(first) < BLOCK or (first.strip(b"\0") and not is_tar_header(first)):
        if kind := _packed_kind(first):
            remedy = "Unpack once and send the archive that was inside."
            refuse("nested-archive", meter.name, _SHAPES, f"{_article(kind)} inside of a packed file", remedy)
        remedy = "Pack the files of the submission and send the archive."
        refuse("not-an-archive", meter.name, _SHAPES, otherwise, remedy)
    return TarReader(reader, first, meter).entries()


def _check_entry(entry: Entry, known: KnownPaths) -> list[Problem]:
    """What is wrong with one file by its name and its first bytes."""
    if collision := known.add(entry.path):
        return [collision]
    if kind := _packed_kind(entry.stream.peek(_HEAD_BYTES)):
        remedy = "Pack its files themselves, or leave it out; archives in archives are not opened."
        return [Problem("nested-archive", entry.path, "a file of the submission", _article(kind), remedy)]
    if not entry.is_guessed:
        return []
    found = f"another encoding, read as {FALLBACK}"
    remedy = "Rename the file with plain letters, or pack with a program that writes UTF-8."
    return [Problem("name-not-utf8", entry.path, "a name in UTF-8", found, remedy, Severity.WARNING)]


def _packed_kind(head: bytes) -> str:
    """The name of the kind of archive or packed file that begins so; empty for anything else."""
    for start, kind in _SIGNATURES.items():
        if head.startswith(start):
            return kind
    if head.startswith(b"BZh") and head[4:10] in _BZIP2_BLOCKS:
        return "bzip2"
    if len(head) >= BLOCK and head[257:262] == b"ustar" and is_tar_header(head[:BLOCK]):
        return "tar"
    return ""


def _article(kind: str) -> str:
    return f"{'an' if kind in ('ar', 'xz', 'LZ4') else 'a'} {kind} archive"
