"""What an output folder says of its run, so that it can be continued and by nothing else than the same run.

``anonymization.json`` is the run (written before the first utterance), ``anonymization.jsonl`` has a line for each
finished utterance (appended as they finish, in order at the end), ``report.json`` the whole outcome. They hold the
seed and the voices: whoever has them can tell which voice belongs to whom.
"""

from __future__ import annotations

import errno
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

from anonymization.methods.contract import OptionValue, PseudoSpeaker
from evaluation.commands.terminal import CommandError
from evaluation.formats.problems import Problem, Severity

RECORD, JOURNAL, REPORT = "anonymization.json", "anonymization.jsonl", "report.json"
TARGETS = "targets.csv"
LOCK = ".anonymization.lock"
RESERVED = (RECORD, JOURNAL, REPORT, TARGETS, LOCK)
# Workers share a lock on a byte of the lock file that the run itself does not hold.
_WORKERS_BYTE = 1 << 30
_WAIT_FOR_WORKERS_S = 10.0
# How a disk, a quota or a limit on the size of files says that nothing more goes in.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# What records of before there were targets do not say.
_ADDED = ("targets", "target_selection", "genders")
PART = ".part"  # how the name of an unfinished file ends


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What decides the output of a run.

    voices: ``planned`` from the seed, or the SHA-256 of the file that they are from. description: SHA-256 of the file
    that describes an external command; empty for others. role, split, level, speaker_from: as said, None where they
    were inferred. targets: SHA-256 of names, genders and recordings of the targets; genders: that of a file that was
    named; both, and target_selection, empty for methods without targets.
    """

    method: str
    version: str
    description: str
    options: Mapping[str, OptionValue]
    seed: int | None
    voices: str
    source: str
    container: str
    suffix: str
    is_strict: bool
    role: str | None
    split: str | None
    level: str | None
    speaker_from: str | None
    targets: str = ""
    target_selection: str = ""
    genders: str = ""


@dataclass(frozen=True, slots=True)
class Row:
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
        content = asdict(self)
        content["voice"] = {"key": self.voice.key, "parameters": dict(self.voice.parameters)}
        if self.voice.target:
            content["voice"]["target"] = self.voice.target
        return json.dumps(content)

    @classmethod
    def from_json(cls, line: str) -> Row:
        """Raises ValueError, KeyError or TypeError for a line that is not whole."""
        content: dict[str, Any] = json.loads(line)
        voice = content["voice"]
        content["voice"] = PseudoSpeaker(voice["key"], voice["parameters"], voice.get("target", ""))
        content["remarks"] = tuple(content["remarks"])
        content["problems"] = tuple(
            Problem(**{**problem, "severity": Severity(problem["severity"])}) for problem in content["problems"]
        )
        return cls(**content)


class NoSpaceError(CommandError):
    """The disk is full: nothing more can be written, and what was is whole."""

    @classmethod
    def of(cls, folder: Path, error: OSError) -> NoSpaceError:
        return cls(
            f"{folder}: expected space for more files, found “{error.strerror}”. "
            f"What is finished is kept: make space and repeat the command."
        )


class OutputFolder:
    """The folder of a run, held by one process at a time.

    Raises:
        CommandError: it cannot be written, holds other files or another run, or another process works in it.
    """

    def __init__(self, folder: Path, record: RunRecord) -> None:
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

    def add(self, row: Row) -> None:
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
        write_whole(self.folder / JOURNAL, "".join(f"{row.to_json()}\n" for row in known.values()))
        write_whole(self.folder / REPORT, json.dumps(report, indent=2) + "\n")

    def _hold(self) -> IO[str]:
        import fcntl

        held = {path.name for path in self.folder.iterdir()}
        if held - {LOCK} and RECORD not in held:
            raise CommandError(
                f"{self.folder}: expected an empty folder or one of an earlier call, found other files, such as "
                f"{min(held)}. Name a new folder."
            )
        lock = (self.folder / LOCK).open("w", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _wait_for_workers(lock)
        except OSError as error:
            lock.close()
            raise CommandError(
                f"{self.folder}: expected to be alone, found another process that anonymises into it. Let it end first."
            ) from error
        return lock

    def _continue(self, record: RunRecord) -> dict[str, Row]:
        path, wanted = self.folder / RECORD, json.loads(json.dumps(asdict(record)))
        if path.exists():
            earlier = _read_record(path)
            for name, value in wanted.items():
                if earlier.get(name, "" if name in _ADDED else None) != value:
                    raise CommandError(
                        f"{self.folder}: expected an earlier call of the same run, found another: {name} is "
                        f"{_shown(earlier.get(name))} there and {_shown(value)} now. "
                        f"Name a new folder, or repeat that run."
                    )
        else:
            earlier = {}
        codes = earlier.get("code", [])
        wanted["code"] = codes if code_version() in codes else [*codes, code_version()]
        write_whole(path, json.dumps(wanted, indent=2) + "\n")
        return _read_journal(self.folder / JOURNAL)


def _wait_for_workers(lock: IO[str]) -> None:
    """Workers of a run that was killed end soon after it; until then they may still write.

    Raises:
        OSError: they are still there.
    """
    import fcntl

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
    import fcntl

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
        raise CommandError(f"{path}: expected the record of a run, found other content. Name a new folder.")
    return content


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read_journal(path: Path) -> dict[str, Row]:
    """The finished utterances; a line that a killed process did not finish is as good as none."""
    rows: dict[str, Row] = {}
    if path.exists():
        text = path.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            with suppress(ValueError, KeyError, TypeError):
                row = Row.from_json(line)
                rows[row.output] = row
        if text and not text.endswith("\n"):
            write_whole(path, "".join(f"{row.to_json()}\n" for row in rows.values()))
    return rows


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old content or the new one, never a part.

    Bytes that are no UTF-8 come out as they were read by ``errors="surrogateescape"``.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        part.write_text(text, encoding="utf-8", errors="surrogateescape", newline="\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def code_version() -> str:
    """The first half of the SHA-256 of the methods' source: which code made a file, with or without a repository."""
    digest = hashlib.sha256()
    for path in sorted((Path(__file__).resolve().parents[1] / "methods").glob("*.py")):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:32]
