"""What a folder holds, found by names alone: audio files by path and by basename, and the licence.

No audio is opened here, and links to folders are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from common.file_names import fold_names, is_dropping, name_other_capitals, plain_name
from common.text_files import read_text_file

AUDIO_SUFFIXES = (".flac", ".wav", ".wave", ".w64", ".rf64", ".aif", ".aiff", ".caf", ".au", ".sph")
_LICENCES = {
    "CC BY-NC-SA 4.0": ("attribution-noncommercial-sharealike 4.0", "cc by-nc-sa 4.0"),
    "CC BY-NC 4.0": ("attribution-noncommercial 4.0", "cc by-nc 4.0"),
    "CC BY-SA 4.0": ("attribution-sharealike 4.0", "cc by-sa 4.0"),
    "CC BY 4.0": ("attribution 4.0 international", "cc by 4.0", "licenses/by/4.0"),
    "ODC-By 1.0": ("open data commons attribution",),
    "CC0 1.0": ("cc0 1.0",),
}


def is_file(path: Path) -> bool:
    """Return whether a regular file is there: no pipe and no device, which can be read for ever, and no impossible
    name."""
    try:
        return path.is_file()
    except OSError:
        return False


def list_folders(folder: Path) -> list[Path]:
    """Return the folders right below one, in order; none where it is no folder."""
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def audio_files(folder: Path) -> Iterator[str]:
    """Yield the audio files below `folder` as sorted relative paths, without what operating systems left."""
    for path in _paths(folder):
        name = path.rpartition("/")[2]
        is_audio = name.lower().endswith(AUDIO_SUFFIXES) and not name.startswith(".") and not is_dropping(path)
        if is_audio and is_file(folder / path):
            yield path


def find_droppings(folder: Path) -> list[str]:
    """Return what operating systems left behind below a folder, as sorted relative paths."""
    return [path for path in _paths(folder) if is_dropping(path)]


def _paths(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders.sort()
        below = Path(place).relative_to(folder).as_posix()
        yield from (name if below == "." else f"{below}/{name}" for name in sorted(files))


class AudioIndex:
    """The audio below one folder, looked up by the basename that a listing states."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = tuple(audio_files(folder))
        self._by_stem: dict[str, list[str]] = {}
        for file in self.files:
            self._by_stem.setdefault(plain_name(PurePosixPath(file).stem), []).append(file)
        self._folded = fold_names(self._by_stem)

    def name_other_capitals(self, stated: str) -> str:
        """Return the end of a sentence where a file's name differs from the missing one in capitals; else empty."""
        return name_other_capitals(PurePosixPath(plain_name(stated.replace("\\", "/"))).stem, self._folded)

    def matches(self, stated: str) -> list[str]:
        """Return the files that may be meant by a path from somewhere else, best agreement only.

        A file matches when its basename without suffix is the same; among several, those win whose
        path ends in most of the same folders, and then the one with the same suffix.
        """
        wanted = PurePosixPath(plain_name(stated.replace("\\", "/")))
        found = self._by_stem.get(wanted.stem, [])
        if len(found) < 2:
            return found
        ranks = {file: _agreement(PurePosixPath(plain_name(file)), wanted) for file in found}
        best = max(ranks.values())
        return [file for file in found if ranks[file] == best]


def _agreement(file: PurePosixPath, wanted: PurePosixPath) -> tuple[int, bool]:
    same = 0
    for ours, theirs in zip(file.parent.parts[::-1], wanted.parent.parts[::-1], strict=False):
        if ours != theirs:
            break
        same += 1
    return same, file.suffix == wanted.suffix


def stated_licence(folder: Path) -> str:
    """Return the licence that a file beside the data states, or that file's name if the text is new."""
    for file in sorted(folder.iterdir()):
        if is_file(file) and file.name.lower().startswith(("license", "licence", "copying")):
            text = " ".join(read_text_file(file)[0].lower().split())
            known = (n for n, marks in _LICENCES.items() if any(m in text for m in marks))
            return next(known, f"see {file.name}")
    return ""
