"""The whole check of an archive of 3,000 wav files, beside streaming it and decoding each file once.

Run from the root of the repository: ``python -m benchmarks.intake [FILES]``. The archives hold made-up speech of 2 to
6 s at 16 kHz. The yardstick reads the same archive by the same reader and decodes each file by libsndfile, in the same
run. Prints (check) / (stream and decode), which must stay at or below 1.5 for the packed archives: the plan asks for
these. Unpacked ones cost next to nothing to read; their rows tell what hashing and measuring take on a second core.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import soundfile

from evaluation.protocols.recipes import FOLDER
from portal.intake.archives.reading import ArchiveLimits, read_archive
from portal.intake.check import ArchiveCheck
from portal.intake.expectation import ExpectedSubmission, ExpectedUtterance

BUDGET = 1.5
RATE_HZ = 16_000
REPEATS = 3
POOL_S = 120


def main(files: int) -> int:
    """Print the ratios; the exit status is 1 where that of a packed archive is above the budget."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        expected = _pack(place, files)
        worst = 0.0
        for archive in sorted(place.iterdir()):
            (place / "documents").mkdir(exist_ok=True)
            streamed_s = checked_s = np.inf
            for _ in range(REPEATS):  # in turns, so that a busy machine slows both
                streamed_s = min(streamed_s, _seconds(lambda path=archive: _stream_and_decode(path)))
                checked_s = min(checked_s, _seconds(lambda path=archive: _check(path, expected, place / "documents")))
            if archive.name.startswith("packed"):
                worst = max(worst, checked_s / streamed_s)
            print(
                f"{archive.name:12} {archive.stat().st_size / 1e6:6.0f} MB   stream and decode {streamed_s:6.3f} s   "
                f"check {checked_s:6.3f} s   ratio {checked_s / streamed_s:.2f}"
            )
    print(f"{files:,} files, packed; ratio {worst:.2f} (budget {BUDGET:g})")
    return int(worst > BUDGET)


def _pack(folder: Path, files: int) -> ExpectedSubmission:
    """The archives, and what to expect of them; originals are as long, but no file is one."""
    utterances = {}
    zips = [
        zipfile.ZipFile(folder / name, "w", method, compresslevel=1)
        for name, method in (("packed.zip", zipfile.ZIP_DEFLATED), ("stored.zip", zipfile.ZIP_STORED))
    ]
    tars = [tarfile.open(folder / name, mode) for name, mode in (("plain.tar", "w"), ("packed.tgz", "w:gz"))]  # noqa: SIM115
    for name, samples in _speech(files):
        utterances[name] = ExpectedUtterance(name, samples.size, RATE_HZ, "0" * 64)
        file = io.BytesIO()
        soundfile.write(file, samples, RATE_HZ, format="WAV", subtype="PCM_16")
        member = tarfile.TarInfo(f"T1/wav/{name}.wav")
        member.size = len(file.getvalue())
        for packed in zips:
            packed.writestr(member.name, file.getvalue())
        for tar in tars:
            tar.addfile(member, io.BytesIO(file.getvalue()))
    for opened in (*zips, *tars):
        opened.close()
    recipe = (FOLDER / "2022.toml").read_text(encoding="utf-8")
    sets = {"all": tuple(utterances)}
    return ExpectedSubmission("benchmark", recipe, sets, utterances, True, False, False, ArchiveLimits())


def _speech(files: int) -> Iterator[tuple[str, np.ndarray]]:
    """Stretches of noise that swells and fades as syllables do, about as hard to pack as speech."""
    random = np.random.default_rng(0)
    noise = np.convolve(random.normal(size=POOL_S * RATE_HZ), np.hanning(24), "same")
    swell = np.abs(np.interp(np.arange(noise.size), np.arange(0, noise.size, 2000), random.normal(size=960)))
    pool = (noise * swell / np.abs(noise * swell).max() * 30_000).astype(np.int16)
    for number in range(files):
        length = int(random.integers(2 * RATE_HZ, 6 * RATE_HZ))
        start = int(random.integers(0, pool.size - length))
        yield f"{number:05d}", pool[start : start + length]


def _stream_and_decode(archive: Path) -> int:
    samples = 0
    for _, stream in read_archive(archive, name=archive.name, limits=ArchiveLimits(), report=print):
        samples += len(soundfile.read(io.BytesIO(stream.read()), dtype="int16")[0])
    return samples


def _check(archive: Path, expected: ExpectedSubmission, documents: Path) -> None:
    check = ArchiveCheck(archive.name, expected, documents)
    for _ in check.read(archive):
        pass
    report = check.report({})
    assert not report.findings, report.findings[0].problem.sentence()


def _seconds(call) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
