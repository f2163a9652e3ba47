"""Reads archives in a process of its own for each, and measures what that costs.

``python -m tests.portal.hostile.reading`` answers lines of JSON on the standard input by lines on the standard output.
Every archive is read in a child made by `fork`, whose peak of memory begins again; the parent has everything imported.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

from common.problems import ProblemFound
from portal.intake.archives.reading import ArchiveLimits, read_archive


@dataclass(frozen=True)
class Reading:
    """What came of one archive.

    Attributes:
        refused: the code and the sentence, both empty where it was read to its end.
        reported: code and sentence of each problem of a single file.
        handed_out: paths.
        seconds: of the processor, so that other work on the machine does not count.
        peak_bytes: of memory, above what the process had before.
    """

    refused: tuple[str, str]
    reported: list[tuple[str, str]]
    handed_out: list[str]
    seconds: float
    peak_bytes: int


def read(path: Path, limits: ArchiveLimits) -> Reading:
    """Read an archive to its end, as intake does, and measure."""
    before = _peak_bytes()
    begin = process_time()
    refused, reported, handed_out = ("", ""), [], []
    try:
        for member, stream in read_archive(path, name="team.zip", limits=limits, report=reported.append):
            handed_out.append(member.path)
            while stream.read(2**16):
                pass
    except ProblemFound as error:
        refused = (error.problem.code, error.problem.sentence())
    elapsed = process_time() - begin
    rows = [(problem.code, problem.sentence()) for problem in reported]
    return Reading(refused, rows[:1000], handed_out[:1000], elapsed, _peak_bytes() - before)


class ReadingProcess:
    """The other end of the process that reads."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.portal.hostile.reading", str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, path: Path, limits: ArchiveLimits) -> Reading:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"path": str(path), "limits": asdict(limits)}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        answer["refused"] = tuple(answer["refused"])
        answer["reported"] = [tuple(row) for row in answer["reported"]]
        return Reading(**answer)

    def close(self) -> None:
        self._process.communicate()


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(folder: str) -> None:
    """Answer until the standard input ends; the children work in `folder`, where nothing may remain."""
    os.chdir(folder)
    for line in sys.stdin:
        question = json.loads(line)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            reading = read(Path(question["path"]), ArchiveLimits(**question["limits"]))
            sys.stdout.write(json.dumps(asdict(reading)) + "\n")
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1])
