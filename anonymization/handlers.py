"""Background work of anonymisers."""

from __future__ import annotations

from typing import Any

from anonymization.services import run_anonymization
from anonymization.trials import KIND, KIND_GPU, run_trials
from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext


@job_kind("anonymize", title="Anonymisation of a data set", queue=Queue.CPU)
def anonymize(context: JobContext) -> dict[str, Any]:
    return run_anonymization(context)


@job_kind("anonymize-gpu", title="Anonymisation of a data set with a graphics card", queue=Queue.GPU)
def anonymize_with_gpu(context: JobContext) -> dict[str, Any]:
    return run_anonymization(context)


@job_kind(KIND, title="Trial of anonymisers on one utterance", queue=Queue.CPU)
def try_anonymizers(context: JobContext) -> dict[str, Any]:
    return run_trials(context)


@job_kind(KIND_GPU, title="Trial of anonymisers with a graphics card", queue=Queue.GPU)
def try_anonymizers_with_gpu(context: JobContext) -> dict[str, Any]:
    return run_trials(context)
