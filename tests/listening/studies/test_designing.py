"""Making a design from its page: a small one at once, a large one as a job that is followed, cancelled, explained."""

import pytest
from django.urls import reverse

from common.errors import NotPossible, ProblemsError
from listening.app.models import Study
from listening.app.studies import designing, planning, services
from listening.app.studies.services import prepare_study
from portal.jobs.models import Job, JobState
from portal.jobs.runner import JobContext, execute
from portal.jobs.services import run_again
from tests.listening.edition_factories import make_draft, make_edition_with_speech

pytestmark = pytest.mark.django_db


def make_drafted():
    return make_draft(make_edition_with_speech())


@pytest.fixture
def study(client, once, monkeypatch):
    """A draft that counts as large."""
    study = once(make_drafted)
    client.force_login(study.created_by)
    monkeypatch.setattr(services, "DESIGNED_AT_ONCE_AT_MOST", 31)
    return study


def address(study):
    return reverse("studies:design", args=[study.name])


def fresh(study):
    return Study.objects.select_related("job").get(pk=study.pk)


def design_of(study):
    return [list(block.trials.values_list("presentation__key", flat=True)) for block in study.blocks.order_by("number")]


def test_small_design_is_made_within_the_request(client, study, monkeypatch):
    monkeypatch.setattr(services, "DESIGNED_AT_ONCE_AT_MOST", 32)
    response = client.post(address(study), follow=True)
    assert "The design is made and certified." in response.content.decode()
    assert fresh(study).is_designed
    assert not Job.objects.exists()


def test_every_sentence_of_a_failed_allocation_reaches_the_page(client, study, monkeypatch):
    def fail(*_given, **_more):
        raise ProblemsError(["Order: no order was found.", "Gaps: 3 places would do."])

    monkeypatch.setattr(planning, "allocate", fail)
    client.post(address(study))
    execute(fresh(study).job.pk)
    text = client.get(address(study)).content.decode()
    assert "Order: no order was found." in text
    assert "Gaps: 3 places would do." in text
    assert "Make the design" in text


def test_cancelled_job_leaves_the_design_that_was_there(study, monkeypatch):
    designing.make_design(study, None)
    before, fingerprint = design_of(study), fresh(study).certificate["fingerprint"]
    Study.objects.filter(pk=study.pk).update(seed=7)
    job = services.start_design(study, None)

    def progress(context, stage, done, total):
        if stage == "Ordering the trials":
            context.cancel_wanted.set()  # as the next heartbeat does, once somebody asked
        tell(context, stage, done, total)

    tell = JobContext.progress
    monkeypatch.setattr(JobContext, "progress", progress)
    assert execute(job.pk).state == JobState.CANCELLED
    monkeypatch.undo()
    assert (design_of(study), fresh(study).certificate["fingerprint"]) == (before, fingerprint)
    run_again(Job.objects.get(pk=job.pk), by=None)
    assert execute(job.pk).state == JobState.SUCCEEDED
    assert fresh(study).certificate["seed"] == 7


def test_one_thing_at_a_time_is_made_for_a_study(client, study):
    designing.make_design(study, None)
    services.start_design(study, None)
    with pytest.raises(NotPossible, match="The design is being made already"):
        prepare_study(study, None)
    response = client.post(address(study))
    assert response.status_code == 422
    assert "Something is being made for this study already." in response.content.decode()
    assert Job.objects.count() == 1


def test_study_that_changes_meanwhile_is_not_designed(study):
    job = services.start_design(study, None)
    Study.objects.filter(pk=study.pk).update(state=Study.State.OPEN)
    ended = execute(job.pk)
    assert ended.state == JobState.FAILED
    assert "cannot be designed again" in ended.failure
