"""The whole check of an archive of 3,000 wav files beside streaming it and decoding each file once."""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile

from benchmarks._measuring import RATE_HZ, Figure, measure_least_seconds, read_speech, report
from common.arrays import Samples
from evaluation.protocols.recipes import FOLDER
from portal.intake.archives.reading import ArchiveLimits, read_archive
from portal.intake.check import ArchiveCheck
from portal.intake.expectation import ExpectedSubmission, ExpectedUtterance

FILES = 3000
SPEECH_S = 600
BUDGET = 1.5


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = folder / "documents"
        documents.mkdir()
        expected, archives = pack(folder)
        figures = []
        for archive in archives:
            streamed_s, checked_s = measure_least_seconds(
                lambda path=archive: stream_and_decode(path),
                lambda path=archive: check(path, expected, documents),
                repeats=3,
            )
            what = f"Check of {FILES:,} wavs, {archive.name} / streaming and decoding"
            figures.append(Figure(what, checked_s / streamed_s, BUDGET))
    return report(*figures)


def pack(folder: Path) -> tuple[ExpectedSubmission, tuple[Path, Path]]:
    """Write the archives; return what to expect of them, with originals as long as the files, and their paths."""
    utterances = {}
    archives = folder / "archive.zip", folder / "archive.tar.gz"
    with (
        zipfile.ZipFile(archives[0], "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        tarfile.open(archives[1], "w:gz", compresslevel=1) as tar,
    ):
        for name, samples in cut_speech():
            utterances[name] = ExpectedUtterance(name, samples.size, RATE_HZ, "0" * 64)
            file = io.BytesIO()
            soundfile.write(file, samples, RATE_HZ, format="WAV", subtype="PCM_16")
            member = tarfile.TarInfo(f"T1/wav/{name}.wav")
            member.size = len(file.getvalue())
            packed.writestr(member.name, file.getvalue())
            tar.addfile(member, io.BytesIO(file.getvalue()))
    recipe = (FOLDER / "2022.toml").read_text(encoding="utf-8")
    sets = {"all": tuple(utterances)}
    return ExpectedSubmission("benchmark", recipe, sets, utterances, True, False, False, ArchiveLimits()), archives


def cut_speech() -> Iterator[tuple[str, Samples]]:
    """Yield names and stretches of 2 to 6 s of speech."""
    speech = np.concatenate(read_speech(SPEECH_S))
    random = np.random.default_rng(0)
    for number in range(FILES):
        length = int(random.integers(2 * RATE_HZ, 6 * RATE_HZ))
        start = int(random.integers(0, speech.size - length))
        yield f"{number:05d}", speech[start : start + length]


def stream_and_decode(archive: Path) -> None:
    for _, stream in read_archive(archive, name=archive.name, limits=ArchiveLimits(), report=print):
        soundfile.read(io.BytesIO(stream.read()), dtype="int16")


def check(archive: Path, expected: ExpectedSubmission, documents: Path) -> None:
    checked = ArchiveCheck(archive.name, expected, documents)
    for _ in checked.read(archive):
        pass
    found = checked.report({})
    assert not found.findings, found.findings[0].sentence()


if __name__ == "__main__":
    sys.exit(main())
