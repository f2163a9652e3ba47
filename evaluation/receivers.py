"""What evaluation does when something happens elsewhere: it begins with an accepted submission, ends with a job,
and what it made of a recording is erased with it.
"""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_delete
from django.dispatch import receiver

from evaluation.erasing import erase_with_file, erase_with_run, erase_with_utterance
from evaluation.models import EvaluationRun
from evaluation.services_objective import KIND, settle_objective, start_objective
from portal.challenges.models import Utterance
from portal.jobs.models import Job
from portal.jobs.signals import job_ended
from portal.submissions.models import Submission, SubmittedFile
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


@receiver(post_delete, sender=Utterance)
def erase_with_utterances(instance: Utterance, **_: Any) -> None:
    erase_with_utterance(instance)


@receiver(post_delete, sender=SubmittedFile)
def erase_with_files(instance: SubmittedFile, **_: Any) -> None:
    erase_with_file(instance)


@receiver(post_delete, sender=EvaluationRun)
def erase_with_runs(instance: EvaluationRun, **_: Any) -> None:
    erase_with_run(instance)
