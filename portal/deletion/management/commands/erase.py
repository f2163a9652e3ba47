"""Erase an utterance, a speaker or an evaluator with everything that was made of them, and write a signed receipt."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from common.errors import NotPossible
from portal.core.health import require_database
from portal.core.storage import StorageAway
from portal.deletion import erasure


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "what",
            choices=("utterance", "speaker", "participant", "check"),
            help="what to erase; check: verify a receipt",
        )
        parser.add_argument("of", help="short name of the corpus or the listening test; with check, a receipt")
        parser.add_argument(
            "name",
            nargs="?",
            default="",
            help="utterance or speaker; of a participant: ID on the platform, withdrawal code or address",
        )
        parser.add_argument("--dry-run", action="store_true", help="only show what would be erased")
        parser.add_argument("--receipt", type=Path, help="file of the receipt; else erasure-TIME.json in this folder")

    def handle(self, *, what: str, of: str, name: str, dry_run: bool, receipt: Path | None, **_: Any) -> None:
        if what == "check":
            self._check(Path(of))
            return
        require_database()
        if not name:
            raise CommandError(f"Name the {what}: erase {what} {of} NAME.")
        now = timezone.now()
        file = receipt or Path(f"erasure-{now:%Y-%m-%dT%H%M%S}.json")
        if not dry_run:  # a receipt that cannot be written is found before anything goes
            _make(file)
        try:
            done = self._erase(what, of, name, dry_run)
        except NotPossible as reason:
            if not dry_run:
                file.unlink()
            raise CommandError(str(reason)) from reason
        except StorageAway as reason:
            if not dry_run:
                file.unlink()
            raise CommandError(f"{reason} Repeat the command: it goes on with what is not erased yet.") from reason
        self.stdout.write(f"{'Would be erased' if dry_run else 'Erased'}: {done.what} {done.name}")
        for words, count in done.rows.items():
            self.stdout.write(f"  {words}: {count:,}")
        for one in done.unsearched:
            self.stdout.write(f"Not searched: {one}")
        if dry_run:
            self.stdout.write("Nothing was changed. Repeat it without --dry-run to erase.")
            return
        self.stdout.write(f"  stored files: {len(done.files):,}")
        self.stdout.write(f"  other files that lost lines: {done.rewritten:,}")
        self.stdout.write(f"  rows that lost its name: {done.mentions:,}")
        file.write_text(json.dumps(erasure.sign(done, now), ensure_ascii=False, indent=2))
        self.stdout.write(f"The receipt is {file}. Older backups still hold what is erased: delete them.")

    def _erase(self, what: str, of: str, name: str, dry_run: bool) -> erasure.Erasure:
        if what == "participant":
            person = erasure.find_participant(study=of, person=name)
            return erasure.preview_participant(person) if dry_run else erasure.erase_participant(person, timezone.now())
        thing = erasure.find_speech(corpus=of, **{what: name})
        return erasure.preview_speech(thing) if dry_run else erasure.erase_speech(thing)

    def _check(self, file: Path) -> None:
        try:
            receipt = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise CommandError(f"{file}: expected a receipt, found “{error}”.") from error
        if not isinstance(receipt, dict) or not erasure.check(receipt):
            raise CommandError(f"{file}: expected a receipt that this portal signed, found another or a changed one.")
        self.stdout.write(
            f"This portal signed that {receipt['erased']} {receipt['name']} was erased at {receipt['at']}."
        )


def _make(file: Path) -> None:
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise CommandError(
            f"{file}: expected to write the receipt there, found “{error.strerror}”. Name another file with --receipt."
        ) from error
