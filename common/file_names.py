"""Names of files as people see them, and what operating systems leave beside the files of people.

Names that look alike are one, however a disk, an archive or a list stores their accents: every reader compares them in
Unicode's form NFC (`plain_name`; what `common.text_files` reads has it already), and opens files under the spelling
that the disk has (`find_spelling`).
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

ICON = "Icon\r"  # of folders of macOS; the only name with a control character that an honest archive has
_FILES = {
    *(".DS_Store", ".AppleDouble", ".LSOverride", ".localized", ".apdisk", ".VolumeIcon.icns", ICON),  # macOS
    *(".com.apple.timemachine.donotpresent", ".com.apple.timemachine.supported", ".metadata_never_index"),
    *("Thumbs.db", "Thumbs.db:encryptable", "ehthumbs.db", "ehthumbs_vista.db", "desktop.ini"),  # Windows
    *(".directory", ".hidden"),  # desktops of Linux
    ".anonymization.lock",  # of ``vp run``, beside its recordings
}
_FOLDERS = {
    *("__MACOSX", ".AppleDouble", ".AppleDB", ".AppleDesktop", ".Spotlight-V100", ".Trashes", ".Trash", ".fseventsd"),
    *(".TemporaryItems", ".DocumentRevisions-V100", "Network Trash Folder", "Temporary Items"),
    *("$RECYCLE.BIN", "RECYCLER", "System Volume Information", "lost+found"),
    *("@eaDir", "#recycle", "#snapshot", "@Recycle", "@Recently-Snapshot", ".@__thumb"),  # network storage
}
_STARTS = ("._", "~$", ".~lock.", ".nfs", ".fuse_hidden", ".trash-")  # also of offices and network file systems
_ENDS = (":zone.identifier", "@synoeastream", "@synoresource")
_FILES_LOWER, _FOLDERS_LOWER = ({name.lower() for name in names} for names in (_FILES, _FOLDERS))


def plain_name(text: str) -> str:
    """Return a name or a text in NFC: letters with their accents in one piece, as keyboards type them.

    Example:
        >>> plain_name("mu\\u0308ller") == "m\\u00fcller"
        True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_dropping(path: str) -> bool:
    """Return whether macOS, Windows, a desktop, an office, network storage or ``vp run`` left this file behind.

    Args:
        path: with forward slashes, relative to what people handed over.
    """
    *folders, name = path.lower().split("/")
    if name in _FILES_LOWER or name.startswith(_STARTS) or name.endswith(_ENDS):
        return True
    return any(folder in _FOLDERS_LOWER or folder.startswith(".trash-") for folder in folders)


def find_spelling(path: Path) -> Path:
    """Return the path as the disk spells it, where that is the same name in another form of Unicode; else as it is."""
    if str(path).isascii() or os.path.lexists(path):
        return path
    here = Path(path.anchor)
    for part in path.parts[1:] if path.anchor else path.parts:
        if not os.path.lexists(here / part):
            part = _spellings(here).get(plain_name(part), part)
        here /= part
    return here


def name_other_capitals(wanted: str, folded: Mapping[str, str]) -> str:
    """Return the end of a sentence on a name that is missing, where another one differs in capitals only; empty else.

    Args:
        folded: the names that are there, by `fold_names`.
    """
    other = folded.get(wanted.casefold())
    return f", but “{other}”, which differs in capitals only" if other and other != wanted else ""


def fold_names(names: Iterable[str]) -> dict[str, str]:
    """Return names by what is left of them without capitals."""
    return {name.casefold(): name for name in names}


def _spellings(folder: Path) -> Mapping[str, str]:
    try:
        return _listed(folder, folder.stat().st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=64)
def _listed(folder: Path, _changed_ns: int) -> Mapping[str, str]:
    return {plain_name(name): name for name in os.listdir(folder)}  # noqa: PTH208
