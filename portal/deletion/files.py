"""Which fields of rows hold keys of stored files, and how files that no row names any more are cleaned up.

The keys of deleted rows are kept in the transaction that deletes them. A file follows once no row names it and nobody
stored it for a day: equal content is stored once, and the row of an import may come only at its end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.core.files.storage import default_storage
from django.db.models import JSONField, Model

from anonymization.app.models import NetworkSeed
from evaluation.app.models import ScoreSet
from listening.app.models import Analysis, Stimulus, Study
from portal.challenges.models import DataFile, TrialList, Utterance
from portal.core.models import UnneededFile
from portal.core.storage import delete_old, is_older
from portal.deletion.rows import WORDS, Rows
from portal.submissions.models import Submission, SubmittedDocument, SubmittedFile

AT_ONCE = 500
SECONDS_KEPT = 86_400.0
# Text fields that hold a key, and JSON fields whose items or values are keys.
FIELDS: dict[type[Model], tuple[str, ...]] = {
    Utterance: ("audio",),
    TrialList: ("file",),
    DataFile: ("key",),
    Submission: ("report",),
    SubmittedFile: ("audio",),
    SubmittedDocument: ("key",),
    NetworkSeed: ("files",),
    ScoreSet: ("key",),
    Study: ("imported",),
    Stimulus: ("file", "upload"),
    Analysis: ("inputs", "results", "figures", "leftovers"),
}


def list_files(rows: Rows) -> Iterator[str]:
    """Return the keys of the stored files that rows name; some come more than once."""
    for model, found in rows.items():
        for name in FIELDS.get(model, ()):
            for value in found.order_by().values_list(name, flat=True).distinct().iterator():
                yield from _keys(value)


def list_held_files() -> Iterator[tuple[str, str]]:
    """Return of every file that a row names what the row is to a reader, and its key; some come more than once."""
    for model in FIELDS:
        words = WORDS.get(model, str(model._meta.verbose_name_plural))
        yield from ((words, key) for key in list_files({model: model._default_manager.all()}))


def list_folder(folder: str) -> Iterator[str]:
    """Return the keys of all stored files below a folder."""
    try:
        folders, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{name}" for name in sorted(names))
    for inner in sorted(folders):
        yield from list_folder(f"{folder}/{inner}")


def note_files(keys: Iterable[str]) -> None:
    """Let these files be deleted once no row names them; in the transaction that deletes or empties their rows."""
    rows = (UnneededFile(key=key) for key in sorted(set(keys)))
    UnneededFile.objects.bulk_create(rows, batch_size=AT_ONCE, ignore_conflicts=True)


def clean_up_files(limit_s: float | None = None) -> int:
    """Delete the files that were noted, unless a row names them, and return how many are settled.

    Args:
        limit_s: no further files are begun after so many seconds.
    """
    began, count, last = time.monotonic(), 0, 0
    before = time.time() - SECONDS_KEPT
    while limit_s is None or time.monotonic() - began < limit_s:
        rows = dict(UnneededFile.objects.filter(pk__gt=last).order_by("pk").values_list("key", "pk")[:AT_ONCE])
        if not rows:
            break
        settled = delete_unheld_files(rows, before)
        count, last = count + len(settled), max(rows.values())
    return count


def delete_unheld_files(keys: Iterable[str], before: float) -> list[str]:
    """Delete those of these files that no row names, and return the keys of what is gone or stays for good.

    Args:
        before: what was stored since then, in seconds since 1970, waits.
    """
    old = {key for key in keys if is_older(key, before)}
    held: set[str] = set()
    for model, names in FIELDS.items():
        for name in names if old else ():
            values = model._default_manager.order_by().values_list(name, flat=True)
            if isinstance(model._meta.get_field(name), JSONField):
                for value in values.iterator():
                    held.update(old.intersection(_keys(value)))
            else:
                held.update(values.filter(**{f"{name}__in": old}))
    settled = [key for key in old if key in held or delete_old(key, before)]
    UnneededFile.objects.filter(key__in=settled).delete()
    return settled


def _keys(value: Any) -> Iterable[str]:
    """Return the keys in a field: its text, or what an object or a list holds."""
    if isinstance(value, str):
        return [value] if value else []
    values = value.values() if isinstance(value, Mapping) else value or ()
    return [key for key in values if key]
