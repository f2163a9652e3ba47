"""What engines made of recordings is deleted with them: vectors and words of speech are personal data as the speech is.

These are speaker vectors and hypotheses, texts in the lists of recognised utterances, and the files that a run keeps in
folders of its own. Audio that somebody still holds keeps its results, which belong to the content.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Model, QuerySet

from evaluation.app.models import EvaluationRun, Hypothesis, SpeakerVector
from evaluation.app.recognition.selectors import words_key
from evaluation.app.runs.feature_cache import split_keys
from evaluation.app.runs.kinds import RECOGNITION
from portal.challenges.models import Utterance
from portal.core.storage import read_stored, replace_named
from portal.deletion.rows import Rows
from portal.submissions.models import SubmittedFile

MADE_OF_AUDIO: tuple[type[Model], ...] = (SpeakerVector, Hypothesis)
HOLDERS: tuple[type[Model], ...] = (Utterance, SubmittedFile)
# Where a run keeps files, by its key.
FOLDERS = (
    *("derived/objective", "derived/attacks", "derived/recognition", "derived/attackers", "derived/figures"),
    "derived/retrained",
)


def delete_derived_data(rows: Rows) -> None:
    """Delete what was made of rows, once the transaction that deletes them is through."""
    audio: set[str] = set()
    for model in HOLDERS:
        if model in rows:
            audio.update(_list_audio(rows[model]))
    files = defaultdict(set)
    if SubmittedFile in rows:
        for submission, pk in rows[SubmittedFile].order_by().values_list("submission", "pk"):
            files[submission].add(pk)
    runs = list(rows[EvaluationRun].order_by().values_list("pk", flat=True)) if EvaluationRun in rows else []

    def delete() -> None:
        delete_results(audio - {""})
        for submission, gone in files.items():
            _delete_texts(submission, gone)
        for run in runs:
            for folder in FOLDERS:
                _delete_folder(f"{folder}/{run}")

    transaction.on_commit(delete)


def delete_results(audio: Collection[str]) -> int:
    """Delete vectors and hypotheses of these recordings, unless somebody holds them; how many rows."""
    count = 0
    for part in split_keys(sorted(audio)):
        held = {key for model in HOLDERS for key in _list_audio(model._default_manager.filter(audio__in=part))}
        for model in MADE_OF_AUDIO:
            count += model._default_manager.filter(audio__in=set(part) - held).delete()[0]
    return count


def delete_orphans() -> int:
    """Delete every vector and hypothesis whose recording was deleted or replaced; how many rows."""
    unheld: set[str] = set()
    for model in MADE_OF_AUDIO:
        rows = model._default_manager.all()
        for holder in HOLDERS:
            rows = rows.exclude(audio__in=_list_audio(holder._default_manager.all()))
        unheld.update(_list_audio(rows))
    return delete_results(unheld)


def _list_audio(rows: QuerySet[Any]) -> QuerySet[Any, Any]:
    return rows.order_by().values_list("audio", flat=True).distinct()


def _delete_texts(submission: int, gone: Collection[int]) -> None:
    """Take the utterances of deleted files out of what recognitions of their submission keep for pages."""
    for run in EvaluationRun.objects.filter(submission=submission, kind=RECOGNITION.kind):
        for name in run.parameters.get("data_sets", []):
            key = words_key(run.pk, name)
            if (stored := read_stored(key)) is None:
                continue
            rows = json.loads(stored)
            kept = [row for row in rows if row["file"] not in gone]
            if len(kept) < len(rows):
                replace_named(key, json.dumps(kept, ensure_ascii=False).encode())


def _delete_folder(folder: str) -> None:
    try:
        folders, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        default_storage.delete(f"{folder}/{name}")
    for inner in folders:
        _delete_folder(f"{folder}/{inner}")
    default_storage.delete(folder)
