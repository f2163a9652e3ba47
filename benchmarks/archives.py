"""Reading every file of an archive of 3,000 wavs as intake does, beside the standard library streaming the same one.

Run from the root of the repository: ``python -m benchmarks.archives [WAVS]``. The wavs are synthetic: two seconds of a
voice-like buzz with noise, 16 kHz, 16 bits, which pack about as well as speech. The yardstick is ``zipfile`` or
``tarfile`` (as a stream) over the same archive in the same run, with none of the checks. Prints (ours) / (yardstick)
for each format; a packed one must stay at or below 1.25. A bare tar, where the yardstick does nothing but copy, may
take three times as long: that is 0.1 ms for all checks of a file.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
import wave
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from common.problems import Problem
from portal.intake.archives.reading import ArchiveLimits, read_archive

REPEATS = 3
READ_BYTES = 2**16
RATE_HZ, SECONDS = 16000, 2
BUDGETS = {"zip": 1.25, "tar": 3.0, "tar.gz": 1.25}


def main(count: int) -> int:
    """Print the ratios; the exit status is 1 where one is above the budget."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for form, budget in BUDGETS.items():
            path = write_archive(Path(folder), form, count)
            plain = plain_zip if form == "zip" else plain_tar
            best = {"ours": np.inf, "plain": np.inf}
            for _ in range(REPEATS):  # in turns, so that a busy machine slows both
                for name, read in (("plain", plain), ("ours", ours)):
                    best[name] = min(best[name], seconds(read, path, count))
            ratio = best["ours"] / best["plain"]
            missed += ratio > budget
            times = f"ours {best['ours']:.3f} s   plain {best['plain']:.3f} s"
            print(f"{form:8} {path.stat().st_size / 2**20:6.0f} MiB   {times}   ratio {ratio:.2f} (budget {budget:g})")
            path.unlink()
    return int(missed > 0)


def ours(path: Path) -> int:
    """Every file by intake; how many bytes there were."""
    problems: list[Problem] = []
    archive = read_archive(path, name=path.name, limits=ArchiveLimits(), report=problems.append)
    size = sum(drain(stream.read) for _, stream in archive)
    assert not problems
    return size


def plain_zip(path: Path) -> int:
    """Every file by the standard library; how many bytes there were."""
    size = 0
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            with archive.open(info) as stream:
                size += drain(stream.read)
    return size


def plain_tar(path: Path) -> int:
    """Every file by the standard library; how many bytes there were."""
    size = 0
    with tarfile.open(path, "r|*") as archive:
        for info in archive:
            stream = archive.extractfile(info)
            assert stream is not None
            size += drain(stream.read)
    return size


def drain(read: Callable[[int], bytes]) -> int:
    """Read to the end; how many bytes there were."""
    size = 0
    while data := read(READ_BYTES):
        size += len(data)
    return size


def seconds(read: Callable[[Path], int], path: Path, count: int) -> float:
    """Wall-clock time of reading an archive, every byte of which must come."""
    start = perf_counter()
    size = read(path)
    elapsed = perf_counter() - start
    assert size == count * (44 + 2 * RATE_HZ * SECONDS)
    return elapsed


def write_archive(folder: Path, form: str, count: int) -> Path:
    """An archive of so many wavs."""
    path = folder / f"team.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, data in wavs(count):
                archive.writestr(name, data)
        return path
    level = {"tar.gz": {"compresslevel": 1}}.get(form, {})
    with tarfile.open(path, f"w:{form.removeprefix('tar').lstrip('.')}", **level) as archive:  # type: ignore[call-overload]
        for name, data in wavs(count):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def wavs(count: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents, some hundred of them different."""
    random = np.random.default_rng(0)
    time_s = np.arange(RATE_HZ * SECONDS) / RATE_HZ
    made = []
    for _ in range(min(count, 100)):
        buzz = sum(np.sin(2 * np.pi * f0 * time_s) / n for n in range(1, 20) for f0 in [n * random.uniform(90, 250)])
        loudness = np.abs(np.sin(2 * np.pi * 2 * time_s)) ** 3
        samples = 4000 * loudness * (buzz + random.normal(0, 0.1, time_s.size))
        made.append(to_wav(samples.astype("<i2").tobytes()))
    for number in range(count):
        yield f"team/data/libri_test_enrolls_anon/wav/{number // 50:04d}/{number:06d}.wav", made[number % len(made)]


def to_wav(samples: bytes) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE_HZ)
        out.writeframes(samples)
    return file.getvalue()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
