"""Files that are written whole or not at all, so that a process that is killed leaves the ones before."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that at every moment the old or the new one is there, even if the power fails.

    Args:
        path: its folder exists; who may read the file, the process's umask says.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
