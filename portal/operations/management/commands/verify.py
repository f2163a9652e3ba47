"""Compare each stored file that the database names with its hash; exit code 1 where one is missing or changed."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import Any

from django.core.files.storage import default_storage
from django.core.management.base import BaseCommand, CommandError

from common.problems import Problem
from common.terminal import ProgressBar
from common.wording import counted
from portal.core.health import require_database
from portal.core.storage import CHUNK_BYTES, StorageAway
from portal.deletion.files import list_held_files

REMEDY = "Copy the file back from a backup; original speech also comes back with another import."


class Command(BaseCommand):
    help = __doc__

    def handle(self, **_: Any) -> None:
        require_database()
        named = {key: words for words, key in list_held_files()}
        differences = 0
        try:
            with ProgressBar(lines="quarters") as bar:
                for done, (key, words) in enumerate(named.items()):
                    bar.show("files", done, len(named))
                    if problem := find_problem(key, words):
                        self.stderr.write(problem.sentence())
                        differences += 1
        except StorageAway as reason:
            raise CommandError(str(reason)) from reason
        except OSError as error:
            raise CommandError(f"{error.filename}: expected to read it, found “{error.strerror}”.") from error
        self.stdout.write(f"{counted(len(named), 'file')} compared: {counted(differences, 'difference')}.")
        if differences:
            raise SystemExit(1)


def find_problem(key: str, words: str) -> Problem | None:
    """Return what is wrong with a stored file, if anything is.

    Files that are no content, have no hash: they have to be there.

    Args:
        words: what the rows that name it are to a reader, such as “utterances”.
    """
    try:
        found = _hash(key)
    except FileNotFoundError:
        return Problem("missing-file", f"files/{key}", f"a file of {words}", "none", REMEDY)
    expected = PurePosixPath(key).stem if key.startswith("content/") else found
    if found == expected:
        return None
    return Problem("changed-file", f"files/{key}", f"content {expected} of {words}", f"content {found}", REMEDY)


def _hash(key: str) -> str:
    digest = hashlib.sha256()
    with default_storage.open(key) as stored:
        while piece := stored.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()
