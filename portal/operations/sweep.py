"""Finds stored files that nothing needs any more, and deletes them: what interrupted jobs and old versions left behind.

Marked are the files that a row names (`portal.deletion.files`), that any JSON field of a row names, and the recordings
in the lists of archives to download; of what runs keep in folders of their own, those whose run exists. Everything
else below `content/` and these folders is swept, and so are drafts of processes that were killed. A file stays for a
day after it was stored, or found again by who stores the same: its row may come only at the end of a long job. Whether
a row names it is looked up once more right before it is deleted. Figures of leaderboards go by age elsewhere.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from django.apps import apps
from django.core.files.storage import default_storage
from django.db.models import JSONField

from common.stored_zip import ZipMember
from evaluation.app.models import EvaluationRun
from portal.challenges.models import DataFile
from portal.core.models import AuditEvent
from portal.core.storage import DRAFT, delete_old, is_older
from portal.deletion.derived_data import FOLDERS
from portal.deletion.files import SECONDS_KEPT, delete_unheld_files, list_folder, list_held_files

AT_ONCE = 500
CONTENT = "content"
KEY = re.compile(r"content/[0-9a-f]{2}/[0-9a-f]{64}[.\w-]*")


@dataclass(frozen=True)
class Unneeded:
    """A stored file that nothing needs; `bytes`: its size."""

    key: str
    bytes: int


def find_unneeded(before: float) -> list[Unneeded]:
    """Return the stored files that nothing needs and that were stored before this time, in seconds since 1970."""
    listed = list(_list_swept())  # first: a file that comes later is not in it, whatever the rows say
    needed = _mark()
    runs = {str(pk) for pk in EvaluationRun.objects.values_list("pk", flat=True)}
    return [
        Unneeded(key, _measure(key)) for key in listed if not _is_needed(key, needed, runs) and is_older(key, before)
    ]


def sweep(before: float) -> tuple[int, int]:
    """Delete the files that nothing needs and that were stored before this time; how many, and how many bytes."""
    count = freed = 0
    found = find_unneeded(before)
    for start in range(0, len(found), AT_ONCE):
        some = found[start : start + AT_ONCE]
        _delete([one.key for one in some], before)
        gone = [one for one in some if not default_storage.exists(one.key)]
        count, freed = count + len(gone), freed + sum(one.bytes for one in gone)
    return count, freed


def _delete(keys: list[str], before: float) -> None:
    named = [key for key in keys if not _run_of(key) and not _is_draft(key)]
    delete_unheld_files(named, before)
    runs = set(
        map(str, EvaluationRun.objects.filter(pk__in=set(map(_run_of, keys)) - {""}).values_list("pk", flat=True))
    )
    for key in set(keys) - set(named):
        if _run_of(key) not in runs:
            delete_old(key, before)


def _is_needed(key: str, needed: set[str], runs: set[str]) -> bool:
    if _is_draft(key):
        return False
    return _run_of(key) in runs if _run_of(key) else key in needed


def _is_draft(key: str) -> bool:
    return DRAFT.fullmatch(PurePosixPath(key).name) is not None


def _run_of(key: str) -> str:
    """Return the number of the run that keeps a file in a folder of its own; empty for other files."""
    parts = PurePosixPath(key).parts
    is_of_run = "/".join(parts[:2]) in FOLDERS and len(parts) > 3 and parts[2].isdecimal()
    return parts[2] if is_of_run else ""


def _measure(key: str) -> int:
    """Return the bytes of a stored file; 0 where it is gone."""
    try:
        size: int = default_storage.size(key)
    except OSError:
        return 0
    return size


def _list_swept() -> Iterator[str]:
    yield from list_folder(CONTENT)
    for folder in FOLDERS:
        yield from (key for key in list_folder(folder) if _run_of(key) or _is_draft(key))


def _mark() -> set[str]:
    """Return every key that something needs."""
    needed = {key for _, key in list_held_files()}
    for texts in _list_json():
        for text in texts:
            needed.update(KEY.findall(text))
    for key in DataFile.objects.filter(kind=DataFile.Kind.SPEECH).values_list("key", flat=True).distinct():
        needed.update(_list_members(key))
    return needed


def _list_json() -> Iterator[Iterable[str]]:
    """Yield what JSON fields of rows hold; the audit log tells of files that are gone as well."""
    for model in apps.get_models():
        fields = [field.name for field in model._meta.concrete_fields if isinstance(field, JSONField)]
        if not model._meta.managed or model is AuditEvent:
            continue
        for name in fields:
            values = model._base_manager.order_by().values_list(name, flat=True).iterator(chunk_size=AT_ONCE)
            yield (json.dumps(value, ensure_ascii=False) for value in values if value)


def _list_members(key: str) -> Iterator[str]:
    try:
        stored = default_storage.open(key)
    except FileNotFoundError:
        return
    with stored as lines:
        yield from (ZipMember.from_line(line.decode()).key for line in lines)


def time_of_sweep() -> float:
    """Return what was stored before this time, in seconds since 1970, may go."""
    return time.time() - SECONDS_KEPT
