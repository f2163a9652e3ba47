"""Compare every stored file with its hash: those that the database names, or with FOLDER those of its backups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.errors import CommandError as Unusable
from common.terminal import ProgressBar, print_problems
from portal.core.health import require_database
from portal.core.storage import StorageAway
from portal.operations.backup.services import describe, verify_backup, verify_portal


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", nargs="?", type=Path, help="folder of backups; without it, the portal's files")

    def handle(self, *, folder: Path | None, **_: Any) -> None:
        if folder is None:
            require_database()
        try:
            with ProgressBar(lines="stages") as bar:
                done = verify_backup(folder, progress=bar.show) if folder else verify_portal(progress=bar.show)
        except (Unusable, StorageAway) as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(f"{error.filename}: expected to read it, found “{error.strerror}”.") from error
        problems = done.problems.report()
        code = print_problems(problems)
        count = sum(problem.count for problem in problems)
        self.stdout.write(f"{done.files:,} files of {describe(done.bytes)} compared: {count:,} differences.")
        if done.orphans:
            names = "no backup names" if folder else "no row of the database names"
            self.stdout.write(f"{done.orphans:,} files of {describe(done.orphaned_bytes)}, which {names}.")
        if code:
            raise SystemExit(code)
