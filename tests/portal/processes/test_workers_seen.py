"""A worker's heartbeat: there while it takes jobs, gone after an orderly end, silent when it hangs or is killed."""

import json
import os
import re
import signal

import pytest
from django.utils import timezone

from portal.core.models import Heartbeat
from portal.jobs.checks import check_workers
from portal.jobs.models import Job, JobState
from portal.jobs.selectors import STARVED_AFTER
from portal.jobs.workers import known_workers
from tests.portal.processes.programs import (
    LOST_AFTER_S,
    let_go,
    lose_queue,
    make_steps,
    wait_for_end,
    wait_for_items,
    wait_until,
)


@pytest.fixture(autouse=True)
def _quick(settings):
    settings.JOB_LOST_AFTER_S = LOST_AFTER_S  # as the programs have it


def worker_of(program):
    """What is known of the worker that is this program; None while nothing is."""
    named = f" {program.pid}"
    return next((worker for worker in known_workers(timezone.now()) if worker.name.endswith(named)), None)


def test_living_worker_tells_its_queues_and_the_jobs_it_runs(standing, tmp_path):
    file = tmp_path / "steps"
    job = make_steps(file, held_at=2)
    wait_for_items(file, 2)
    worker = wait_until(lambda: worker_of(standing.worker), "the worker's heartbeat")
    assert (worker.queues, worker.capacity.processes, worker.is_silent) == (
        ["mail", "intake", "light", "cpu", "gpu"],
        2,
        False,
    )
    wait_until(lambda: worker_of(standing.worker).jobs == [job], "the job that it runs")
    let_go(file)
    assert wait_for_end(job).state == JobState.SUCCEEDED
    wait_until(lambda: worker_of(standing.worker).jobs == [], "no job that it runs")


def test_worker_that_hangs_is_silent_and_ready_says_what_waits_for_it(alone, client, tmp_path):
    worker = alone.start_worker()
    wait_until(lambda: worker_of(worker), "the worker's heartbeat")
    worker.send(signal.SIGSTOP)
    try:
        wait_until(lambda: worker_of(worker).is_silent, "silence")
        assert check_workers() is None  # nothing waits
        job = make_steps(tmp_path / "steps", items=1)
        Job.objects.update(waiting_since=timezone.now() - STARVED_AFTER * 2)
        answer = client.get("/health/ready")
        sentence = json.loads(answer.content)["checks"]["workers"]
        assert answer.status_code == 503
        said = r"A job has waited for \d min( \d+ s)? in the queue cpu, which no running worker serves; the last"
        assert re.match(said, sentence), sentence
        assert f" {worker.pid}, has been silent for" in sentence
    finally:
        worker.send(signal.SIGCONT)
    assert wait_for_end(job).state == JobState.SUCCEEDED
    wait_until(lambda: not worker_of(worker).is_silent, "a new heartbeat")
    assert check_workers() is None


def test_signs_of_life_go_on_after_the_loss_of_the_queue_and_of_idle_processes(standing):
    wait_until(lambda: worker_of(standing.worker), "the worker's heartbeat")
    lose_queue()
    for pid in set(standing.worker.family()) - {standing.worker.pid}:
        os.kill(pid, signal.SIGKILL)
    Heartbeat.objects.all().delete()
    wait_until(lambda: worker_of(standing.worker), "a new heartbeat")
