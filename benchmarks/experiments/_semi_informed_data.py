"""Real speech through kNN-WORLD for the experiment: who is a target, who is learned from, who is attacked.

Targets: the speakers of LibriSpeech dev-clean and train-clean-100 and of VCTK with ten utterances and more. Training
sources: those of the pool (one utterance each) and of RAVDESS. Attacked: test-other. Nobody has two parts.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from anonymization.methods.contract import (
    Target,
    TargetPool,
)
from anonymization.methods.voices.targets import (
    SourceUtterance,
    plan_targets,
    target_voice,
)
from benchmarks.experiments.knn_world.method import METHODS, KnnWorld
from common.arrays import Samples

SPEECH = Path("../shared/speech")
RATE_HZ = 16_000
TARGETS = ("librispeech-dev-clean", "librispeech-train-clean-100", "vctk")
SOURCES = ("librispeech-train-clean-100-pool", "ravdess")
ATTACKED = ("librispeech-test-other",)
POOL_S = 15.0


@dataclass(frozen=True)
class Original:
    """A recording and who speaks."""

    name: str
    speaker: str
    gender: str
    corpus: str
    path: Path


@dataclass(frozen=True)
class Conversion:
    """A recording in the voice of a target. draw: which of several; 0 is that for enrolment."""

    original: Original
    target: str
    draw: int
    path: Path


def read_originals() -> list[Original]:
    """Everything that is listed, by name."""
    with (SPEECH / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = [
        Original(row["utterance_id"], row["speaker"], row["gender"].lower(), row["corpus"], SPEECH / row["path"])
        for row in rows
    ]
    return sorted(found, key=lambda each: (each.corpus, each.name))


def of(originals: Sequence[Original], corpora: tuple[str, ...]) -> list[Original]:
    """Those of some corpora."""
    return [each for each in originals if each.corpus in corpora]


def make_pool(originals: Sequence[Original]) -> TargetPool:
    """The targets."""
    chosen = of(originals, TARGETS)
    return TargetPool(
        Target(
            name,
            next(each.gender for each in chosen if each.speaker == name),
            tuple(partial(read, each.path) for each in chosen if each.speaker == name),
        )
        for name in sorted({each.speaker for each in chosen})
    )


def read(path: Path) -> tuple[Samples, int]:
    """Samples, int16, shape (n,), and rate in hertz."""
    import soundfile

    samples, rate_hz = soundfile.read(path, dtype="int16")
    return samples, rate_hz


def plan(
    originals: Sequence[Original], pool: TargetPool, selection: str, role: str, draws: Sequence[int], folder: Path
) -> list[Conversion]:
    """Each recording so many times with targets of a selection, at utterance level; each draw has a seed of its own."""
    found = []
    for draw in draws:
        sources = [
            SourceUtterance(each.name, each.speaker, each.gender, role, "experiment", "utterance")  # type: ignore[arg-type]
            for each in originals
        ]
        assigned = plan_targets(sources, pool.targets, selection, seed=draw)
        for each, row in zip(originals, assigned, strict=True):
            # One conversion serves all selections and draws that ask for it.
            path = folder / each.corpus / each.name / f"{row.voice.target}.flac"
            found.append(Conversion(each, row.voice.target, draw, path))
    return found


def convert_all(conversions: Sequence[Conversion], jobs: int) -> tuple[float, float]:
    """Make what is not there yet; seconds of speech made, and seconds it took."""
    wanted = {each.path: each for each in conversions if not each.path.exists()}
    by_original: dict[str, list[Conversion]] = {}
    for each in wanted.values():
        by_original.setdefault(each.original.name, []).append(each)
    began = time.monotonic()
    with ProcessPoolExecutor(jobs) as workers:
        speech_s = sum(workers.map(_convert, list(by_original.values()), chunksize=4))
    return speech_s, time.monotonic() - began


_prepared: dict[str, KnnWorld] = {}


def _convert(conversions: Sequence[Conversion]) -> float:
    """All conversions of one recording; the seconds of speech that were made."""
    import soundfile

    if not _prepared:
        _prepared["method"] = METHODS[0].prepare(make_pool(read_originals()))
    samples, rate_hz = read(conversions[0].original.path)
    for each in conversions:
        voice = target_voice(each.target)
        output = _prepared["method"].anonymize(samples, rate_hz, voice, options={"pool_s": POOL_S})
        each.path.parent.mkdir(parents=True, exist_ok=True)
        part = each.path.with_suffix(".part")
        soundfile.write(part, output, rate_hz, format="FLAC", subtype="PCM_16")
        part.replace(each.path)
    return len(conversions) * samples.size / rate_hz


def splits(originals: Sequence[Original], count: int) -> Iterator[tuple[list[str], list[str]]]:
    """Names for enrolment and for trials: of each speaker half and half, drawn again each time."""
    speakers = sorted({each.speaker for each in originals})
    for number in range(count):
        random = np.random.default_rng([20, number])
        enrolled: list[str] = []
        tried: list[str] = []
        for speaker in speakers:
            names = random.permutation(sorted(each.name for each in originals if each.speaker == speaker)).tolist()
            enrolled += names[: len(names) // 2]
            tried += names[len(names) // 2 :]
        yield enrolled, tried
