"""Whatever becomes of a worker, its jobs go on where they were: nothing is done twice, nothing hangs."""

import os
import signal

import pytest

from portal.jobs.models import JobState
from portal.jobs.services import create_job
from tests.jobkit.handlers import read_lines
from tests.portal.processes.programs import items_of, let_go, make_steps, wait_for_end, wait_for_items, wait_until


def test_job_goes_on_after_kill_of_its_process(standing, tmp_path):
    file = tmp_path / "steps"
    job = make_steps(file, held_at=3)
    os.kill(wait_for_items(file, 3), signal.SIGKILL)
    let_go(file)
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, items_of(file)) == (JobState.SUCCEEDED, 2, list(range(12)))
    assert len({process for _, process in read_lines(file)}) == 2
    assert standing.worker.is_running
    texts = list(job.events.values_list("text", flat=True))
    assert "Its process stopped responding; the job waits for another." in texts


@pytest.mark.redis
def test_job_goes_on_after_kill_of_the_whole_worker(standing, tmp_path):
    file = tmp_path / "steps"
    job = make_steps(file, held_at=3)
    wait_for_items(file, 3)
    standing.worker.kill()
    assert standing.worker.family() == {}
    let_go(file)
    standing.stand()
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, items_of(file)) == (JobState.SUCCEEDED, 2, list(range(12)))


def test_job_is_done_once_after_kill_of_the_parent_process_alone(standing, tmp_path):
    file = tmp_path / "steps"
    job = make_steps(file, held_at=3)
    wait_for_items(file, 3)
    orphaned = standing.worker
    orphaned.send(signal.SIGKILL)
    orphaned.wait()
    let_go(file)
    standing.stand()
    ended = wait_for_end(job)
    assert (ended.state, items_of(file)) == (JobState.SUCCEEDED, list(range(12)))
    wait_until(lambda: orphaned.family() == {}, "the end of the orphaned processes")


def test_job_goes_back_without_losing_an_attempt_when_its_worker_is_stopped(standing, tmp_path):
    file = tmp_path / "steps"
    job = make_steps(file, held_at=3)
    wait_for_items(file, 3)
    standing.scheduler.kill()
    standing.worker.send(signal.SIGTERM)
    assert standing.worker.wait() == 0
    assert standing.worker.family() == {}
    job.refresh_from_db()
    assert (job.state, job.attempt, job.claim) == (JobState.WAITING, 0, None)
    assert len(items_of(file)) == 3
    let_go(file)
    standing.stand()
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, items_of(file)) == (JobState.SUCCEEDED, 1, list(range(12)))


def test_job_that_kills_three_processes_fails_with_a_sentence(standing):
    job = create_job(kind="test-death", title="Deadly", parameters={})
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, ended.failure_actor) == (JobState.FAILED, 3, "operator")
    assert ended.failure == ("The worker's process died 3 times while it ran this job, last at “Dying”.")
    assert "lack of memory" in ended.failure_remedy
