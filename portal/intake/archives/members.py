"""Members of archives: their names, checked and compared, and the streams of their bytes.

Nothing is ever extracted under these names. They are checked all the same, since they stand in reports and tables, and
since an archive with such names was made by somebody who hopes that it will be extracted.
"""

from __future__ import annotations

import hashlib
import io
import re
import stat
import unicodedata
from collections.abc import Callable
from typing import Any, NoReturn

from common.file_names import ICON, plain_name
from common.line_texts import find_hidden_character
from common.problems import Problem
from portal.intake.archives.limits import UNPACK_BYTES, ArchiveLimits, Meter, refuse
from portal.intake.problem_codes import describe

FALLBACK = "cp437"  # of the zip format; it knows every byte and makes no control characters of those above 127
_DRIVE = re.compile(r"[A-Za-z]:")
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
_SHOWN_CHARACTERS = 200


class MemberBytes(io.RawIOBase):
    """One file of an archive on its way out of it: its bytes, forwards only, counted while they are read.

    Args:
        path: safe (`safe_path`).
        is_guessed: whether the name was not UTF-8.
        size: as declared, in bytes.
        source: reads them.
        position: tells how many bytes of the archive were read so far.

    Raises (from reading):
        ProblemFound: there are fewer, or `Meter` refuses them.

    Attributes:
        start: bytes of the archive that were read when it began.
    """

    def __init__(
        self,
        path: str,
        is_guessed: bool,
        size: int,
        source: io.RawIOBase | io.BufferedReader[Any],
        meter: Meter,
        position: Callable[[], int],
    ) -> None:
        self.path, self.is_guessed, self.size, self.start = path, is_guessed, size, position()
        self.shown = shown_name(path) or meter.name  # for sentences
        self._left = size
        self._source, self._meter, self._position = source, meter, position
        self._is_finished = False
        meter.begin(self.shown, size, self.start)

    def readable(self) -> bool:
        return True

    def take(self, buffer: memoryview) -> int:
        """Put the next bytes into a buffer; return how many."""
        return self._source.readinto(buffer) or 0

    def finish(self) -> None:
        """Check what follows; called once, before the last bytes are given out."""

    def refuse_short(self) -> NoReturn:
        """Refuse an archive that gives fewer bytes of the file than it declares."""
        raise NotImplementedError

    def readinto(self, buffer: Any, /) -> int:
        wanted = min(len(buffer), self._left)
        count = self.take(memoryview(buffer)[:wanted]) if wanted else 0
        if wanted and not count:
            self.refuse_short()
        self._left -= count
        self._meter.count(count, self._position())
        if not self._left and not self._is_finished:
            self._is_finished = True
            self.finish()
        return count

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(min(self._left, UNPACK_BYTES)), b""))

    def drain(self) -> None:
        """Read what is left and forget it."""
        buffer = bytearray(min(self._left, UNPACK_BYTES))
        while self.readinto(buffer):
            pass


def refuse_special(kind: int, path: str) -> None:
    """Refuse what is neither a file nor a folder; 0 tells nothing.

    Args:
        kind: as `stat.S_IFMT` gives it.
    """
    if kind in (0, stat.S_IFREG, stat.S_IFDIR):
        return
    if kind == stat.S_IFLNK:
        refuse("symbolic-link", path)
    titles = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    refuse("special-file", path, kind=titles.get(kind, "something else"))


def refuse_filled_folder(path: str, size: int) -> None:
    """Refuse a folder with bytes of its own."""
    refuse("size-contradiction", path, expected="a folder without bytes of its own", found=f"{size:,} bytes")


def decode(raw: bytes) -> tuple[str, bool]:
    """Return a name, and whether it is not UTF-8, so that the fallback had to do."""
    try:
        return raw.decode(), False
    except UnicodeDecodeError:
        return raw.decode(FALLBACK), True


def safe_path(text: str, limits: ArchiveLimits) -> str:
    """Return the path of a member without ``.`` and empty parts; empty for the folder that the archive itself is.

    Raises:
        ProblemFound: the name leaves the archive, hides something or is beyond the limits.
    """
    shown = shown_name(text)
    if len(text) > limits.path_characters:
        refuse("long-name/archive", shown, limit=limits.path_characters, found=len(text))
    visible = text.removesuffix("\r") if text.endswith(ICON) else text
    if not visible.isprintable() and any(unicodedata.category(character) in _CONTROLS for character in visible):
        refuse("control-character-in-name", shown)
    if _DIRECTIONS.search(text):
        refuse("direction-character-in-name", shown)
    parts = re.split(r"[/\\]", text)
    if ".." in parts:
        refuse("path-traversal", shown)
    if text.startswith(("/", "\\")) or _DRIVE.match(text):
        refuse("absolute-path", shown)
    if "\\" in text:
        refuse("backslash-in-name", shown)
    parts = [part for part in parts if part not in ("", ".")]
    if len(parts) > limits.depth:
        refuse("deep-path", shown, limit=limits.depth, found=len(parts))
    return "/".join(parts)


def shown_name(text: str) -> str:
    """Return a name for a sentence: control characters, signs of direction and backslashes escaped, cut where it is
    long."""
    if not find_hidden_character(text) and len(text) <= _SHOWN_CHARACTERS:
        return text
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:_SHOWN_CHARACTERS])
    return f"{shown}…" if len(text) > _SHOWN_CHARACTERS else shown


class KnownPaths:
    """Which paths an archive had so far, compared as file systems of other machines would."""

    def __init__(self) -> None:
        self._files: dict[bytes, str] = {}
        self._folders: set[bytes] = set()
        self._last_folder = ""
        self._last_keys: tuple[bytes, ...] = ()  # kept, since most files lie beside the one before

    def add(self, path: str) -> Problem | None:
        """Take one more file; the problem if it collides with an earlier one, which stays the one that counts."""
        key = _key(path)
        folders = self._folder_keys(path.rpartition("/")[0])
        if (earlier := self._files.get(key)) is not None:
            return _collision(path, earlier)
        if key in self._folders or any(folder in self._files for folder in folders):
            return describe("file-and-folder", shown_name(path))
        self._files[key] = path
        self._folders.update(folders)
        return None

    def _folder_keys(self, folder: str) -> tuple[bytes, ...]:
        """Return the keys of a folder and of those that it lies in."""
        if folder != self._last_folder:
            parts = folder.split("/")
            self._last_folder = folder
            self._last_keys = tuple(_key("/".join(parts[: depth + 1])) for depth in range(len(parts)))
        return self._last_keys


def _collision(path: str, earlier: str) -> Problem:
    if path == earlier:
        return describe("duplicate-member", shown_name(path))
    folded, earlier_folded = plain_name(path), plain_name(earlier)
    is_unicode = folded == earlier_folded or folded.casefold() != earlier_folded.casefold()
    kind = "unicode-collision" if is_unicode else "case-collision"
    return describe(kind, shown_name(path), earlier=shown_name(earlier))


def _key(path: str) -> bytes:
    """Return the same for names that look the same or that a file system may hold for the same; short, since many are
    kept."""
    if path.isascii():
        folded = path.lower()
    else:
        visible = "".join(character for character in path if unicodedata.category(character) != "Cf")
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold())
    return hashlib.blake2b(folded.encode(), digest_size=12).digest()
