"""Background work on studies."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.dispatch import receiver

from listening.models import Study
from listening.results import analysing, erasing
from listening.signals import answers_deleted, study_closed
from listening.studies import designing
from listening.studies.preparing import KIND, run_preparation, settle_preparation
from portal.jobs.kinds import job_kind
from portal.jobs.models import Job, Queue
from portal.jobs.runner import JobContext
from portal.jobs.signals import job_ended


@job_kind(KIND, title="Stimuli of a listening test", queue=Queue.CPU)
def prepare(context: JobContext) -> dict[str, Any]:
    return run_preparation(context)


@job_kind(designing.KIND, title="Design of a listening test", queue=Queue.CPU)
def design(context: JobContext) -> dict[str, Any]:
    return designing.run_design(context)


@job_kind(analysing.KIND, title="Analysis of a listening test", queue=Queue.CPU)
def analyse(context: JobContext) -> dict[str, Any]:
    return analysing.run_analysis(context)


@receiver(study_closed)
def analyse_closed(study: Study, **_: Any) -> None:
    """The results of a closed study are wanted at once; closing must not fail should they not come."""
    transaction.on_commit(lambda: analysing.start_due_analysis(study), robust=True)


@receiver(answers_deleted)
def erase_from_analyses(study: Study, **_: Any) -> None:
    erasing.erase_answers(study)


@receiver(job_ended)
def settle_prepared(job: Job, **_: Any) -> None:
    if job.kind == KIND:
        settle_preparation(job)
