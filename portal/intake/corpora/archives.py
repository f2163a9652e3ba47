"""A corpus that comes as an archive: unpacked into an empty folder, where the readers of folders find it.

The archive is read as those of submissions are (`portal.intake.archives.reading`), within limits, and only plain files
come of it: what would lie elsewhere, or lead elsewhere as links do, refuses the whole archive.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from common.problems import Problem, ProblemFound, ProblemList
from common.progress import Progress
from portal.intake.archives.limits import ArchiveLimits
from portal.intake.archives.reading import read_archive
from portal.intake.corpora.reading import detect_layout
from portal.intake.documents import write_document
from portal.intake.problem_codes import describe

UNPACKING = "Unpacking the archive (MB)"
MOST_FILES = 1_000_000  # VCTK has 180,000
_MEGABYTE = 10**6


def unpack_corpus(
    source: Path, name: str, folder: Path, *, spare_bytes: int, progress: Progress, look_at: Callable[[str], None]
) -> tuple[tuple[Problem, ...], bool]:
    """Write the files of an archive below an empty folder; returns all problems, and whether all of it was read.

    Args:
        name: of the archive as its owner knows it.
        spare_bytes: what the disk must keep free for others.
        progress: is told how many megabytes of the archive have been read.
        look_at: is told each file.

    Raises:
        OSError: such as for a disk that would have less free.
    """
    found, size, is_whole = ProblemList(), source.stat().st_size, True
    limits = replace(ArchiveLimits.for_archives(size), members=MOST_FILES)
    total = max(1, size // _MEGABYTE)
    try:
        for member, stream in read_archive(source, name=name, limits=limits, report=found.add):
            look_at(member.path)
            progress(UNPACKING, min(total, member.position // _MEGABYTE), total)
            if shutil.disk_usage(folder).free < spare_bytes + member.size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            try:
                write_document(folder, member.path, stream)
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                found.add(describe("long-name/disk", member.path))
    except ProblemFound as refused:
        found.add(refused.problem)
        is_whole = False
    look_at("")
    progress(UNPACKING, total, total)
    return found.report(), is_whole


def find_corpus(folder: Path) -> Path:
    """Return the folder of an unpacked archive that holds the corpus, which most archives have in a folder of its
    own."""
    entries = list(folder.iterdir())
    while len(entries) == 1 and entries[0].is_dir() and (detect_layout(entries[0]) or not detect_layout(folder)):
        [folder] = entries
        entries = list(folder.iterdir())
    return folder
