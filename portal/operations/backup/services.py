"""Makes a backup while the portal runs, restores one into an empty portal, and compares what is stored with its hashes.

Files go first, then the database as it is at one moment, then the files that came meanwhile: what the database names is
therefore there. Unfinished uploads are opened before that moment, so that one that ends meanwhile is still read whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage

from common.atomic_write import write_atomically
from common.errors import CommandError
from common.lock import lock_folder
from common.problems import Problem, ProblemList, Severity
from common.progress import Progress
from portal.core.removal import list_held_files
from portal.core.storage import SPARE_BYTES, StoredFile, is_local, portal_files
from portal.core.version import code_version
from portal.operations.backup import database
from portal.operations.backup.folder import (
    DATABASE,
    SECRET,
    Backup,
    BackupFolder,
    Stored,
    copy_hashed,
)

CONTENT = "files/content/"
LEFT_OUT = ("health",)  # of the files: what the check of health writes and deletes
BEGUN = "restoring"  # in the data folder: the name of the backup that is being restored


@dataclass
class Made:
    """What a backup did: `problems` are files whose bytes are not those that they were stored with."""

    name: str
    files: int = 0
    bytes: int = 0
    new_files: int = 0
    new_bytes: int = 0
    rows: int = 0
    uploads: int = 0
    has_secret: bool = False
    old_backups: int = 0
    freed_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)


# Backup -------------------------------------------------------------------------------------------


def make_backup(
    place: Path, *, now: datetime, with_secret: bool = False, keep: int | None = None, progress: Progress
) -> Made:
    """Add a backup to a folder of backups; what an earlier one holds is not copied again.

    Args:
        keep: how many backups stay; older ones and what only they hold are deleted.

    Raises:
        CommandError: the folder cannot be used.
    """
    place = place.resolve()
    if place.is_relative_to(settings.DATA_DIR.resolve()):
        raise CommandError(f"{place}: expected a folder outside of the portal's data, found one in it. Name another.")
    folder = BackupFolder(place, is_new=True)
    with lock_folder(place, "lock"), ExitStack() as opened:
        earlier = folder.list_backups()
        known = {one.path: one for one in earlier[-1].list_files()} if earlier else {}
        backup = folder.begin_backup(now.astimezone(UTC))
        made = Made(backup.name)
        copier = _Copier(folder, known, made, progress)
        copier.copy_all("files")
        uploads = _open_uploads(opened, {})
        made.rows = sum((counts := database.dump(backup.place / DATABASE, progress)).values())
        copier.copy_all("files that came meanwhile")
        for name, file in _open_uploads(opened, uploads).items():
            copier.copy_upload(name, file)
        if with_secret:
            descriptor = os.open(backup.place / SECRET, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as secret:
                secret.write(settings.SECRET_KEY)
            made.has_secret = True
        backup.write_files(copier.found.values())
        made.files, made.bytes = len(copier.found), sum(one.size for one in copier.found.values())
        with (backup.place / DATABASE).open("rb") as stream:
            sha256, size = copy_hashed(stream)
        summary: dict[str, Any] = {
            "at": now.astimezone(UTC).isoformat(),
            "version": code_version(),
            "made_from": str(settings.DATA_DIR),
        }
        summary["database"] = {"sha256": sha256, "bytes": size, "rows": counts}
        backup.finish(summary | {"files": made.files, "bytes": made.bytes, "migrations": database.list_migrations()})
        if keep:
            made.old_backups, made.freed_bytes = folder.remove_old(keep)
    return made


class _Copier:
    """Copies files of the data folder into a folder of backups and knows which it `found`."""

    def __init__(self, folder: BackupFolder, known: dict[str, Stored], made: Made, progress: Progress) -> None:
        self.folder, self.known, self.made, self.progress = folder, known, made, progress
        self.found: dict[str, Stored] = {}

    def copy_all(self, stage: str) -> None:
        """Copy what is there now; what was deleted since an earlier call stays, as the database may still name it."""
        files = list(_list_files())
        for done, (name, facts) in enumerate(files):
            self.progress(stage, done, len(files))
            self._copy(name, facts)
        self.progress(stage, len(files), len(files))

    def _copy(self, name: str, facts: StoredFile) -> None:
        same = self.found.get(name) or self.known.get(name)
        is_same = same is not None and (same.size, same.changed_ns) == (facts.size, facts.changed_ns)
        if name.startswith(CONTENT) and self.folder.has(PurePosixPath(name).stem, facts.size):
            self.found[name] = Stored(name, PurePosixPath(name).stem, facts.size, facts.changed_ns)
        elif same is not None and is_same and self.folder.has(same.sha256, same.size):
            self.found[name] = same
        else:
            self._read(name, facts)

    def _read(self, name: str, facts: StoredFile) -> None:
        try:
            stream = default_storage.open(facts.name)
        except FileNotFoundError:
            return
        with stream:
            self._keep(name, cast("BinaryIO", stream), facts.size, facts.changed_ns)
        if name.startswith(CONTENT) and (found := self.found[name].sha256) != PurePosixPath(name).stem:
            self.made.problems.append(_changed(name, found))

    def copy_upload(self, name: str, file: BinaryIO) -> None:
        facts = os.fstat(file.fileno())
        self._keep(f"uploads/{name}", file, facts.st_size, facts.st_mtime_ns)
        self.made.uploads += 1

    def _keep(self, name: str, stream: BinaryIO, size: int, changed_ns: int) -> None:
        room = shutil.disk_usage(self.folder.place).free - size
        if room < 0:
            raise CommandError(
                f"{self.folder.place}: expected room for {name}, found a full disk. Make room and repeat the command: "
                "what was copied is not copied again."
            )
        sha256, size, is_new = self.folder.keep(stream)
        if is_new:
            self.made.new_files += 1
            self.made.new_bytes += size
        self.found[name] = Stored(name, sha256, size, changed_ns)


def _list_files() -> Iterator[tuple[str, StoredFile]]:
    """Every stored file by its name in a backup; not what is being written just now."""
    for one in sorted(portal_files.list_all(), key=lambda one: one.name):
        if one.name.partition("/")[0] not in LEFT_OUT:
            yield f"files/{one.name}", one


def _open_uploads(opened: ExitStack, known: dict[str, BinaryIO]) -> dict[str, BinaryIO]:
    """The files of unfinished uploads, those that are open already and new ones; what is open stays readable."""
    found = dict(known)
    for path in sorted(settings.UPLOAD_DIR.iterdir()):
        if path.is_file() and path.name not in found and not path.name.startswith("."):
            try:
                found[path.name] = opened.enter_context(path.open("rb"))
            except FileNotFoundError:
                continue
    return found


# Restore ------------------------------------------------------------------------------------------


def restore_backup(place: Path, *, name: str = "", progress: Progress) -> tuple[Backup, str]:
    """Fill an empty portal; what was interrupted goes on when the same backup is restored again.

    Returns:
        The backup, and what the operator must still do about the secret key; "" where nothing.

    Raises:
        CommandError: the portal is in use, or the backup is damaged.
    """
    folder = BackupFolder(place.resolve(), is_new=False)
    backup = folder.find_backup(name)
    summary = backup.summary
    begun = settings.DATA_DIR / BEGUN
    is_begun = begun.is_file() and begun.read_text() == backup.name
    if content := database.find_content():
        raise CommandError(
            f"The database is in use: it has {content}. A backup is restored into an empty one: set "
            "PORTAL_DATABASE_URL to a new database, or PORTAL_DATA_DIR to an empty folder."
        )
    if not is_begun and (used := _first_file()):
        raise CommandError(
            f"The data folder {settings.DATA_DIR} is in use: it has {used}. A backup is restored into an empty one: "
            "set PORTAL_DATA_DIR to another folder."
        )
    write_atomically(begun, backup.name.encode())
    _restore_files(folder, backup, progress)
    hint = _restore_secret(backup)
    database.load(backup.place / DATABASE, summary["migrations"], summary["database"]["rows"], progress)
    begun.unlink()
    try:
        database.upgrade()
    except CommandError as error:
        raise CommandError(f"{error} {hint}".strip()) from error
    return backup, hint


def _first_file() -> str:
    for name, _ in _list_files():
        return name
    return next((f"uploads/{path.name}" for path in settings.UPLOAD_DIR.iterdir()), "")


def _restore_files(folder: BackupFolder, backup: Backup, progress: Progress) -> None:
    files = list(backup.list_files())
    there = {name: facts.size for name, facts in _list_files()}
    there |= {f"uploads/{path.name}": path.stat().st_size for path in settings.UPLOAD_DIR.iterdir()}
    missing = [one for one in files if there.get(one.path) != one.size]
    needed = sum(one.size for one in missing if is_local() or one.path.startswith("uploads/"))
    if needed + SPARE_BYTES > shutil.disk_usage(settings.DATA_DIR).free:
        raise CommandError(
            f"{settings.DATA_DIR}: expected room for {needed / 1e9:.1f} GB and {SPARE_BYTES / 1e9:.0f} GB that stay "
            "free, found less. Make room and repeat the command."
        )
    for done, one in enumerate(missing, start=len(files) - len(missing)):
        progress("files", done, len(files))
        _restore_file(folder, one)
    progress("files", len(files), len(files))


def _restore_file(folder: BackupFolder, one: Stored) -> None:
    """Put a file of a backup where it belongs.

    Raises:
        CommandError: the list leads out of the data folder, or the backup is damaged.
    """
    root, *parts = PurePosixPath(one.path).parts
    if root not in {"files", "uploads"} or not parts or ".." in parts:
        raise CommandError(f"{one.path}: expected a file below files/ or uploads/ in the list of the backup.")
    try:
        with folder.path_of(one.sha256).open("rb") as source:
            if root == "files" and not is_local():
                _require_sound(one, copy_hashed(source))
                source.seek(0)
                default_storage.save("/".join(parts), File(source))
            else:
                place = Path(default_storage.path("/".join(parts))) if root == "files" else settings.UPLOAD_DIR
                _copy_to(source, place if root == "files" else place.joinpath(*parts), one)
    except FileNotFoundError as error:
        raise CommandError(_damaged(one, "none").sentence()) from error


def _copy_to(source: BinaryIO, target: Path, one: Stored) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.part")
    try:
        with draft.open("wb") as stream:
            _require_sound(one, copy_hashed(source, stream))
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _require_sound(one: Stored, found: tuple[str, int]) -> None:
    if found != (one.sha256, one.size):
        raise CommandError(_damaged(one, f"content {found[0]}").sentence())


def _restore_secret(backup: Backup) -> str:
    kept, own = backup.place / SECRET, settings.DATA_DIR / "secret_key"
    if not kept.is_file():
        return (
            "The backup holds no secret key. Give this portal that of the old one, as PORTAL_SECRET_KEY or as the file "
            f"{own}, before it starts: with another one everybody has to log in again, open pages of evaluators have "
            "to be reloaded, and people who return to a listening test count as new people."
        )
    if kept.read_text() == settings.SECRET_KEY:
        return ""
    if own.is_file() and own.read_text().strip() == settings.SECRET_KEY:
        write_atomically(own, kept.read_bytes())
        own.chmod(0o600)
        return ""
    return (
        f"PORTAL_SECRET_KEY is not that of the backup. Set it to what the file {kept} holds before the portal starts."
    )


# Verify -------------------------------------------------------------------------------------------


@dataclass
class Verified:
    """What a comparison found; no problems where nothing is missing and nothing has changed."""

    files: int = 0
    bytes: int = 0
    orphans: int = 0
    orphaned_bytes: int = 0
    problems: ProblemList = field(default_factory=ProblemList)


def verify_backup(place: Path, *, progress: Progress) -> Verified:
    """Read every content of all backups in a folder and every database, and compare them with their hashes."""
    folder = BackupFolder(place.resolve(), is_new=False)
    done = Verified()
    wanted: dict[str, Stored] = {}
    for backup in [*folder.list_backups()] or [folder.find_backup()]:
        told = backup.summary["database"]
        file = backup.place / DATABASE
        found = _hash(file)
        if found != (told["sha256"], told["bytes"]):
            what = "none" if found is None else f"content {found[0]}"
            done.problems.add(_problem(str(file), f"content {told['sha256']}", what, "Make another backup."))
        wanted |= {one.sha256: one for one in backup.list_files()}
    for count, one in enumerate(wanted.values()):
        progress("files of the backups", count, len(wanted))
        found = _hash(folder.path_of(one.sha256))
        if found is None or found != (one.sha256, one.size):
            done.problems.add(_damaged(one, "none" if found is None else f"content {found[0]}"))
        done.files, done.bytes = done.files + 1, done.bytes + one.size
    progress("files of the backups", len(wanted), len(wanted))
    for path in folder.list_content():
        if path.name not in wanted:
            done.orphans, done.orphaned_bytes = done.orphans + 1, done.orphaned_bytes + path.stat().st_size
    return done


def verify_portal(*, progress: Progress) -> Verified:
    """Compare every file that a row of the database names with its hash, and count those that no row names.

    Files that are no content, such as pitch contours, have no hash: they have to be there. Content that came in the
    last hours may wait for its rows and counts as an orphan until these come.
    """
    done = Verified()
    named: dict[str, str] = {}
    for words, key in list_held_files():
        named.setdefault(key, words)
    for count, (key, words) in enumerate(named.items()):
        progress("files that the database names", count, len(named))
        found = _hash_stored(key)
        expected = PurePosixPath(key).stem if key.startswith("content/") else ""
        if found is None:
            remedy = "Restore the file from a backup; original speech also comes back with another import."
            done.problems.add(_problem(f"files/{key}", f"a file of {words}", "none", remedy, "missing-file"))
        elif expected and found[0] != expected:
            done.problems.add(_changed(f"files/{key}", found[0]))
        done.files, done.bytes = done.files + 1, done.bytes + (found[1] if found else 0)
    progress("files that the database names", len(named), len(named))
    for name, facts in _list_files():
        if name.startswith(CONTENT) and facts.name not in named:
            done.orphans, done.orphaned_bytes = done.orphans + 1, done.orphaned_bytes + facts.size
    return done


def _hash_stored(key: str) -> tuple[str, int] | None:
    try:
        stored = default_storage.open(key)
    except FileNotFoundError:
        return None
    with stored:
        return copy_hashed(cast("BinaryIO", stored))


def _hash(path: Path) -> tuple[str, int] | None:
    try:
        with path.open("rb") as stream:
            return copy_hashed(stream)
    except FileNotFoundError:
        return None


def _changed(name: str, found: str) -> Problem:
    remedy = "The disk has damaged it, or somebody changed it: delete the file and restore it from a backup."
    return _problem(name, f"content {PurePosixPath(name).stem}", f"content {found}", remedy)


def _damaged(one: Stored, found: str) -> Problem:
    remedy = "Delete that content in the folder of backups, if it is there, and back up again."
    return _problem(one.path, f"content {one.sha256} in the backup", found, remedy)


def _problem(file: str, expected: str, found: str, remedy: str, code: str = "changed-file") -> Problem:
    return Problem(code, file, expected, found, remedy, Severity.ERROR)


def describe(facts: Any) -> str:
    """Bytes as people read them."""
    return f"{facts / 1e9:,.2f} GB" if facts >= 1e9 else f"{facts / 1e6:,.1f} MB"
