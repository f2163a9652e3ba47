"""What engines made of a recording goes with it: vectors and words of speech are personal data as the speech is.

Deleting an utterance, a submitted file or a submission deletes, when the transaction is through, the
speaker vectors and hypotheses of its audio, its texts in the lists of recognised utterances, and the derived files of
runs that are gone. What a crash left behind, or audio that was replaced by other, is found by a periodic task. Audio
that somebody still holds keeps its results, which belong to the content. Rows are deleted in cascades and in bulk, so
this listens to the deletion of the rows themselves.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.signals import post_delete
from django.dispatch import receiver

from evaluation.app.models import EvaluationRun, Hypothesis, SpeakerVector
from evaluation.app.recognition.selectors import words_key
from evaluation.app.runs.feature_cache import split_keys
from evaluation.app.runs.kinds import RECOGNITION
from portal.challenges.models import Utterance
from portal.core.storage import read_stored, replace_named
from portal.jobs.scheduler import periodic_task
from portal.submissions.models import SubmittedFile

MADE_OF_AUDIO = (SpeakerVector, Hypothesis)
HOLDERS = (Utterance, SubmittedFile)
# Where a run keeps files, by its key.
FOLDERS = (
    *("derived/objective", "derived/attacks", "derived/recognition", "derived/attackers", "derived/figures"),
    "derived/retrained",
)


@dataclass
class _Erased(threading.local):
    """What this thread's transaction has deleted; emptied by the first that is called once it is through."""

    audio: set[str] = field(default_factory=set)
    files: dict[int, set[int]] = field(default_factory=dict)
    runs: set[int] = field(default_factory=set)


_erased = _Erased()


@receiver(post_delete, sender=Utterance)
def erase_with_utterance(instance: Utterance, **_: Any) -> None:
    _erased.audio.add(instance.audio)
    transaction.on_commit(_finish)


@receiver(post_delete, sender=SubmittedFile)
def erase_with_file(instance: SubmittedFile, **_: Any) -> None:
    _erased.audio.add(instance.audio)
    _erased.files.setdefault(instance.submission_id, set()).add(instance.pk)
    transaction.on_commit(_finish)


@receiver(post_delete, sender=EvaluationRun)
def erase_with_run(instance: EvaluationRun, **_: Any) -> None:
    _erased.runs.add(instance.pk)
    transaction.on_commit(_finish)


def _finish() -> None:
    """Of all calls of a transaction the first does the work. What was rolled back is still held and stays."""
    audio, files, runs = _erased.audio, _erased.files, _erased.runs
    _erased.audio, _erased.files, _erased.runs = set(), {}, set()
    erase_results(audio - {""})
    for submission, gone in files.items():
        _erase_texts(submission, gone)
    for run in runs:
        if not EvaluationRun.objects.filter(pk=run).exists():
            for folder in FOLDERS:
                _remove_folder(f"{folder}/{run}")


def erase_results(audio: Collection[str]) -> int:
    """Delete vectors and hypotheses of these recordings, unless somebody holds them; how many rows."""
    count = 0
    for part in split_keys(sorted(audio)):
        held = {key for model in HOLDERS for key in _find_audio(model, part)}
        orphans = [key for key in part if key not in held]
        for model in MADE_OF_AUDIO:
            count += model._default_manager.filter(audio__in=orphans).delete()[0]
    return count


@periodic_task(every=timedelta(hours=6))
def delete_orphans() -> int:
    """Delete every vector and hypothesis whose recording was deleted or replaced; how many rows."""
    unheld: set[str] = set()
    for model in MADE_OF_AUDIO:
        rows = model._default_manager.order_by()
        for holder in HOLDERS:
            rows = rows.exclude(audio__in=holder._default_manager.order_by().values("audio"))
        unheld.update(rows.values_list("audio", flat=True).distinct())
    return erase_results(unheld)


def _find_audio(model: type[Utterance] | type[SubmittedFile], keys: Collection[str]) -> QuerySet[Utterance, str]:
    return model._default_manager.filter(audio__in=keys).order_by().values_list("audio", flat=True)  # type: ignore[return-value]


def _erase_texts(submission: int, gone: Collection[int]) -> None:
    """Take the utterances of deleted files out of what recognitions of their submission keep for pages."""
    erased = set(gone) - set(SubmittedFile.objects.filter(pk__in=gone).values_list("pk", flat=True))
    runs = EvaluationRun.objects.filter(submission=submission, kind=RECOGNITION.kind)
    for run in runs if erased else ():
        for name in run.parameters.get("data_sets", []):
            key = words_key(run.pk, name)
            if (stored := read_stored(key)) is None:
                continue
            rows = json.loads(stored)
            kept = [row for row in rows if row["file"] not in erased]
            if len(kept) < len(rows):
                replace_named(key, json.dumps(kept, ensure_ascii=False).encode())


def _remove_folder(folder: str) -> None:
    try:
        folders, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        default_storage.delete(f"{folder}/{name}")
    for inner in folders:
        _remove_folder(f"{folder}/{inner}")
    default_storage.delete(folder)
