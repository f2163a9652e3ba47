"""Making a design from the organizer's page: a small one at once, a large one as a job that tells how far it is.

What takes long is the order of so many trials, whatever their number of systems; so the rule is the number of trials
over all evaluators. Either way a study has one job at a time, and a design that fails leaves the one before as it was.
Public: `start_design`, `run_design`, `KIND`.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from listening.design.plan import DesignError
from listening.models import Study
from listening.studies import designs
from listening.studies.selectors import locked_study
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job
from portal.jobs.runner import JobContext
from portal.jobs.services import NotPossible, create_job

KIND = "design-study"
AT_ONCE_AT_MOST = 500  # trials: some seconds on one slow core
STAGES = {"allocation": "Choosing who hears what", "ordering": "Ordering the trials", "writing": "Writing the design"}
BUSY = "Something is being made for this study already. Wait for it, or cancel it first."


def start_design(study: Study, by: Any) -> Job | None:
    """Make a small design now, which gives None; start the job that makes a large one.

    Raises:
        DesignError: the plan of a small one cannot be met.
        NotPossible: the study is launched, or something is being made for it.
    """
    trials = study.evaluators * study.trials_per_evaluator
    with transaction.atomic():
        now = locked_study(study, designs.DESIGNABLE, "designed anew")
        if now.job is not None and not now.job.has_ended:
            raise NotPossible(BUSY)
        if trials > AT_ONCE_AT_MOST:
            now.job = create_job(
                kind=KIND,
                title=f"Make the design of {study}"[:200],
                parameters={"study": study.pk},
                by=by,
                edition=now.edition.name,
            )
            now.save(update_fields=["job"])
            return now.job
    designs.make_design(study, by)
    Study.objects.filter(pk=study.pk, job=study.job_id).update(job=None)  # what it told was about the design before
    return None


def run_design(context: JobContext) -> dict[str, Any]:
    """Body of the job; the same design however often it runs."""
    study = Study.objects.filter(job=context.job).first()
    if study is None:
        raise _failure(designs.CHANGED)

    def tell(done: int, total: int, what: str) -> None:
        context.progress(STAGES[what], done, total)

    try:
        certificate = designs.make_design(study, context.job.created_by, progress=tell)
    except DesignError as error:
        raise _failure(" ".join(error.problems)) from None
    except NotPossible as reason:
        raise _failure(str(reason)) from None
    return {name: certificate[name] for name in ("seed", "waves", "fingerprint")}


def _failure(sentence: str) -> JobFailure:
    remedy = "Change the plan of the study where a sentence above says so, then make the design again."
    return JobFailure(sentence, actor=Actor.ORGANIZER, remedy=remedy)
