"""What the scheduler does for uploads from time to time."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage
from django.utils import timezone

from portal.core import upload_files
from portal.core.storage import delete_old, is_local
from portal.jobs.scheduler import periodic_task
from portal.submissions import leftovers
from portal.submissions.resumable_uploads import expire_uploads


@periodic_task(every=timedelta(minutes=10))
def tidy_uploads() -> None:
    """Give up unfinished uploads whose time is over, and remove what a killed process left of those given up."""
    expire_uploads(timezone.now())
    leftovers.remove_strays(Path(settings.UPLOAD_DIR))
    if not is_local():
        _remove_stored_strays()


@periodic_task(every=timedelta(minutes=10))
def tidy_checks() -> None:
    """Remove what was staged or unpacked of archives whose check or import will never go on."""
    leftovers.tidy_staging()
    leftovers.tidy_unpacked()


def _remove_stored_strays() -> None:
    """Do the same for uploads in the bucket; one that is just being completed is not in it yet under its name."""
    for name in leftovers.find_strays(default_storage.listdir(upload_files.FOLDER)[1]):
        delete_old(f"{upload_files.FOLDER}/{name}", time.time() - leftovers.STRAY_AFTER_S)
