"""Background work on submissions."""

from __future__ import annotations

from typing import Any

from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext


@job_kind("intake", title="Check of a submission", queue=Queue.IO)
def intake(context: JobContext) -> dict[str, Any]:
    from portal.submissions.intake_job import run_intake  # decodes audio: not for the web server

    return run_intake(context)
