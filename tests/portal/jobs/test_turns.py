"""Which waiting job starts next: what people wait for, then teams in turn, then who waits longest."""

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.jobs import tasks
from portal.jobs.models import Job, JobState
from portal.jobs.services import claim_job, create_job
from portal.jobs.turns import find_next

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def make(sent, django_capture_on_commit_callbacks):
    def make(title, *, team=0, kind="test-done", **fields):
        with django_capture_on_commit_callbacks(execute=True):
            return create_job(kind=kind, title=title, parameters={}, team=team, **fields)

    return make


def work(sent, begun):
    """One worker, one job at a time, until the broker is empty; the titles as they began."""
    while sent:
        before = set(Job.objects.filter(started_at__isnull=False).values_list("pk", flat=True))
        tasks.run_job(sent.pop(0))
        begun += Job.objects.filter(started_at__isnull=False).exclude(pk__in=before).values_list("title", flat=True)
    return begun


def test_team_with_fewer_running_jobs_comes_first(make):
    first = [make(f"a{number}", team=1) for number in range(3)]
    other = [make(f"b{number}", team=2) for number in range(2)]
    for job in (first[0], other[0], first[1]):
        claim_job(job.pk)
    assert find_next("cpu") == other[1].pk


def test_limit_of_a_team_holds_and_nothing_is_forgotten(make, sent, settings):
    settings.JOBS_PER_TEAM = 1
    jobs = [make(f"a{number}", team=1) for number in range(3)]
    claim_job(jobs[0].pk)
    assert find_next("cpu") is None
    for message in sent[1:]:  # two other workers ask in vain
        tasks.run_job(message)
    assert Job.objects.filter(state=JobState.WAITING).count() == 2
    organizers = make("baseline")
    assert find_next("cpu") == organizers.pk
    Job.objects.filter(pk=jobs[0].pk).update(state=JobState.WAITING, claim=None)
    del sent[1:]
    assert work(sent, []) == ["baseline", "a1", "a2"]
    assert not Job.objects.exclude(state=JobState.SUCCEEDED).exists()


def test_only_what_may_start_is_taken(make, sent):
    other_queue = make("files", kind="test-files")
    before = make("before")
    make("after", after=before)
    with_caller = make("here", run_here=True)
    cancelled = make("cancelled")
    Job.objects.filter(pk=cancelled.pk).update(cancel_requested_at=timezone.now())
    assert find_next("cpu") == before.pk
    assert find_next("light") == other_queue.pk
    assert work(sent, []) == ["files", "before", "after"]  # the message of the cancelled one brought the last
    assert find_next("cpu") is None
    assert Job.objects.get(pk=with_caller.pk).state == JobState.WAITING


def test_choice_is_one_query(make, django_assert_num_queries):
    for number in range(3):
        make(f"a{number}", team=number)
    Job.objects.filter(title="a1").update(waiting_since=timezone.now() - timedelta(hours=1))
    oldest = Job.objects.get(title="a1").pk
    with django_assert_num_queries(1):
        assert find_next("cpu") == oldest
