"""What the scheduler does for things that were deleted."""

from __future__ import annotations

from datetime import timedelta

from portal.jobs.periodic_tasks import periodic_task
from portal.manage.services import delete_unneeded_files


@periodic_task(every=timedelta(minutes=5))
def delete_files() -> None:
    """Delete stored files of what was deleted that were too new, or too many, for the request that deleted it."""
    delete_unneeded_files()
