"""What killed processes left on a machine: staged and unpacked files of checks that never go on, bytes of lost uploads.

The scheduler removes them on its own machine. With a bucket every machine has a data folder of its own: there a worker
does it before it checks an archive, and a web server before it receives one.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from portal.core.storage import is_local
from portal.corpora.handlers import unpacking_folder
from portal.jobs.models import ACTIVE_STATES, Job
from portal.submissions import staging
from portal.submissions.models import TEST_JOB, Submission, Upload
from portal.submissions.services import CHECKABLE

STRAY_AFTER_S = 3600.0
MACHINE_EVERY_S = 600.0
NEEDED = (Upload.State.RECEIVING, Upload.State.REFUSED, Upload.State.COMPLETE)
CHECKED = Q(submission__isnull=False) & ~Q(submission__state__in=CHECKABLE)


@dataclass
class _Machine:
    tidied_at: float | None = None


_machine = _Machine()


def tidy_machine() -> None:
    """Tidy up this machine where it has a data folder of its own, every ten minutes at most."""
    now = time.monotonic()
    if is_local() or (_machine.tidied_at is not None and now - _machine.tidied_at < MACHINE_EVERY_S):
        return
    _machine.tidied_at = now
    tidy_staging()
    tidy_unpacked()
    remove_strays(Path(settings.UPLOAD_DIR))


def tidy_staging() -> None:
    """Remove what was staged of archives whose check will never go on."""
    for folder in staging.folders():
        if not Submission.objects.filter(pk=staging.submission_of(folder), state__in=CHECKABLE).exists():
            shutil.rmtree(folder, ignore_errors=True)


def tidy_unpacked() -> None:
    """Remove what was unpacked of archives by jobs that have ended, and by requests of an hour ago."""
    folders = {path.name: path for path in unpacking_folder().glob("*")}
    by_jobs = {name for name in folders if _identity(name)}
    going_on = set(map(str, Job.objects.filter(pk__in=by_jobs, state__in=ACTIVE_STATES).values_list("pk", flat=True)))
    old = time.time() - STRAY_AFTER_S
    young = {name for name in folders.keys() - by_jobs if folders[name].stat().st_mtime > old}
    for name in folders.keys() - going_on - young:
        shutil.rmtree(folders[name], ignore_errors=True)


def remove_strays(folder: Path) -> int:
    """Remove files that no upload needs; young ones may belong to a request that is just being answered."""
    files = {path.name: path for path in folder.iterdir() if time.time() - path.stat().st_mtime > STRAY_AFTER_S}
    strays = find_strays(files)
    for name in strays:
        files[name].unlink(missing_ok=True)
    return len(strays)


def find_strays(names: Iterable[str]) -> set[str]:
    """Return the names of files that no upload needs."""
    uploads = {name: _identity(name) for name in names}
    known = Upload.objects.filter(pk__in=filter(None, uploads.values()), state__in=NEEDED).exclude(CHECKED)
    importing = Job.objects.filter(kind__in=("import-corpus", TEST_JOB), state__in=ACTIVE_STATES)
    waiting = [job.parameters["upload"] for job in importing if "upload" in job.parameters]
    known = known.exclude(~Q(pk__in=waiting), edition=None, state=Upload.State.COMPLETE, expires_at__lte=timezone.now())
    needed = set(known.values_list("pk", flat=True))
    return {name for name, pk in uploads.items() if pk not in needed}


def _identity(name: str) -> UUID | None:
    try:
        return UUID(name.removeprefix(".").partition(".")[0])
    except ValueError:
        return None
