"""What an output folder says of its run, so that it can be continued and by nothing else than the same run.

``anonymization.json`` is the run (written before the first utterance), ``anonymization.jsonl`` has a line for each
finished utterance (appended as they finish, in order at the end), ``report.json`` the whole outcome. They hold the
seed and the voices: anyone who has them can tell which voice belongs to whom.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from anonymization.methods.contract import PseudoSpeaker
from common.atomic_write import write_atomically
from common.errors import CommandError
from common.hashes import compute_sha256
from common.problems import Problem

RECORD, JOURNAL, REPORT = "anonymization.json", "anonymization.jsonl", "report.json"
TARGETS = "targets.csv"
LOCK = ".anonymization.lock"
RESERVED = (RECORD, JOURNAL, REPORT, TARGETS, LOCK)
# Workers share a lock on a byte of the lock file that the run itself does not hold.
_WORKERS_BYTE = 1 << 30
_WAIT_FOR_WORKERS_S = 10.0
# How a disk, a quota or a limit on the size of files says that nothing more goes in.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# What records say of methods without targets; those of before there were any do not say it.
_NO_TARGETS = dict.fromkeys(("targets", "target_selection", "genders"), "")
PART = ".part"  # how the name of an unfinished file ends


@dataclass(frozen=True, slots=True)
class OutputRow:
    """A finished utterance: what it was made of, what was made, what was changed and found."""

    output: str
    input_sha256: str
    voice: PseudoSpeaker
    samples: int
    rate_hz: int
    bytes: int
    sha256: str
    remarks: tuple[str, ...]
    problems: tuple[Problem, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"voice": self.voice.as_dict()})

    def has_voice(self, voice: PseudoSpeaker) -> bool:
        """Return whether it was made with this voice."""
        mine = self.voice.key, dict(self.voice.parameters), dict(self.voice.mixture), self.voice.vector
        return mine == (voice.key, dict(voice.parameters), dict(voice.mixture), voice.vector)

    def still_holds(self, folder: Path, voice: PseudoSpeaker, input_sha256: str) -> bool:
        """Return whether it need not be made again: the same input and voice, and its output is there as it was
        written."""
        path = folder / self.output
        return (
            self.has_voice(voice)
            and self.input_sha256 == input_sha256
            and path.is_file()
            and path.stat().st_size == self.bytes
            and compute_sha256(path) == self.sha256
        )

    @classmethod
    def from_json(cls, line: str) -> OutputRow:
        """Raises ValueError, KeyError or TypeError for a line that is not whole."""
        content: dict[str, Any] = json.loads(line)
        content["voice"] = PseudoSpeaker(**content["voice"])
        content["remarks"] = tuple(content["remarks"])
        content["problems"] = tuple(Problem(**problem) for problem in content["problems"])
        return cls(**content)


def no_space(folder: Path, error: OSError) -> CommandError:
    """Return the error of a full disk: nothing more can be written, and what was is whole."""
    return CommandError(
        f"{folder}: expected space for more files, found “{error.strerror}”. "
        f"What is finished is kept: make space and repeat the command."
    )


class OutputFolder:
    """The folder of a run, held by one process at a time.

    Raises:
        CommandError: it cannot be written, holds other files or another run, or another process works in it.
    """

    def __init__(self, folder: Path, record: Mapping[str, object]) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._hold()
            self.rows = self._continue(record)
            self._journal: IO[str] = (folder / JOURNAL).open("a", encoding="utf-8")
        except OSError as error:
            raise CommandError(
                f"{folder}: expected a folder that can be written, found “{error.strerror}”. Name another one."
            ) from error

    def add(self, row: OutputRow) -> None:
        """Keep a finished utterance; a process that is killed afterwards does not lose it."""
        self.rows[row.output] = row
        self._journal.write(f"{row.to_json()}\n")
        self._journal.flush()

    def forget(self, output: str) -> None:
        """An earlier version does not count any more, and is not left where it would be taken for one."""
        self.rows.pop(output, None)
        path = self.folder / output
        if os.path.isfile(path):  # noqa: PTH113 (false for a name that no file can have; Path.is_file raises)
            path.unlink()

    def close(self) -> None:
        with suppress(OSError):  # what a full disk did not take was told when it was written
            self._journal.close()
        self._lock.close()

    def finish(self, order: Iterable[str], report: Mapping[str, Any]) -> None:
        """Write the rows in order, and the report."""
        known = {output: self.rows[output] for output in order if output in self.rows}
        known |= self.rows
        write_text(self.folder / JOURNAL, "".join(f"{row.to_json()}\n" for row in known.values()))
        write_text(self.folder / REPORT, json.dumps(report, indent=2) + "\n")

    def _hold(self) -> IO[str]:
        held = {path.name for path in self.folder.iterdir()}
        if held - {LOCK} and RECORD not in held:
            raise CommandError(
                f"{self.folder}: expected an empty folder or one of an earlier call, found other files, such as "
                f"{min(held)}. Name a new folder by --out."
            )
        lock = (self.folder / LOCK).open("w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _wait_for_workers(lock)
        except OSError as error:
            lock.close()
            raise CommandError(
                f"{self.folder}: expected to be the only writer, found another process. Wait until it has ended."
            ) from error
        return lock

    def _continue(self, record: Mapping[str, object]) -> dict[str, OutputRow]:
        path, wanted = self.folder / RECORD, json.loads(json.dumps({**record, **_NO_TARGETS, **record}))
        rows = _read_journal(self.folder / JOURNAL)
        if rows and path.exists():  # a run in which nothing was finished binds nobody
            earlier = _read_record(path)
            for name, value in wanted.items():
                if earlier.get(name, _NO_TARGETS.get(name)) != value:
                    if name in ("version", "description"):  # the method before them is the same
                        raise CommandError(
                            f"{self.folder}: {wanted['method']} has changed since this folder was begun "
                            f"(another {name}, or another command or script of it). Name another folder by --out, or "
                            "delete this one and run again."
                        )
                    raise CommandError(
                        f"{self.folder}: expected an earlier call of the same run, found another: {name} is "
                        f"{_shown(earlier.get(name))} there and {_shown(value)} now. "
                        f"Name a new folder by --out, or repeat that run."
                    )
        else:
            earlier = {}
        codes = earlier.get("code", [])
        wanted["code"] = codes if code_version() in codes else [*codes, code_version()]
        write_text(path, json.dumps(wanted, indent=2) + "\n")
        return rows


def _wait_for_workers(lock: IO[str]) -> None:
    """Workers of a run that was killed end soon after it; until then they may still write.

    Raises:
        OSError: they are still there.
    """
    last = time.monotonic() + _WAIT_FOR_WORKERS_S
    while True:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _WORKERS_BYTE)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):  # a file system without such locks
                return
            if time.monotonic() >= last:
                raise
            time.sleep(0.05)
        else:
            fcntl.lockf(lock, fcntl.LOCK_UN, 1, _WORKERS_BYTE)
            return


def hold_as_worker(folder: Path) -> IO[str] | None:
    """Say that a worker writes into the output folder, until it ends; None on a file system without such locks."""
    try:
        lock = (folder / LOCK).open(encoding="utf-8")
    except OSError:
        return None
    with suppress(OSError):
        fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, _WORKERS_BYTE)
    return lock


def _read_record(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise CommandError(f"{path}: expected the record of a run, found other content. Name a new folder by --out.")
    return content


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read_journal(path: Path) -> dict[str, OutputRow]:
    """Return the finished utterances; a line that a killed process did not finish is as good as none."""
    rows: dict[str, OutputRow] = {}
    if path.exists():
        text = path.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            with suppress(ValueError, KeyError, TypeError):
                row = OutputRow.from_json(line)
                rows[row.output] = row
        if text and not text.endswith("\n"):
            write_text(path, "".join(f"{row.to_json()}\n" for row in rows.values()))
    return rows


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old content or the new one, never a part.

    Bytes that are no UTF-8 come out as they were read by ``errors="surrogateescape"``.
    """
    write_atomically(path, text.encode("utf-8", "surrogateescape"))


@cache
def code_version() -> str:
    """Return the first half of the SHA-256 of the methods' source: which code made a file, with or without a
    repository."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parents[2]
    paths = [*root.glob("anonymization/methods/**/*.*"), *root.glob("speech/**/*.py"), root / "common/numba_loops.py"]
    for path in sorted(path for path in paths if path.suffix in (".py", ".toml")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:32]
