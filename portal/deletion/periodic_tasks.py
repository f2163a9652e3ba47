"""What the scheduler does for things that were deleted, and for speech whose date has come."""

from __future__ import annotations

from datetime import timedelta

from portal.core.clock import read_clock
from portal.deletion.derived_data import delete_orphans
from portal.deletion.files import clean_up_files
from portal.deletion.retention import announce_deletions, delete_due_speech
from portal.jobs.scheduler import periodic_task


@periodic_task(every=timedelta(minutes=5))
def delete_files() -> None:
    """Delete stored files of what was deleted that were too new, or too many, for the request that deleted it."""
    clean_up_files()


@periodic_task(every=timedelta(hours=6))
def delete_derived_data() -> None:
    """Delete vectors and words of recordings that a crash left behind, or that were replaced by others."""
    delete_orphans()


@periodic_task(every=timedelta(hours=1))
def keep_retention_dates() -> None:
    """Tell organizers when the submitted speech of their edition is going to be deleted, and delete it then."""
    now = read_clock()
    announce_deletions(now)
    delete_due_speech(now)
