"""Speaker vectors in files: an npz with `ids` and `vectors`, as other tools write them too.

Conventions: vectors are float32, shape (utterances, d); an id is the name of an utterance, or ``<data set>/<name>``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.attackers.contract import SpeakerEncoder
from evaluation.formats.audio import AudioError, read_pcm16
from evaluation.formats.problems import Problem
from evaluation.metrics.errors import MetricInputError

KEPT_EVERY = 50

Vector = NDArray[np.float32]


def read_vectors(path: Path) -> dict[str, Vector]:
    """The vectors of a file by name of the utterance.

    Raises:
        MetricInputError: no such file, or not of this form; says what was found.
    """
    try:
        with np.load(path, allow_pickle=False) as packed:
            ids, vectors = packed["ids"], packed["vectors"]
    except (OSError, ValueError, KeyError) as error:
        raise MetricInputError(f"{path}: expected an npz with ids and vectors, found: {error}.") from error
    if ids.ndim != 1 or vectors.ndim != 2 or len(ids) != len(vectors) or vectors.dtype.kind != "f":
        raise MetricInputError(
            f"{path}: expected an id for each of some vectors, found shapes {ids.shape} and {vectors.shape}."
        )
    if not np.isfinite(vectors).all():
        raise MetricInputError(f"{path}: expected finite vectors, found some that are not.")
    names = [str(one).rpartition("/")[2] for one in ids]
    return dict(zip(names, vectors.astype(np.float32), strict=True))


def write_vectors(path: Path, vectors: Mapping[str, Vector]) -> None:
    """Save vectors; a reader meets the file before or the file after, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    with draft.open("wb") as file:
        np.savez(file, allow_pickle=False, ids=np.array(list(vectors)), vectors=np.stack(list(vectors.values())))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def extract_vectors(
    audio: Mapping[str, Path], utterances: Iterable[str], load: Callable[[], SpeakerEncoder], kept: Path
) -> tuple[dict[str, Vector], list[Problem]]:
    """The vectors of some utterances, those that `kept` has taken from there, and what could not be used.

    Args:
        audio: file of each utterance; one without a file is a problem.
        utterances: in the order of the work; an iterator over them may show how far it is.
        load: makes the encoder; called only where something is to be done.
        kept: is written again every `KEPT_EVERY` utterances, so that an interrupted run goes on from there.
    """
    found = read_vectors(kept) if kept.is_file() else {}
    problems: list[Problem] = []
    encoder: SpeakerEncoder | None = None
    new = 0
    for name in utterances:
        if name in found:
            continue
        if name not in audio:
            problems.append(_unusable(name, "a file of this utterance", "none"))
            continue
        encoder = encoder or load()
        try:
            samples, rate_hz = read_pcm16(audio[name])
            if not samples.any():
                raise MetricInputError("silence")
            found[name] = encoder.embed([samples], rate_hz)[0]
        except (AudioError, MetricInputError, OSError) as error:
            problems.append(_unusable(name, "speech that the encoder can use", str(error)))
            continue
        new += 1
        if new % KEPT_EVERY == 0:
            write_vectors(kept, found)
    if new:
        write_vectors(kept, found)
    return found, problems


def _unusable(name: str, expected: str, found: str) -> Problem:
    remedy = "Mend it; the trials that need it have no score."
    return Problem("unusable-recording", name, expected, found, remedy)
