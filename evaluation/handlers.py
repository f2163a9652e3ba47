"""Background work of evaluation."""

from __future__ import annotations

from typing import Any

from evaluation import handlers_training  # noqa: F401 (registers its kinds)
from evaluation.services import run_evaluation
from evaluation.services_attack import KIND as ATTACK
from evaluation.services_attack import VECTORS, run_attack_job, run_vectors
from evaluation.services_objective import KIND, run_objective
from evaluation.services_recognition import HYPOTHESES, run_hypotheses, run_recognition
from evaluation.services_recognition import KIND as RECOGNITION
from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext


@job_kind("measure", title="Measures of a data set", queue=Queue.CPU)
def measure(context: JobContext) -> dict[str, Any]:
    return run_evaluation(context)


@job_kind(KIND, title="Objective numbers of a submission", queue=Queue.CPU)
def objective(context: JobContext) -> dict[str, Any]:
    return run_objective(context)


@job_kind(VECTORS, title="Speaker vectors of a data set", queue=Queue.CPU)
def vectors(context: JobContext) -> dict[str, Any]:
    return run_vectors(context)


@job_kind(ATTACK, title="The portal's own attack", queue=Queue.CPU)
def attack(context: JobContext) -> dict[str, Any]:
    return run_attack_job(context)


@job_kind(HYPOTHESES, title="Recognised words of a data set", queue=Queue.CPU)
def hypotheses(context: JobContext) -> dict[str, Any]:
    return run_hypotheses(context)


@job_kind(RECOGNITION, title="The portal's own speech recognition", queue=Queue.CPU)
def recognition(context: JobContext) -> dict[str, Any]:
    return run_recognition(context)
