"""The job that makes a listening test of own recordings, once their archive has arrived."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.urls import reverse

from common.errors import NotPossible, ProblemsError
from listening.app.models import Study
from listening.app.recordings.choosing import ChosenTestForm
from listening.app.recordings.services import make_own_test
from listening.app.studies.selectors import free_study_name
from listening.app.studies.services import design_and_prepare, prepare_study
from portal.core import upload_files
from portal.core.fields import describe_errors
from portal.jobs.kinds import JobFailure, Obstacle, job_kind
from portal.jobs.models import Actor, Job, Queue
from portal.jobs.runner import JobContext
from portal.submissions.models import TEST_JOB, Upload
from portal.submissions.resumable_uploads import hash_upload

MOST_SENTENCES = 50
REMEDY = "Correct what is named above and make the test again; an archive that has not changed is not sent again."


def _find_obstacle(job: Job) -> Obstacle | None:
    """Return that the archive is gone, and the page on which it is sent once more."""
    if upload_files.is_there(job.parameters["upload"]):
        return None
    address = reverse("studies:own")
    return Obstacle("The recordings that this job was to read are no longer here.", "Send them again", address)


@job_kind(
    TEST_JOB,
    title="Listening test of own recordings",
    queue=Queue.INTAKE,
    comes_first=True,
    find_obstacle=_find_obstacle,
)
def make(context: JobContext) -> dict[str, Any]:
    """Make the test that the file in the job's parameters describes; one that was made before it broke off goes on."""
    wanted, by = context.parameters, context.job.created_by
    upload = Upload.objects.get(pk=wanted["upload"])
    try:
        study = Study.objects.filter(recordings__upload=wanted["upload"]).first()
        if study is None:
            study = _make(context, upload, by)
        elif study.job is None or study.job.has_ended:
            if not study.is_designed:
                design_and_prepare(study, by)
            elif study.state == Study.State.DRAFT:
                prepare_study(study, by)
    except (ProblemsError, ValidationError, NotPossible) as error:
        if isinstance(error, ValidationError):
            sentences = error.messages
        else:
            sentences = error.problems if isinstance(error, ProblemsError) else [str(error)]
        told = [*sentences[:MOST_SENTENCES], *(["…"] if len(sentences) > MOST_SENTENCES else [])]
        raise JobFailure(" ".join(told), actor=Actor.ORGANIZER, remedy=REMEDY) from None
    finally:
        upload_files.drop_copy(upload.pk)
    upload_files.remove(upload.pk)
    return {"study": study.name}


def _make(context: JobContext, upload: Upload, by: Any) -> Study:
    if by is None or not by.is_organizer:
        raise NotPossible("Only organizers make listening tests, and who sent these recordings is none any more.")
    try:
        archive = upload_files.fetch(upload.pk)
    except FileNotFoundError:
        raise NotPossible(f"The archive {upload.file_name} is no longer here.") from None
    reading = "Reading the archive"
    if not hash_upload(upload, lambda done, total: context.progress(reading, done >> 20, max(1, total >> 20))):
        upload_files.remove(upload.pk)  # else it would be taken for what its sender sends again
        raise NotPossible(f"The archive {upload.file_name} was damaged on its way.")
    form = ChosenTestForm(context.parameters["test"])
    if not form.is_valid():  # as it was before: the portal is another version since then
        raise ProblemsError([describe_errors(form)])
    chosen = form.choose()
    if Study.objects.filter(name=chosen.study["name"]).exists():  # taken since the archive was announced
        chosen = replace(chosen, study={**chosen.study, "name": free_study_name(chosen.study["title"])})
    context.progress("Checking the recordings", 0, 1)
    return make_own_test(chosen=chosen, archive=archive, file_name=upload.file_name, by=by, upload=str(upload.pk))
