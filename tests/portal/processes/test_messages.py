"""The row is the truth and the queue a hint: messages may come twice, get lost, or find nobody to take them."""

import shutil
import socket
import subprocess
from datetime import timedelta

import pytest
import redis
from django.utils import timezone

from portal.jobs.models import Job, JobEvent, JobState
from portal.jobs.tasks import run_job
from tests.portal.processes.programs import (
    free_port,
    items_of,
    let_go,
    lose_queue,
    make_steps,
    wait_for_end,
    wait_for_items,
    wait_until,
)


@pytest.mark.redis
def test_job_is_done_once_however_often_its_message_comes(standing, tmp_path):
    file = tmp_path / "steps"
    job = make_steps(file, items=5)
    for _ in range(20):
        run_job.apply_async((str(job.pk),), queue="cpu")
    after = make_steps(tmp_path / "after", items=1)  # behind all copies
    assert wait_for_end(after).state == JobState.SUCCEEDED
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, items_of(file)) == (JobState.SUCCEEDED, 1, list(range(5)))
    assert [event.text for event in job.events.all()] == ["Started, attempt 1.", "Succeeded."]


@pytest.mark.redis
def test_jobs_are_done_once_when_two_workers_race_for_them(standing, tmp_path):
    second = standing.start_worker()
    wait_until(lambda: "ready" in second.output(), "the start of the second worker")
    files = [tmp_path / f"steps-{number}" for number in range(10)]
    jobs = [make_steps(file, items=3, pause_s=0.05) for file in files]
    for job in [*jobs, *jobs]:
        run_job.apply_async((str(job.pk),), queue="cpu")
    ended = [wait_for_end(job) for job in jobs]
    assert [(job.state, job.attempt) for job in ended] == [(JobState.SUCCEEDED, 1)] * 10
    assert [items_of(file) for file in files] == [[0, 1, 2]] * 10
    assert JobEvent.objects.filter(text__startswith="Started").count() == 10
    assert "succeeded in" in second.output()  # it took part in the race


@pytest.mark.redis
def test_running_and_waiting_jobs_survive_the_loss_of_the_queue(standing, tmp_path):
    files = [tmp_path / f"steps-{number}" for number in range(8)]
    jobs = [make_steps(file, items=5, held_at=2) for file in files]
    wait_for_items(files[0], 2)
    lose_queue()
    waiting = Job.objects.filter(state=JobState.WAITING)
    assert waiting.count() >= 4
    # As if the time had passed after which the scheduler takes a message for lost.
    waiting.update(sent_at=timezone.now() - timedelta(hours=2))
    let_go(*files)
    ended = [wait_for_end(job) for job in jobs]
    assert [(job.state, job.attempt) for job in ended] == [(JobState.SUCCEEDED, 1)] * 8
    assert [items_of(file) for file in files] == [list(range(5))] * 8
    assert standing.worker.is_running


CREATE = """
import sys, django
django.setup()
from pathlib import Path
from tests.portal.processes.programs import make_steps
print(make_steps(Path(sys.argv[1]), items=2).pk)
"""


def test_job_made_while_the_queue_is_down_waits_and_runs_later(alone, tmp_path):
    file = tmp_path / "steps"
    maker = alone.start("maker", "-c", CREATE, str(file), PORTAL_BROKER_URL="redis://127.0.0.1:1/0")
    assert maker.wait() == 0, maker.output()
    job = Job.objects.get()
    assert (job.state, job.sent_at, job.times_sent) == (JobState.WAITING, None, 0)
    assert "The queue did not take job" in maker.output()
    alone.stand()
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, items_of(file)) == (JobState.SUCCEEDED, 1, [0, 1])


@pytest.fixture
def own_redis(tmp_path):
    """A Redis that a test may kill; a function that starts it and its address."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server, which this test starts and kills, is not installed")
    port, started = free_port(), []

    def start():
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        wait_until(lambda: is_open(port), "a Redis that answers")
        return started[-1]

    yield start, f"redis://127.0.0.1:{port}/0"
    for server in started:
        server.kill()
        server.wait()


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_worker_takes_jobs_again_after_redis_was_away_when_it_began_one(alone, own_redis, tmp_path):
    start, url = own_redis
    server = start()
    worker = alone.start_worker(concurrency=1, PORTAL_BROKER_URL=url)
    alone.start_scheduler(PORTAL_BROKER_URL=url)
    files = [tmp_path / f"steps-{number}" for number in range(4)]
    # The first runs, the message of the second is held by the worker; the others come when Redis is back.
    jobs = [make_waiting_steps(file, held_at=1) for file in files[:2]]
    wait_for_items(files[0], 1)
    wait_until(lambda: count_held(url) == 1, "a message that the worker holds")
    server.kill()
    server.wait()
    let_go(files[0])
    wait_for_items(files[1], 1)
    start()
    let_go(files[1])
    jobs += [make_waiting_steps(file) for file in files[2:]]
    ended = [wait_for_end(job) for job in jobs]
    assert [(job.state, job.attempt) for job in ended] == [(JobState.SUCCEEDED, 1)] * 4, worker.output()
    assert "Couldn't ack" in worker.output()


def count_held(url):
    """How many messages workers hold."""
    with redis.Redis.from_url(url) as client:
        return client.hlen("unacked")


def make_waiting_steps(file, **fields):
    """A job that only the scheduler tells the queue of."""
    job = make_steps(file, items=2, **fields)
    Job.objects.filter(pk=job.pk).update(sent_at=None, times_sent=0)
    return job
