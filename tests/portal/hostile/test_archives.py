"""Each hostile archive gets its own code in bounded time and memory and leaves nothing behind."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pytest

from tests.portal.hostile.corpus import ARCHIVES, zeros_deflated
from tests.portal.hostile.reading import ReadingProcess

MOST_BYTES = 50 * 2**20
YARDSTICK_BYTES = 256 * 2**20


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("working")


@pytest.fixture(scope="module")
def process(working_folder: Path) -> Iterator[ReadingProcess]:
    process = ReadingProcess(working_folder)
    yield process
    process.close()


LARGEST = "tar_of_a_million_empty_folders"  # very many empty files are tried in every run


@pytest.fixture(scope="module")
def yardstick_s() -> float:
    """Seconds of the processor that inflating 256 MiB of zeros takes, on a machine that may do other work later."""
    packed = zeros_deflated(YARDSTICK_BYTES)
    begin = process_time()
    unpacker = zlib.decompressobj(-15)
    while data := unpacker.decompress(packed, 2**16):
        packed = unpacker.unconsumed_tail
        assert data
    return process_time() - begin


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == LARGEST else []) for name in ARCHIVES]
)
def test_hostile_archive_is_refused_or_reported_in_bounds(
    name: str, process: ReadingProcess, working_folder: Path, yardstick_s: float, tmp_path: Path
) -> None:
    hostile, path = ARCHIVES[name], tmp_path / "archive"
    hostile.write(path)
    reading = process.read(path, hostile.limits)
    if hostile.refused:
        assert reading.refused[0] == hostile.code
        sentence = reading.refused[1]
    else:
        assert reading.refused == ("", "")
        assert [code for code, _ in reading.reported] == [hostile.code]
        sentence = reading.reported[0][1]
    assert ": expected " in sentence
    assert sentence.isprintable()
    assert sentence.endswith(".")
    assert len(sentence) < 500
    if hostile.handed_out is not None:
        assert tuple(reading.handed_out) == hostile.handed_out
    assert reading.peak_bytes < MOST_BYTES
    assert reading.seconds < 0.5 + 64 * yardstick_s
    assert list(tmp_path.iterdir()) == [path]
    assert list(working_folder.iterdir()) == []
    path.unlink()
