"""What a worker's machine has decides which jobs it takes, and what people read about a job that nobody can take."""

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.core.models import Heartbeat
from portal.jobs import tasks, workers
from portal.jobs.checks import check_workers
from portal.jobs.models import Job, JobState
from portal.jobs.selectors import is_taken_elsewhere, with_estimates
from portal.jobs.services import create_job, leave_card
from portal.jobs.turns import find_next
from portal.jobs.workers import Capacity
from tests.portal.factories import make_job

pytestmark = pytest.mark.django_db
GB = 10**9
LARGE = Capacity(processes=2, cores=8, memory_bytes=32 * GB, engines=("whisper-base",))
SMALL = Capacity(processes=2, cores=1, memory_bytes=4 * GB, engines=())


def make_worker(name, capacity, queues=("cpu",)):
    details = {"queues": list(queues)} | {field: getattr(capacity, field) for field in Capacity.__dataclass_fields__}
    return Heartbeat.objects.create(name=name, kind=workers.KIND, at=timezone.now(), details=details)


def make_waiting(kind="test-done", engine="", **fields):
    long_ago = timezone.now() - timedelta(minutes=5)
    return make_job(
        kind=kind, engine=engine, queue="cpu", waiting_since=long_ago, sent_at=long_ago, times_sent=1, **fields
    )


def test_worker_gets_no_job_that_needs_more_memory_or_cores_or_another_engine():
    demanding, recognition = make_waiting("test-demanding"), make_waiting(engine="whisper-base")
    assert find_next("cpu", SMALL) is None
    plain = make_waiting()
    assert find_next("cpu", SMALL) == plain.pk
    assert find_next("cpu", LARGE) == find_next("cpu") == demanding.pk
    Job.objects.filter(pk=demanding.pk).delete()
    assert find_next("cpu", LARGE) == recognition.pk


def test_job_that_no_worker_can_take_says_what_is_missing():
    make_worker("small", SMALL)
    missing = (
        "No running worker has the engine “whisper-base”, or the memory for it. The operator has to add it to one."
    )
    [job] = with_estimates([make_waiting(engine="whisper-base")])
    assert job.wait == missing
    assert check_workers() == missing
    Job.objects.all().delete()
    [job] = with_estimates([make_waiting("test-demanding")])
    assert job.wait.startswith("No running worker has the memory or cores that “demanding” needs.")
    make_worker("large", LARGE)
    [job] = with_estimates([job])
    assert job.wait == "A worker has room and takes it in a moment."


def test_message_goes_on_to_a_worker_that_can_run_the_job(sent, monkeypatch):
    monkeypatch.setattr(workers._process, "worker", "small")
    monkeypatch.setattr(workers._process, "capacity", SMALL)
    monkeypatch.setattr(tasks, "PASS_ON_S", 0)
    job = make_waiting("test-demanding")
    tasks.run_job(str(job.pk))
    assert sent == [], "there is no other: the scheduler tries again, ever more rarely"
    make_worker("large", LARGE)
    assert is_taken_elsewhere(job, than="small")
    tasks.run_job(str(job.pk))
    assert sent == [str(job.pk)]
    waiting = Job.objects.get(pk=job.pk)
    assert (waiting.state, waiting.times_sent) == (JobState.WAITING, job.times_sent)


def test_job_goes_to_a_card_where_there_is_one_and_back_when_there_is_none(sent, settings):
    make = {"kind": "test-card", "title": "Vectors", "parameters": {}}
    assert create_job(**make).queue == "cpu"
    heartbeat = make_worker("card", Capacity(card="a card"), queues=("gpu",))
    job = create_job(**make)
    assert job.queue == "gpu"
    leave_card(timezone.now())
    assert Job.objects.get(pk=job.pk).queue == "gpu"
    heartbeat.delete()
    leave_card(timezone.now())
    assert Job.objects.get(pk=job.pk).queue == "cpu"
    settings.CARD_JOBS = "always"
    assert create_job(**make).queue == "gpu"
    make_worker("card", Capacity(card="a card"), queues=("gpu",))
    settings.CARD_JOBS = "never"
    assert create_job(**make).queue == "cpu"


def test_job_that_needs_a_card_waits_for_one_whatever_its_kind(sent, settings):
    needing = create_job(kind="test-done", title="Needs one", parameters={}, card=True)
    refusing = create_job(kind="test-card", title="Must not", parameters={}, card=False)
    assert [(job.queue, job.needs_card) for job in (needing, refusing)] == [("gpu", True), ("cpu", False)]
    leave_card(timezone.now())
    assert Job.objects.get(pk=needing.pk).queue == "gpu"
    settings.CARD_JOBS = "always"
    assert create_job(kind="test-card", title="Must not", parameters={}, card=False).queue == "cpu"
