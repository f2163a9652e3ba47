"""A plain folder read like an archive, so that a team can check before it packs.

The folder is the team's own, so links in it are followed; names that an archive may not hold are refused here, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from evaluation.formats.problems import Problem
from portal.submissions.intake.archives import Limits, Member
from portal.submissions.intake.names import is_dropping, safe_path


def read_folder(
    source: Path, *, limits: Limits, report: Callable[[Problem], None]
) -> Iterator[tuple[Member, BinaryIO]]:
    """Each file below a folder with a stream of its bytes, by path, as `read_archive` does for an archive.

    Args:
        report: is called with each file that cannot be read.

    Raises:
        ArchiveRefused: a name that no archive may hold.
    """
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        if is_dropping(name):
            continue
        safe_path(name, limits)
        if not path.is_file():
            report(
                Problem("not-a-file", name, "a file", "a pipe, a device or a broken link", "Take it out of the folder.")
            )
            continue
        try:
            size, stream = path.stat().st_size, path.open("rb")
        except OSError as error:
            remedy = "Make it readable, or take it out of the folder."
            report(Problem("not-readable", name, "a readable file", f"“{error.strerror}”", remedy))
            continue
        with stream:
            yield Member(name, size), stream


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
