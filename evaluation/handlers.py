"""Background work of evaluation."""

from __future__ import annotations

from typing import Any

from evaluation.services import run_evaluation
from evaluation.services_objective import KIND, run_objective
from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext


@job_kind("measure", title="Measures of a data set", queue=Queue.CPU)
def measure(context: JobContext) -> dict[str, Any]:
    return run_evaluation(context)


@job_kind(KIND, title="Objective numbers of a submission", queue=Queue.CPU)
def objective(context: JobContext) -> dict[str, Any]:
    return run_objective(context)
