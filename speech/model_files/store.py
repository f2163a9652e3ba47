"""Where model files lie on this machine, and a verified path to each.

`find` gives a path only to a file whose SHA-256 is the catalogue's: an engine never reads weights that are missing, cut
off or not the published ones. The folder is `PORTAL_MODELS_DIR`, or belongs to the Python environment that runs.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path

from common.errors import InputError, MachineError
from common.hashes import compute_sha256
from common.packages import vp_command
from speech.model_files.catalogue import MODEL_FILES, ModelFile

FETCH_COMMAND = f"{vp_command()} models fetch"
# What has been verified in this process: path, size and time of change of each file; hashing 145 MB takes a moment.
_verified: set[tuple[Path, int, int]] = set()


class FileState(StrEnum):
    """What is known of a model file on this machine."""

    HERE = "here"
    MISSING = "missing"
    DAMAGED = "damaged"


def folder() -> Path:
    """Return where model files lie: `PORTAL_MODELS_DIR`, else a folder of this Python environment."""
    named = os.environ.get("PORTAL_MODELS_DIR", "").strip()
    return Path(named).expanduser() if named else Path(sys.prefix) / "share" / "voiceprivacy-portal" / "models"


def known(name: str) -> ModelFile:
    """Return the catalogue's entry.

    Raises:
        InputError: no model has this name.
    """
    if name not in MODEL_FILES:
        raise InputError(f"Expected the name of a model file ({', '.join(MODEL_FILES)}), found “{name}”.")
    return MODEL_FILES[name]


def path_of(file: ModelFile) -> Path:
    """Return where the file lies or would lie."""
    return folder() / file.path


def is_here(name: str) -> bool:
    """Return whether the file and its companions are here and as long as they should be; `find` also holds their
    hashes."""
    file = known(name)
    return _size(path_of(file)) == file.size_bytes and all(is_here(each) for each in file.companions)


def state(name: str) -> FileState:
    """Return whether the file is here with the right hash; without a look at its companions."""
    file = known(name)
    path = path_of(file)
    if not path.is_file():
        return FileState.MISSING
    return FileState.HERE if _is_published(file, path) else FileState.DAMAGED


def find(name: str) -> Path:
    """Return a file whose hash is the published one, with its companions beside it.

    Raises:
        MachineError: the file or a companion is not here, cannot be read or has another hash.
    """
    file = known(name)
    for companion in file.companions:
        find(companion)
    path = path_of(file)
    if not path.is_file():
        raise MachineError(missing_sentence(name))
    try:
        published = _is_published(file, path)
    except OSError as error:
        raise MachineError(f"The model file {file.path} cannot be read: {error.strerror}.") from None
    if not published:
        raise MachineError(
            f"The model file {file.path} is damaged or another one: expected SHA-256 {file.sha256}, "
            f"found {compute_sha256(path)}."
            f" Fetch it again with “{FETCH_COMMAND} {_asked_as(name)}”."
        )
    return path


def missing_sentence(name: str) -> str:
    """Return what to tell a person who needs a file that is not here."""
    file = known(name)
    return (
        f"The model file of {file.title} ({file.size_bytes / 1e6:.3g} MB) is missing."
        f" Fetch it with “{FETCH_COMMAND} {_asked_as(name)}”."
    )


def _is_published(file: ModelFile, path: Path) -> bool:
    facts = path.stat()
    identity = (path, facts.st_size, facts.st_mtime_ns)
    if identity in _verified:
        return True
    if facts.st_size != file.size_bytes or compute_sha256(path) != file.sha256:
        return False
    _verified.add(identity)
    return True


def _asked_as(name: str) -> str:
    """Return the name to fetch it by: that of the file whose companion it is, which brings them all."""
    return next((file.name for file in MODEL_FILES.values() if name in file.companions), name)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
