"""Folders on the server from which a page may import: which are open, and the corpora that lie there."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from portal.challenges.readers.corpus import detect_layout
from portal.challenges.readers.draft import Layout
from portal.challenges.readers.manifest import USUAL_NAMES

DEEPEST, MOST_FOLDERS, LONGEST_S, MOST_SHOWN = 2, 200, 1.0, 30


@dataclass(frozen=True)
class FoundCorpus:
    folder: Path
    layout: Layout


def open_roots() -> list[Path]:
    """The open folders as they really are, links followed."""
    return [root.resolve() for root in settings.IMPORT_ROOTS]


def is_open(folder: Path) -> bool:
    """Whether a folder, links followed, is one of the open ones or lies below one."""
    return any(folder.is_relative_to(root) for root in open_roots())


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long, or a folder that may not be read
        return False


def find_corpora() -> list[FoundCorpus]:
    """The folders that look like a corpus, by path: an open one, or one at most two levels below.

    Inside a corpus is not looked further, nor behind links. The search ends after 200 folders or a second, so that the
    page opens at once; a corpus that it did not reach can still be named.
    """
    found: dict[Path, FoundCorpus] = {}
    ends_at = time.monotonic() + LONGEST_S
    waiting = deque((root, 0) for root in open_roots())
    for _ in range(MOST_FOLDERS):
        if not waiting or time.monotonic() > ends_at or len(found) == MOST_SHOWN:
            break
        folder, depth = waiting.popleft()
        layout = detect_layout(folder)
        if layout and _is_likely(layout, folder):
            found[folder] = FoundCorpus(folder, layout)
        elif depth < DEEPEST:
            waiting.extend((subfolder, depth + 1) for subfolder in _subfolders(folder))
    return sorted(found.values(), key=lambda corpus: corpus.folder)


def _is_likely(layout: Layout, folder: Path) -> bool:
    """Not just any CSV file, nor a folder whose subfolder is the corpus in truth."""
    if layout is Layout.MANIFEST:
        return any((folder / name).is_file() for name in USUAL_NAMES)
    if layout is Layout.KALDI:
        return True
    return all(detect_layout(subfolder) is not layout for subfolder in _subfolders(folder))


def _subfolders(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(
            path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and path.name[0] != "."
        )
    except OSError:  # it may not be read, or has gone
        return
