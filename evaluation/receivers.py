"""What evaluation does when something happens elsewhere: it begins with an accepted submission, ends with a job."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from evaluation.services_objective import KIND, settle_objective, start_objective
from portal.jobs.models import Job
from portal.jobs.signals import job_ended
from portal.submissions.models import Submission
from portal.submissions.signals import submission_accepted


@receiver(submission_accepted)
def evaluate_accepted(submission: Submission, **_: Any) -> None:
    """Start the runs of a submission to an edition, in the transaction that accepts it."""
    if submission.system.edition_id is not None:
        start_objective(submission=submission, by=submission.submitted_by)


@receiver(job_ended)
def settle_evaluated(job: Job, **_: Any) -> None:
    """Carry the submission on in the transaction that ends its objective job."""
    if job.kind == KIND:
        settle_objective(job)
