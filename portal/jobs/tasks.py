"""The one Celery task. Its message is a hint; `execute` asks the row what there is to do."""

from __future__ import annotations

from celery import shared_task

from portal.jobs.runner import execute


@shared_task(name="portal.run_job")
def run_job(job_id: str) -> None:
    execute(job_id)
