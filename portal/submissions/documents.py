"""The folder where the documents of a submission lie as they were sent."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from django.core.files.storage import default_storage

from portal.submissions.models import SubmittedDocument


def lay_out(documents: Iterable[SubmittedDocument], folder: Path) -> int:
    """Write documents under their paths into a folder, as their team packed them; how many those were."""
    count = 0
    for document in documents:
        target = folder / document.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with default_storage.open(document.key) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
        count += 1
    return count
