"""Background work of teams."""

from __future__ import annotations

from typing import Any

from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext
from portal.teams.notices import send_notice


@job_kind("send-notice", title="Notices by mail", queue=Queue.IO)
def send(context: JobContext) -> dict[str, Any]:
    return send_notice(context)
