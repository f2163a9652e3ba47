"""Background work of anonymisers."""

from __future__ import annotations

from typing import Any

from anonymization.services import run_anonymization
from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext


@job_kind("anonymize", title="Anonymisation of a data set", queue=Queue.CPU)
def anonymize(context: JobContext) -> dict[str, Any]:
    return run_anonymization(context)
