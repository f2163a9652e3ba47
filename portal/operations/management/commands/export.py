"""Write an edition into one folder, without its people, for another portal to import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from common.errors import CommandError as Unusable
from common.terminal import ProgressBar
from portal.core.health import require_database
from portal.core.storage import StorageAway
from portal.operations.backup.edition import export_edition
from portal.operations.backup.services import describe


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("edition", help="its name, as in its address")
        parser.add_argument("folder", type=Path, help="new folder")
        parser.add_argument(
            "--without-audio", action="store_true", help="leave out original and anonymised speech, stimuli and samples"
        )

    def handle(self, *, edition: str, folder: Path, without_audio: bool, **_: Any) -> None:
        require_database()
        try:
            with ProgressBar(lines="stages") as bar:
                done = export_edition(
                    edition, folder.resolve(), with_audio=not without_audio, now=timezone.now(), progress=bar.show
                )
        except (Unusable, StorageAway) as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(
                f"{error.filename or folder}: expected to write a folder, found “{error.strerror}”. Make room or fix "
                "its rights, delete the folder and repeat the command."
            ) from error
        for problem in done.problems:
            self.stderr.write(problem.sentence())
        if done.problems:
            raise CommandError(f"{folder} is not complete and cannot be imported. Delete it and repeat the command.")
        self.stdout.write(
            f"Edition {edition}: {sum(done.rows.values()):,} rows, {done.files:,} files of {describe(done.bytes)}. "
            "It holds no accounts, names of contact persons or IDs of evaluators"
            f"{', and no audio' if without_audio else '; it holds speech'}. Texts that people wrote go as they are."
        )
