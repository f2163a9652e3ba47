"""Background work of training attackers."""

from __future__ import annotations

from typing import Any

from evaluation.services_training import KIND, KIND_GPU
from evaluation.training_work import run_training
from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext


@job_kind(KIND, title="Training of an attacker", queue=Queue.CPU)
def train_attacker(context: JobContext) -> dict[str, Any]:
    return run_training(context)


@job_kind(KIND_GPU, title="Training of an attacker with a graphics card", queue=Queue.GPU)
def train_attacker_with_gpu(context: JobContext) -> dict[str, Any]:
    return run_training(context)
