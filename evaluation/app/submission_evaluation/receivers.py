"""An accepted submission is evaluated."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from evaluation.app.submission_evaluation.services import start_evaluation
from portal.submissions.models import Submission
from portal.submissions.signals import submission_accepted


@receiver(submission_accepted)
def _evaluate(submission: Submission, by: Any, **_: Any) -> None:
    start_evaluation(submission=submission, by=by)
