"""Worker and scheduler on machines whose clocks are ten minutes wrong."""

import pytest
from django.db import connection  # noqa: F401 - for the condition below

from portal.core.health import check_scheduler, read_last_heartbeat
from portal.jobs.models import JobState
from tests.portal.processes.programs import items_of, let_go, make_steps, wait_for_end, wait_for_items, wait_until


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="processes that share SQLite share a clock")
@pytest.mark.parametrize("worker_s", [-600, 600])
def test_job_runs_once_whatever_the_clocks_of_worker_and_scheduler_say(alone, tmp_path, worker_s):
    file = tmp_path / "steps"
    alone.start_worker(concurrency=1, TEST_CLOCK_AHEAD_S=str(worker_s))
    job = make_steps(file, items=5, held_at=2)
    wait_for_items(file, 2)
    alone.start_scheduler(TEST_CLOCK_AHEAD_S=str(-worker_s))
    begun = wait_until(lambda: read_last_heartbeat("scheduler"), "a round of the scheduler")
    wait_until(
        lambda: (read_last_heartbeat("scheduler") - begun).total_seconds() > 3,
        "rounds for as long as a job may be silent",
    )
    assert check_scheduler() is None
    let_go(file)
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, items_of(file)) == (JobState.SUCCEEDED, 1, list(range(5)))
    assert [event.text for event in job.events.all()] == ["Started, attempt 1.", "Succeeded."]
