"""What a job tells of itself while it works."""

import pytest

from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.submissions.models import SubmittedFile
from portal.systems.services import start_baseline
from tests.portal.factories import make_corpus

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]


def run(kind):
    """How the job of this kind ended, and its stages in order, each once."""
    stages = {}
    job = execute(Job.objects.get(kind=kind).pk, lambda job: stages.setdefault(job.stage, (job.done, job.total)))
    return job, stages


@pytest.fixture
def started(monkeypatch):
    monkeypatch.setattr("portal.jobs.services.send", lambda _: True)
    corpus = make_corpus()
    sets = corpus.data_sets.filter(name="tones_enrolls")
    start_baseline(name="b2", corpus=corpus, data_sets=sets, method="mcadams-2022", seed=1)


def test_nothing_is_prepared_where_nothing_is_missing(started):
    run("anonymize")
    Job.objects.filter(kind="anonymize").update(state=JobState.WAITING)
    job, stages = run("anonymize")
    assert (job.state, list(stages), SubmittedFile.objects.count()) == (JobState.SUCCEEDED, ["Anonymising"], 4)
