"""Names of archive members: decoded, checked and compared.

Nothing is ever extracted under these names. They are checked all the same, since they stand in reports and tables, and
since an archive with such names was made by somebody who hopes that it will be extracted.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from evaluation.formats.problems import Problem
from portal.submissions.intake.refusals import Limits, refuse

FALLBACK = "cp437"  # of the zip format; it knows every byte and makes no control characters of those above 127

_DROPPING_FILES = {".DS_Store", ".AppleDouble", ".LSOverride", "Thumbs.db", "ehthumbs.db", "desktop.ini"}
_DROPPING_FOLDERS = {"__MACOSX", ".AppleDouble", ".Spotlight-V100", ".Trashes", ".fseventsd", "$RECYCLE.BIN"}
_DROPPINGS_LOWER = {name.lower() for name in _DROPPING_FILES}
_DRIVE = re.compile(r"[A-Za-z]:")
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class RawName:
    """A name as an archive states it.

    Attributes:
        text: decoded.
        is_guessed: whether it was not UTF-8, so that `FALLBACK` had to do.
    """

    text: str
    is_guessed: bool = False


def decode(raw: bytes) -> RawName:
    """A name as UTF-8, by the fallback where it is none."""
    try:
        return RawName(raw.decode())
    except UnicodeDecodeError:
        return RawName(raw.decode(FALLBACK), is_guessed=True)


def safe_path(text: str, limits: Limits) -> str:
    """The path of a member without ``.`` and empty parts; empty for the folder that the archive itself is.

    Raises:
        ArchiveRefused: the name leaves the archive, hides something or is beyond the limits.
    """
    shown = shown_name(text)
    remedy = (
        "Pack again from inside the folder of the submission, with relative names such as exp/results-…/results.txt."
    )
    if len(text) > limits.path_characters:
        expected, found = f"names of at most {limits.path_characters} characters", f"{len(text):,}"
        refuse("long-name", shown, expected, found, "Shorten the names of the folders and pack again.")
    if not text.isprintable() and any(unicodedata.category(character) in _CONTROLS for character in text):
        found = "a control character or a zero byte"
        refuse("control-character-in-name", shown, "a printable name", found, "Rename the file and pack again.")
    if _DIRECTIONS.search(text):
        found = "a sign that changes the direction of writing"
        refuse(
            "direction-character-in-name", shown, "a name that reads as it is", found, "Rename the file and pack again."
        )
    parts = re.split(r"[/\\]", text)
    if ".." in parts:
        refuse("path-traversal", shown, "a name inside of the archive", "one that leads out of it (..)", remedy)
    if text.startswith(("/", "\\")) or _DRIVE.match(text):
        refuse("absolute-path", shown, "a name inside of the archive", "an absolute one", remedy)
    if "\\" in text:
        remedy = "Pack again with a program that writes forward slashes, such as 7-Zip, or rename the file."
        refuse("backslash-in-name", shown, "forward slashes between folders", "a backslash", remedy)
    parts = [part for part in parts if part not in ("", ".")]
    if len(parts) > limits.depth:
        expected, found = f"at most {limits.depth} folders in one another", f"{len(parts)}"
        refuse("deep-path", shown, expected, found, "Pack again with fewer folders in one another.")
    return "/".join(parts)


def shown_name(text: str) -> str:
    """A name for a sentence: control characters, signs of direction and backslashes escaped, cut where it is long."""
    if text.isprintable() and len(text) <= _SHOWN_CHARACTERS:
        return text
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:_SHOWN_CHARACTERS])
    return f"{shown}…" if len(text) > _SHOWN_CHARACTERS else shown


def is_dropping(path: str) -> bool:
    """Whether macOS or Windows left this file behind."""
    *folders, name = path.split("/")
    if name.startswith("._") or name.lower() in _DROPPINGS_LOWER:
        return True
    return any(folder in _DROPPING_FOLDERS for folder in folders)


class KnownPaths:
    """Which paths an archive had so far, compared as file systems of other machines would."""

    def __init__(self) -> None:
        self._files: dict[bytes, str] = {}
        self._folders: set[bytes] = set()
        self._last_folder = ""
        self._last_keys: tuple[bytes, ...] = ()  # kept, since most files lie beside the one before

    def add(self, path: str) -> Problem | None:
        """Take one more file; the fault where it collides with an earlier one, which then stays the one that counts."""
        key = _key(path)
        folders = self._folder_keys(path.rpartition("/")[0])
        if (earlier := self._files.get(key)) is not None:
            return _collision(path, earlier)
        if key in self._folders or any(folder in self._files for folder in folders):
            remedy = "Rename the file or the folder and pack again."
            return Problem("file-and-folder", shown_name(path), "a file or a folder of this name", "both", remedy)
        self._files[key] = path
        self._folders.update(folders)
        return None

    def _folder_keys(self, folder: str) -> tuple[bytes, ...]:
        """The keys of a folder and of those that it lies in."""
        if folder != self._last_folder:
            parts = folder.split("/")
            self._last_folder = folder
            self._last_keys = tuple(_key("/".join(parts[: depth + 1])) for depth in range(len(parts)))
        return self._last_keys


def _collision(path: str, earlier: str) -> Problem:
    shown = shown_name(path)
    if path == earlier:
        remedy = "Keep the right one and pack again; the first one was used."
        return Problem("duplicate-member", shown, "one file of this name", "another one", remedy)
    folded, earlier_folded = (unicodedata.normalize("NFC", name) for name in (path, earlier))
    is_unicode = folded == earlier_folded or folded.casefold() != earlier_folded.casefold()
    found = f"another spelling of “{shown_name(earlier)}”"
    if is_unicode:
        remedy = "Rename one: they look the same and differ in their Unicode form only; the first one was used."
        return Problem("unicode-collision", shown, "a name of its own", found, remedy)
    remedy = "Rename one: they differ in capitals only; the first one was used."
    return Problem("case-collision", shown, "a name of its own", found, remedy)


def _key(path: str) -> bytes:
    """The same for names that look the same or that a file system may hold for the same; short, since many are kept."""
    if path.isascii():
        folded = path.lower()
    else:
        visible = "".join(character for character in path if unicodedata.category(character) != "Cf")
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", visible).casefold())
    return hashlib.blake2b(folded.encode(), digest_size=12).digest()
