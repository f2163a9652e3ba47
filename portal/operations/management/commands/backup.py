"""Back up the portal while it runs: database, files, unfinished uploads. A second backup copies only what is new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from common.errors import CommandError as Unusable
from common.terminal import ProgressBar, print_problems
from portal.core.health import require_database
from portal.core.storage import StorageAway
from portal.operations.backup.services import describe, make_backup


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="folder of backups, on another disk")
        parser.add_argument("--with-secret-key", action="store_true", help="also back up the secret key")
        parser.add_argument("--keep", type=_count, metavar="N", help="delete all but the newest N backups")

    def handle(self, *, folder: Path, with_secret_key: bool, keep: int | None, **_: Any) -> None:
        require_database()
        try:
            with ProgressBar(lines="stages") as bar:
                made = make_backup(
                    folder, now=timezone.now(), with_secret=with_secret_key, keep=keep, progress=bar.show
                )
        except (Unusable, StorageAway) as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(
                f"{error.filename or folder}: expected to write a backup, found “{error.strerror}”. Make room or fix "
                "its rights and repeat the command: what was copied is not copied again."
            ) from error
        self.stdout.write(
            f"Backup {made.name}: {made.rows:,} rows, {made.files:,} files of {describe(made.bytes)}, "
            f"{made.uploads:,} of them unfinished uploads. New: {made.new_files:,} files, {describe(made.new_bytes)}."
        )
        if not made.has_secret:
            self.stdout.write("It holds no secret key. Keep that elsewhere, or repeat it with --with-secret-key.")
        if keep:
            self.stdout.write(f"{made.old_backups:,} older backups are deleted, {describe(made.freed_bytes)} are free.")
        if print_problems(made.problems):
            raise SystemExit(1)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(text)
    return int(text)
