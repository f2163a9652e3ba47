"""What an archive may hold, and how it is refused: every limit, the exception, and the meter that counts.

Conventions: bytes are counted as delivered, never as declared, and a declaration that breaks a limit refuses at once.
*Packed* is what lies in the archive, *delivered* what comes out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from common.memory import format_size
from common.problems import ProblemFound
from portal.intake.problem_codes import describe

MEGABYTE = 10**6
GIGABYTE = 10**9
HEAD_BYTES = 512  # that tell the kind of a file; a block of tar
READ_BYTES = 2**16  # of the archive at a time; what is read ahead of a member cannot be more
UNPACK_BYTES = 2**17  # at a time
ARCHIVE_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst")
ARCHIVE_FORMATS = ".zip, .tar, .tar.gz, .tar.bz2, .tar.xz or .tar.zst"
LARGEST_TAR_HEADER_BYTES = 2**18
MOST_TAR_HEADERS = 32  # for one file
LARGEST_ZIP_LIST_BYTES, LARGEST_ZIP_RECORD_BYTES = 2**20, 2**11  # of all together, and for each file
LARGEST_DICTIONARY_BYTES = 2**26  # as much as `xz -9` uses
FREE_STREAMS = 1000  # of a packed file, each of which takes time and may give nothing; beyond, one for so many bytes:
BYTES_PER_STREAM = 1024
UNPACKED_BYTES_FOR_PACKED = 4  # where an edition takes larger archives than usual
LARGEST_SPEECH_BYTES = 64 * MEGABYTE
# By `portal.intake.contents.Content`.
LARGEST_DOCUMENT_BYTES = {
    "results": 4 * MEGABYTE,
    "scores": 256 * MEGABYTE,
    "hypotheses": 256 * MEGABYTE,
    "similarity": 64 * MEGABYTE,
    "description": 64 * MEGABYTE,
    "targets": 8 * MEGABYTE,
}


@dataclass(frozen=True)
class ArchiveLimits:
    """What an archive may hold.

    Attributes:
        members: files, folders and headers together.
        total_bytes: delivered by the whole archive.
        member_bytes: delivered by one file.
        ratio: delivered bytes for each packed byte, of the whole archive and of each file.
        ratio_floor_bytes: delivered bytes up to which `ratio` is not looked at: small text and silence pack well.
        depth: folders and file name of a path.
        path_characters: of a path.
    """

    members: int = 100_000
    total_bytes: int = 64 * GIGABYTE
    member_bytes: int = 2 * GIGABYTE
    ratio: float = 100.0
    ratio_floor_bytes: int = 32 * MEGABYTE
    depth: int = 24
    path_characters: int = 400

    @classmethod
    def for_archives(cls, largest_bytes: int) -> ArchiveLimits:
        """Return what is usual, or as much more as an edition takes archives of up to `largest_bytes`."""
        return cls(total_bytes=max(cls.total_bytes, UNPACKED_BYTES_FOR_PACKED * largest_bytes))


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an archive.

    Attributes:
        path: with forward slashes, relative, without ``.`` and ``..``, free of control characters.
        size: bytes; the stream delivers exactly so many or the archive is refused.
        position: how far into the archive its reader was when the file began, in bytes; for a progress bar.
    """

    path: str
    size: int
    position: int = 0


def refuse(kind: str, file: str, /, **values: Any) -> NoReturn:
    """Refuse the whole archive; `kind` and `values` as in `portal.intake.problem_codes`.

    Raises:
        ProblemFound: always.
    """
    raise ProblemFound(describe(kind, file, **values))


def refuse_truncated(file: str, expected: str) -> NoReturn:
    """Refuse an archive that ends too early."""
    refuse("truncated-archive", file, expected=expected)


def refuse_damaged(file: str, expected: str, found: str) -> NoReturn:
    """Refuse an archive whose bytes contradict themselves."""
    refuse("damaged-archive", file, expected=expected, found=found)


class Meter:
    """Counts members and bytes of one archive and refuses it at the first limit that is passed.

    Args:
        name: of the archive, for sentences.
    """

    def __init__(self, name: str, limits: ArchiveLimits) -> None:
        self.name = name
        self.limits = limits
        self.delivered = 0
        self._members = 0
        self._member = name
        self._member_delivered = 0
        self._packed_before = 0

    def count_member(self) -> None:
        """Count one file, folder or header."""
        self._members += 1
        check_member_count(self.name, self._members, self.limits)

    def begin(self, path: str, size: int, packed: int) -> None:
        """A file begins.

        Args:
            size: as declared, in bytes.
            packed: bytes of the archive that were read so far.
        """
        self._member, self._member_delivered, self._packed_before = path, 0, packed
        check_size("member-too-large", path, self.limits.member_bytes, size)
        check_size("archive-too-large", self.name, self.limits.total_bytes, self.delivered + size)

    def count_unpacked(self, unpacked: int, packed: int) -> None:
        """Hold all bytes that came out of the archive so far, headers too, against those that were read of it."""
        check_ratio(self.name, unpacked, packed, self.limits)

    def count(self, delivered: int, packed: int) -> None:
        """Bytes of a file came out of the archive.

        Args:
            delivered: how many.
            packed: bytes of the archive that were read so far.
        """
        self.delivered += delivered
        self._member_delivered += delivered
        check_size("archive-too-large", self.name, self.limits.total_bytes, self.delivered)
        check_ratio(self.name, self.delivered, packed, self.limits)
        check_ratio(self._member, self._member_delivered, packed - self._packed_before + READ_BYTES, self.limits)


def check_member_count(name: str, members: int, limits: ArchiveLimits) -> None:
    """Refuse an archive of too many members."""
    if members > limits.members:
        refuse("too-many-members", name, limit=limits.members, members=members)


def check_ratio(file: str, delivered: int, packed: int, limits: ArchiveLimits) -> None:
    """Refuse what unpacks to far more than speech and text ever do."""
    if delivered > limits.ratio_floor_bytes and delivered > limits.ratio * packed:
        sizes = {"delivered": format_size(delivered), "packed": format_size(max(packed, 0))}
        refuse("compression-bomb", file, ratio=limits.ratio, **sizes)


def check_size(kind: str, file: str, limit: int, size: int) -> None:
    """Refuse what unpacks to more bytes than `limit`."""
    if size > limit:
        refuse(kind, file, limit=format_size(limit), found=format_size(size))
