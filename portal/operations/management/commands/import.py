"""Add the edition of a folder that another portal exported; all of it or, where anything is wrong, nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.errors import CommandError as Unusable
from common.terminal import ProgressBar
from portal.accounts.models import User
from portal.core.health import require_database
from portal.core.mail import absolute
from portal.core.storage import StorageAway
from portal.operations.backup.edition import import_edition


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="folder of an exported edition")
        parser.add_argument(
            "--organizer", required=True, metavar="EMAIL", help="account of the person who organizes it here"
        )

    def handle(self, *, folder: Path, organizer: str, **_: Any) -> None:
        require_database()
        person = User.objects.filter(email=organizer.lower(), is_active=True, is_organizer=True).first()
        if person is None:
            raise CommandError(
                f"There is no organizer with the address {organizer} here. Invite one on the page People first."
            )
        try:
            with ProgressBar(lines="stages") as bar:
                edition, problems = import_edition(folder.resolve(), organizer=person, progress=bar.show)
        except (Unusable, StorageAway) as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(
                f"{error.filename or folder}: expected to import a folder, found “{error.strerror}”. Fix it and "
                "repeat the command."
            ) from error
        if edition is None:
            for problem in problems:
                self.stderr.write(problem.sentence())
            raise CommandError(f"{folder} is not as it was exported. Nothing was imported.")
        self.stdout.write(
            f"Imported the edition {edition.name}: {absolute(edition.get_absolute_url())}. {person} organizes it. "
            "Its teams have no members here: their label and numbers stay, nobody can log in for them."
        )
