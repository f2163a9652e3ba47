"""Restore a backup into an empty data folder and an empty database; repeated after an interruption, it continues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.errors import CommandError as Unusable
from common.terminal import ProgressBar
from portal.core.processes import hold
from portal.core.storage import StorageAway
from portal.operations.backup.services import restore_backup


class Command(BaseCommand):
    help = __doc__
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="folder of backups")
        parser.add_argument(
            "--backup",
            default="",
            metavar="NAME",
            help="backup to restore, such as 2026-05-01T030000Z (default: the newest)",
        )

    def handle(self, *, folder: Path, backup: str, **_: Any) -> None:
        try:
            with hold(settings.DATA_DIR, settings.ADDRESS), ProgressBar(lines="stages") as bar:
                restored, hint = restore_backup(folder, name=backup, progress=bar.show)
        except (Unusable, StorageAway) as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(
                f"{error.filename or folder}: expected to restore a backup, found “{error.strerror}”. Fix it and "
                "repeat the command: it continues."
            ) from error
        facts = restored.summary
        self.stdout.write(
            f"Restored backup {restored.name} of version {facts['version']}: "
            f"{sum(facts['database']['rows'].values()):,} rows, {facts['files']:,} files."
        )
        if hint:
            self.stdout.write(hint)
        self.stdout.write(f"Check it with {settings.PROGRAM} verify, then start the portal.")
