"""The folder of backups: every content once, named by its SHA-256, and for each backup which files it had.

``content/ab/<sha256>`` holds the bytes, ``backups/<time>/`` database, list of files and summary. The summary
is written last: a backup without one was interrupted and is not listed, but the next one does not copy again what it
had copied. The folder holds speech and names, so that its owner alone may read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from common.atomic_write import write_atomically
from common.errors import CommandError

CHUNK_BYTES = 1 << 20
LOST = "lost+found"  # at the root of a disk
FILES, DATABASE, SUMMARY, SECRET = "files.jsonl", "database.jsonl.gz", "summary.json", "secret_key"
Read = Callable[[int], None]


@dataclass(frozen=True)
class Stored:
    """A file of a backup.

    Attributes:
        path: in the portal's data folder, such as ``files/content/ab/….flac``.
        changed_ns: when it was last changed, ns since 1970: with the same size and time it is not read again.
    """

    path: str
    sha256: str
    size: int
    changed_ns: int


def read_list(file: Path, *, remedy: str) -> Iterator[Stored]:
    """The files of a list.

    Raises:
        CommandError: it is damaged; `remedy` says what to do.
    """
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield Stored(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise CommandError(
                    f"{file}, line {number}: expected a stored file, found “{line[:60].strip()}”. {remedy}"
                ) from error


def write_list(file: Path, files: Iterable[Stored]) -> None:
    lines = (json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in files)
    write_atomically(file, "".join(lines).encode())


class Backup:
    """One backup in a folder of backups."""

    def __init__(self, folder: BackupFolder, name: str) -> None:
        self.folder, self.name = folder, name
        self.place = folder.backups / name

    @property
    def summary(self) -> dict[str, Any]:
        """Time, version, migrations, rows and files.

        Raises:
            CommandError: it cannot be read.
        """
        file = self.place / SUMMARY
        try:
            found: dict[str, Any] = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise CommandError(
                f"{file}: expected the summary of a backup, found “{error}”. Restore another one."
            ) from error
        return found

    def list_files(self) -> Iterator[Stored]:
        """The files of this backup.

        Raises:
            CommandError: the list is damaged.
        """
        return read_list(self.place / FILES, remedy="Restore another backup.")

    def write_files(self, files: Iterable[Stored]) -> None:
        write_list(self.place / FILES, files)

    def finish(self, summary: dict[str, Any]) -> None:
        write_atomically(self.place / SUMMARY, json.dumps(summary, ensure_ascii=False, indent=2).encode())


class ContentFolder:
    """A folder with every content once, in ``content/ab/<sha256>``."""

    def __init__(self, place: Path) -> None:
        self.place, self.content = place, place / "content"

    def path_of(self, sha256: str) -> Path:
        return self.content / sha256[:2] / sha256

    def has(self, sha256: str, size: int) -> bool:
        try:
            return self.path_of(sha256).stat().st_size == size
        except FileNotFoundError:
            return False

    def keep(self, source: BinaryIO) -> tuple[str, int, bool]:
        """Copy what is left of a stream unless it is there already; its SHA-256, its bytes and whether it is new."""
        draft = self.content / f".{uuid.uuid4().hex}.part"
        try:
            with draft.open("xb") as target:
                sha256, size = copy_hashed(source, target)
            is_new = not self.has(sha256, size)
            if is_new:
                target_path = self.path_of(sha256)
                target_path.parent.mkdir(mode=0o700, exist_ok=True)
                draft.replace(target_path)
        finally:
            draft.unlink(missing_ok=True)
        return sha256, size, is_new

    def list_content(self) -> Iterator[Path]:
        """Every stored content, and drafts that an interrupted backup left."""
        for folder, _, names in os.walk(self.content):
            for name in sorted(names):
                yield Path(folder) / name


class BackupFolder(ContentFolder):
    """A folder of backups.

    Raises:
        CommandError: it is none and not empty either.
    """

    def __init__(self, place: Path, *, is_new: bool) -> None:
        super().__init__(place)
        self.backups = place / "backups"
        if is_new:
            self._make()
        elif not self.backups.is_dir():
            raise CommandError(f"{place}: expected a folder of backups, found none. Name the folder given to backup.")

    def _make(self) -> None:
        found = {path.name for path in self.place.iterdir()} if self.place.is_dir() else set()
        if found - {LOST} and not self.backups.is_dir():
            raise CommandError(f"{self.place}: expected a folder of backups or an empty one, found other files.")
        for folder in (self.place, self.content, self.backups):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def list_backups(self) -> list[Backup]:
        """The complete ones, the newest last."""
        found = sorted(path.name for path in self.backups.iterdir() if (path / SUMMARY).is_file())
        return [Backup(self, name) for name in found]

    def find_backup(self, name: str = "") -> Backup:
        """The one of this name, or the newest.

        Raises:
            CommandError: there is none.
        """
        found = self.list_backups()
        wanted = [one for one in found if name in ("", one.name)]
        if not wanted:
            names = ", ".join(one.name for one in found) or "none"
            raise CommandError(f"{self.place}: expected the backup {name or 'that is complete'}, found {names}.")
        return wanted[-1]

    def begin_backup(self, at: datetime) -> Backup:
        backup = Backup(self, at.strftime("%Y-%m-%dT%H%M%SZ"))
        if (backup.place / SUMMARY).exists():
            raise CommandError(f"{backup.place}: expected a new backup, found one of this second. Repeat the command.")
        backup.place.mkdir(mode=0o700, exist_ok=True)
        return backup

    def remove_old(self, keep: int) -> tuple[int, int]:
        """Delete all but the newest backups and what only those named; how many backups, and bytes of content."""
        backups = self.list_backups()
        gone = backups[:-keep]
        kept = {one.name for one in backups[-keep:]}
        for place in self.backups.iterdir():  # interrupted ones as well
            if place.name not in kept:
                shutil.rmtree(place)
        named = {one.sha256 for backup in backups[-keep:] for one in backup.list_files()}
        freed = 0
        for path in list(self.list_content()):
            if path.name not in named:
                freed += path.stat().st_size
                path.unlink()
        return len(gone), freed


def copy_hashed(source: BinaryIO, target: BinaryIO | None = None) -> tuple[str, int]:
    """SHA-256 and size of what is left of a stream, written to another one on the way, to the disk at the end."""
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
        if target is not None:
            target.write(chunk)
    if target is not None:
        target.flush()
        os.fsync(target.fileno())
    return digest.hexdigest(), size
