"""What the scheduler does for evaluations from time to time."""

from __future__ import annotations

from datetime import timedelta

from evaluation.erasing import erase_unheld
from portal.jobs.chores import chore


@chore(every=timedelta(hours=6))
def erase_what_nobody_holds() -> None:
    """Delete vectors and hypotheses of recordings that were deleted or replaced."""
    erase_unheld()
