"""The files of a training: written whole or not at all, so that a process that is killed leaves the ones before.

Names: `CHECKPOINT` is everything that a training needs to go on and is gone when it has ended; `MODEL`, `DESCRIPTION`
and `VALUES` are the finished attacker.
"""

from __future__ import annotations

import os
from pathlib import Path

CHECKPOINT = "checkpoint.pt"
MODEL = "model.safetensors"
DESCRIPTION = "recipe.json"
VALUES = "values.csv"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that at every moment the old or the new one is there, even if the power fails."""
    unfinished = path.with_name(f".{path.name}.part")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
