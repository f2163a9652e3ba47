"""Speaker vectors in files: an npz with `ids` and `vectors`, as other tools write them too.

What is kept between runs says also which recording each vector is of (`recordings`, SHA-256), so that a vector is
never taken for that of another recording of the same name. Conventions: vectors are float32, shape (utterances, d); an
id is the name of an utterance, or ``<data set>/<name>``.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.file_names import plain_name
from common.hashes import compute_sha256
from common.problems import Problem
from speech.audio.files import AudioError, read_pcm16
from speech.encoders.contract import SpeakerEncoder

KEPT_EVERY = 50

Vector = NDArray[np.float32]


def read_vectors(path: Path) -> dict[str, Vector]:
    """Return the vectors of a file by name of the utterance.

    Raises:
        InputError: no such file, not of this form, or two vectors for one utterance; says what was found.
    """
    return _read(path)[0]


def write_vectors(path: Path, vectors: Mapping[str, Vector], recordings: Mapping[str, str] | None = None) -> None:
    """Save vectors; a reader meets the file before or the file after, never half of one.

    Args:
        recordings: SHA-256 of the recording of each vector, where it is known.

    Raises:
        InputError: the file cannot be written.
    """
    draft = path.with_name(f".{path.name}.part")
    known = recordings or {}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            np.savez(
                file,
                allow_pickle=False,
                ids=np.array(list(vectors)),
                vectors=np.stack(list(vectors.values())),
                recordings=np.array([known.get(name, "") for name in vectors]),
            )
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise InputError(
            f"{path}: expected a file that can be written, found “{error.strerror}”. What was written before is kept: "
            "make room and repeat the command."
        ) from error


def extract_vectors(
    audio: Mapping[str, Path], utterances: Iterable[str], load: Callable[[], SpeakerEncoder], kept: Path
) -> tuple[dict[str, Vector], list[Problem]]:
    """Return the vectors of some utterances, those of the same recordings in `kept` taken from there, and what went
    wrong.

    Args:
        audio: file of each utterance; one without a file is a problem.
        utterances: in the order of the work; an iterator over them may show how far it is.
        load: makes the encoder; called only where something is to be done.
        kept: is written again every `KEPT_EVERY` utterances and at the end, however that comes, so that an interrupted
            run goes on from there.

    Raises:
        InputError: `kept` is damaged or cannot be written.
    """
    work = _Extraction(load, kept)
    try:
        for name in utterances:
            work.take(name, audio.get(name))
    finally:
        work.keep()
    return work.vectors, work.problems


class _Extraction:
    """Vectors under way; what earlier runs kept and nobody asks for stays in the file."""

    def __init__(self, load: Callable[[], SpeakerEncoder], kept: Path) -> None:
        self._load, self._kept = load, kept
        self._earlier, self._recordings = _read(kept) if kept.is_file() else ({}, {})
        self._encoder: SpeakerEncoder | None = None
        self._unwritten = 0
        self.vectors: dict[str, Vector] = {}
        self.problems: list[Problem] = []

    def take(self, name: str, path: Path | None) -> None:
        """Have the vector of one utterance; what stands in the way goes to `problems`."""
        if path is None:
            self.problems.append(_unusable(name, "a file of this utterance", "none"))
            return
        try:
            digest = compute_sha256(path)
            heard = None if self._recordings.get(name) == digest else read_pcm16(path)
            encoder = self._ready() if heard and heard[0].any() else None
            vector = _embed(encoder, *heard) if heard else self._earlier[name]
        except (AudioError, OSError) as error:
            self.problems.append(_unusable(name, "speech that the encoder can use", str(error)))
            return
        if isinstance(vector, str):
            self.problems.append(_unusable(name, "speech that the encoder can use", vector))
            return
        if heard:
            self._earlier[name], self._recordings[name] = vector, digest
            self._unwritten += 1
        self.vectors[name] = vector
        if self._unwritten >= KEPT_EVERY:
            self.keep()

    def keep(self) -> None:
        """Write what is new."""
        if self._unwritten:
            write_vectors(self._kept, self._earlier, self._recordings)
            self._unwritten = 0

    def _ready(self) -> SpeakerEncoder:
        self._encoder = self._encoder or self._load()
        return self._encoder


def _embed(encoder: SpeakerEncoder | None, samples: NDArray[np.int16], rate_hz: int) -> Vector | str:
    """Return the vector of one recording, or why it has none; no encoder is needed for silence."""
    if encoder is None:
        return "silence"
    try:
        vector: Vector = encoder.embed([samples], rate_hz)[0]
    except InputError as error:
        return str(error)
    return vector if np.isfinite(vector).all() else "a vector that is not finite"


def _read(path: Path) -> tuple[dict[str, Vector], dict[str, str]]:
    """Return vectors by utterance, and the SHA-256 of their recordings where the file says them."""
    try:
        with np.load(path, allow_pickle=False) as packed:
            ids, vectors = packed["ids"], packed["vectors"]
            recordings = packed["recordings"] if "recordings" in packed else np.full(ids.shape, "")
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"{path}: expected an npz with ids and vectors, found another or a damaged file ({error}). Name another "
            "file, or remove this one."
        ) from error
    if ids.ndim != 1 or vectors.ndim != 2 or len(ids) != len(vectors) or vectors.dtype.kind != "f":
        raise InputError(
            f"{path}: expected an id for each of some vectors, found shapes {ids.shape} and {vectors.shape}."
        )
    if recordings.shape != ids.shape:
        raise InputError(f"{path}: expected a recording for each of {len(ids)} ids, found {recordings.shape}.")
    if not np.isfinite(vectors).all():
        raise InputError(f"{path}: expected finite vectors, found some that are not.")
    names = [_text(one).rpartition("/")[2] for one in ids.tolist()]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{path}: expected one vector of each utterance, found more of {len(twice)}, such as {twice[0]}. Keep one."
        )
    known = {name: _text(one) for name, one in zip(names, recordings.tolist(), strict=True)}
    return dict(zip(names, vectors.astype(np.float32), strict=True)), known


def _text(value: object) -> str:
    return plain_name(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def _unusable(name: str, expected: str, found: str) -> Problem:
    remedy = "Fix it; the trials that need it have no score."
    return Problem("unusable-recording", name, expected, found, remedy)
