"""What the scheduler does for operators: what killed processes left behind, and figures of leaderboards."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta

from django.core.files.storage import default_storage

from portal.core.health import HEALTH_FOLDER
from portal.core.storage import delete_old, is_local, portal_files
from portal.jobs.scheduler import periodic_task
from portal.leaderboard.figures import FOLDER
from portal.leaderboard.pages import draw_ahead
from portal.operations.sweep import time_of_sweep

DRAWING_KEPT_S = 30 * 86_400.0


@periodic_task(every=timedelta(days=1))
def delete_leftovers() -> None:
    """Delete what killed processes had half written into the store, and files of killed checks of health."""
    if is_local():  # a bucket has whole files only
        portal_files.delete_drafts(time_of_sweep())
    with suppress(FileNotFoundError):
        for name in default_storage.listdir(HEALTH_FOLDER)[1]:
            delete_old(f"{HEALTH_FOLDER}/{name}", time_of_sweep())


@periodic_task(every=timedelta(minutes=1))
def draw_leaderboards() -> None:
    """Draw the figures of leaderboards that have new numbers."""
    draw_ahead()


@periodic_task(every=timedelta(days=1))
def delete_drawings() -> None:
    """Delete figures of leaderboards a month after they were drawn: they name systems, which may be gone since.

    Who looks at the leaderboard has them drawn again.
    """
    with suppress(FileNotFoundError):
        for name in default_storage.listdir(FOLDER)[1]:
            delete_old(f"{FOLDER}/{name}", time.time() - DRAWING_KEPT_S)
