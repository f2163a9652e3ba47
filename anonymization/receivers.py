"""What anonymisation does when a job ends: a submission to an edition is accepted once all its runs have succeeded."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from anonymization.services import settle_anonymization
from portal.jobs.models import Job
from portal.jobs.signals import job_ended


@receiver(job_ended)
def settle_anonymized(job: Job, **_: Any) -> None:
    """Carry the submission on in the transaction that ends the job."""
    if job.kind.startswith("anonymize"):
        settle_anonymization(job)
