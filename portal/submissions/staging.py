"""The files of an archive while it is being read: in a folder of the submission, not yet among the portal's files.

A refused archive leaves nothing behind, because its folder goes as a whole. What an interrupted attempt had made is
found again: each file carries the hash of its content in its name, and one that holds something else is dropped.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np
from django.conf import settings
from django.core.files.storage import default_storage
from numpy.typing import NDArray

from common.hashes import compute_sha256
from portal.core.storage import CHUNK_BYTES, adopt_file, content_key
from portal.submissions.models import Submission, SubmittedDocument
from speech.audio.files import write_flac16

PROMOTED_AT_ONCE = 8
BATCH = 100
SPEECH_SUFFIX = ".flac"
DOCUMENT_SUFFIX = ".document"


def folders() -> list[Path]:
    """Return the staging folders that there are."""
    return [path for path in _root().glob("submission-*") if path.is_dir()]


def submission_of(folder: Path) -> int:
    """Return the primary key of the submission that a staging folder belongs to."""
    return int(folder.name.rpartition("-")[2])


def _root() -> Path:
    return Path(settings.DATA_DIR) / "staging"


class Staging:
    """The folder of one submission.

    Attributes:
        reused: how many files of an earlier attempt did not have to be made again.
    """

    def __init__(self, submission: Submission) -> None:
        self.folder = _root() / f"submission-{submission.pk}"
        self.reused = 0
        self._staged: dict[str, Path] = {}
        self._found = self._intact()

    @property
    def documents(self) -> Path:
        """Return a folder in which the documents lie under their own paths while they are checked."""
        return self.folder / "documents"

    def keep_speech(self, samples: NDArray[np.int16], rate_hz: int, pcm_sha256: str) -> str:
        """Stage int16 samples, shape (n,), n > 0, as FLAC; the key that they will have. Threads may do so at once."""
        name = f"{pcm_sha256}-{rate_hz}"
        if (made := self._found.get(name)) is not None:
            self.reused += 1
            return self._stage(made[0], made[1], SPEECH_SUFFIX)
        flac = io.BytesIO()
        write_flac16(flac, samples, rate_hz)
        digest = hashlib.sha256(flac.getbuffer()).hexdigest()
        path = self.folder / f"{name}-{digest}{SPEECH_SUFFIX}"
        draft = self._draft()
        draft.write_bytes(flac.getbuffer())
        draft.replace(path)
        self._found[name] = (path, digest)
        return self._stage(path, digest, SPEECH_SUFFIX)

    def keep_document(self, stream: BinaryIO) -> tuple[str, int]:
        """Stage the bytes of a stream; the key that they will have, and how many they are."""
        draft, digest, size = self._draft(), hashlib.sha256(), 0
        with draft.open("xb") as file:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
                size += file.write(chunk)
        path = draft.replace(self.folder / f"{digest.hexdigest()}{DOCUMENT_SUFFIX}")
        return self._stage(path, digest.hexdigest(), DOCUMENT_SUFFIX), size

    def staged(self) -> dict[str, str]:
        """Return the names of the files that were staged, by their keys: what another process needs to promote them."""
        return {key: path.name for key, path in self._staged.items()}

    def adopt(self, staged: Mapping[str, str]) -> None:
        """Take over what another process has staged in the same folder, as `staged` names it."""
        self._staged |= {key: self.folder / Path(name).name for key, name in staged.items()}

    def promote(self, keys: Collection[str], progress: Callable[[int, int], None]) -> None:
        """Move what was staged in this attempt under these keys to the portal's files; others stay behind."""
        wanted = [(path, key) for key, path in self._staged.items() if key in keys]
        # Each file waits until it is on disk; together they wait not much longer than one.
        with ThreadPoolExecutor(PROMOTED_AT_ONCE) as pool:
            for start in range(0, len(wanted), BATCH):
                progress(start, len(wanted))
                list(pool.map(lambda one: adopt_file(*one), wanted[start : start + BATCH]))
        progress(len(wanted), len(wanted))

    def discard(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stage(self, path: Path, digest: str, suffix: str) -> str:
        key = content_key(digest, suffix)
        self._staged[key] = path
        return key

    def _draft(self) -> Path:
        """Return where a file is written before it gets its name: under its name it is complete."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f".{uuid.uuid4().hex}.part"

    def _intact(self) -> dict[str, tuple[Path, str]]:
        """Return staged speech of an earlier attempt by the hash and rate of its samples; remove everything else."""
        if not self.folder.is_dir():
            return {}
        shutil.rmtree(self.documents, ignore_errors=True)
        found = {}
        for entry in list(os.scandir(self.folder)):
            path = Path(entry.path)
            samples, _, digest = path.stem.rpartition("-")
            if path.suffix == SPEECH_SUFFIX and compute_sha256(path) == digest:
                found[samples] = (path, digest)
            else:
                path.unlink(missing_ok=True)
        return found


def copy_documents(documents: Iterable[SubmittedDocument], folder: Path) -> int:
    """Write documents under their paths into a folder, as their team packed them; how many those were."""
    count = 0
    for document in documents:
        target = folder / document.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with default_storage.open(document.key) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
        count += 1
    return count
