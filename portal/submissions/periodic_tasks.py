"""What the scheduler does for uploads from time to time."""

from __future__ import annotations

import shutil
import time
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from portal.challenges.handlers import unpacking_folder
from portal.jobs.models import Job, State
from portal.jobs.periodic_tasks import periodic_task
from portal.submissions import staging
from portal.submissions.models import Submission, Upload
from portal.submissions.services import CHECKABLE
from portal.submissions.uploads import expire_uploads

STRAY_AFTER_S = 3600.0
NEEDED = (Upload.State.RECEIVING, Upload.State.REFUSED, Upload.State.COMPLETE)
CHECKED = Q(submission__isnull=False) & ~Q(submission__state__in=CHECKABLE)
UNDER_WAY = (State.WAITING, State.RUNNING)


@periodic_task(every=timedelta(minutes=10))
def tidy_uploads() -> None:
    """Give up unfinished uploads whose time is over, and remove what a killed process left of those given up."""
    expire_uploads(timezone.now())
    remove_strays(Path(settings.UPLOAD_DIR))


@periodic_task(every=timedelta(minutes=10))
def tidy_staging() -> None:
    """Remove what was staged of archives whose check will never go on."""
    for folder in staging.folders():
        if not Submission.objects.filter(pk=staging.submission_of(folder), state__in=CHECKABLE).exists():
            shutil.rmtree(folder, ignore_errors=True)


@periodic_task(every=timedelta(minutes=10))
def tidy_unpacked() -> None:
    """Remove what was unpacked of archives of corpora by jobs that have ended."""
    folders = {path.name: path for path in unpacking_folder().glob("*") if _identity(path.name)}
    going_on = Job.objects.filter(pk__in=folders, state__in=UNDER_WAY).values_list("pk", flat=True)
    for name in folders.keys() - set(map(str, going_on)):
        shutil.rmtree(folders[name], ignore_errors=True)


def remove_strays(folder: Path) -> int:
    """Remove files that no upload needs; young ones may belong to a request that is just being answered."""
    files = {path.name: path for path in folder.iterdir() if time.time() - path.stat().st_mtime > STRAY_AFTER_S}
    known = Upload.objects.filter(pk__in=filter(None, map(_identity, files)), state__in=NEEDED).exclude(CHECKED)
    importing = Job.objects.filter(kind="import-corpus", state__in=UNDER_WAY)
    waiting = [job.parameters["upload"] for job in importing if "upload" in job.parameters]
    known = known.exclude(~Q(pk__in=waiting), edition=None, state=Upload.State.COMPLETE, expires_at__lte=timezone.now())
    strays = set(files) - {str(pk) for pk in known.values_list("pk", flat=True)}
    for name in strays:
        files[name].unlink(missing_ok=True)
    return len(strays)


def _identity(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None
