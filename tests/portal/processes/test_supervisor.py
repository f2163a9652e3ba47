"""`manage.py serve`: one command starts web server, worker and scheduler and keeps them up, one signal ends them."""

import json
import os
import signal
import socket
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from django.core.management import CommandError, call_command

from portal.jobs.models import Job, JobState
from portal.jobs.selectors import queue_states
from portal.jobs.services import create_job
from tests.leftovers import surroundings
from tests.portal.processes.programs import (
    Program,
    free_port,
    hold,
    items_of,
    let_go,
    make_steps,
    parent_of,
    wait_for_end,
    wait_for_items,
    wait_until,
)
from tests.snapshots import empty_database

COMPUTING = " worker --queues cpu,gpu "


def answer(url):
    """Status and text; None while nobody answers."""
    try:
        with urlopen(url, timeout=5) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
    except (URLError, OSError):
        return None


class Served:
    def __init__(self, folder):
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        self.program = Program("serve", ["manage.py", "serve"], folder, PORTAL_ADDRESS=address)

    def ready(self):
        reply = answer(f"{self.url}/health/ready")
        return reply and reply[0] == 200 and json.loads(reply[1])

    def pids(self, part):
        return {pid for pid, command in self.program.family().items() if part in command}

    def main_pid(self, part):
        """Of the processes with this command, the one that the supervisor started; its children may have lower pids."""
        (main,) = (pid for pid in self.pids(part) if parent_of(pid) == self.program.pid)
        return main


def living(queue):
    return [(worker.queues, worker.capacity.processes) for worker in queue.living]


@pytest.fixture(scope="module")
def left(all_programs, django_db_blocker):
    """The portal that the last test left running, if it did."""
    left = []
    yield left
    for served in left:
        served.program.kill()
    with django_db_blocker.unblock():
        empty_database()


@pytest.fixture
def served(alone, left):
    """A portal that is ready: the one that the last test left, or a new one."""
    if not left or not left[-1].program.is_running:
        left.append(Served(alone.folder))
    wait_until(left[-1].ready, "the portal is ready")
    yield left[-1]
    surroundings.processes |= {served.program.pid for served in left}
    if Job.objects.filter(state=JobState.RUNNING).exists():
        left[-1].program.kill()


def test_second_portal_on_the_same_data_folder_ends_with_a_sentence(served, alone, settings):
    sentence = (
        f"Another portal runs on the data folder {settings.DATA_DIR}: process {served.program.pid}, "
        f"{served.url}/. Use that one, end it, or set PORTAL_DATA_DIR to another folder."
    )
    second = alone.start("second", "manage.py", "serve", PORTAL_ADDRESS=f"127.0.0.1:{free_port()}")
    assert second.wait() == 1
    assert second.output().strip() == f"CommandError: {sentence}"
    settings.ADDRESS = f"127.0.0.1:{free_port()}"
    with pytest.raises(CommandError) as refusal:
        call_command("demo")
    assert str(refusal.value) == sentence
    assert served.program.output().splitlines()[0] == f"The portal opens at {served.url}/ (Ctrl-C ends it)"
    assert served.ready()


def test_job_goes_on_while_the_web_server_is_killed_and_comes_back(served, alone, left, tmp_path):
    file = tmp_path / "steps"
    job = make_steps(file, held_at=3)
    process = wait_for_items(file, 3)
    before = served.pids("gunicorn")
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: answer(f"{served.url}/health/live") == (200, "live\n"), "the web server")
    assert served.pids("gunicorn").isdisjoint(before)
    let_go(file)
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, items_of(file)) == (JobState.SUCCEEDED, 1, list(range(12)))
    assert wait_for_items(file, 12) == process
    assert "web ended (signal SIGKILL); it starts again in 1 s" in served.program.output()
    served.program.send(signal.SIGKILL)
    wait_until(lambda: served.program.family() == {}, "the end of what a killed supervisor ran")
    again = Served(alone.folder)  # a killed portal leaves no lock behind
    left.append(again)
    wait_until(again.ready, "the portal is ready")


def test_short_job_does_not_wait_for_computations(served, tmp_path):
    files = [tmp_path / f"steps {number}" for number in range(2)]
    jobs = [make_steps(file, held_at=1) for file in files]
    for file in files:
        wait_for_items(file, 1)
    waiting = make_steps(tmp_path / "third", items=1)
    short = create_job(kind="test-files", title="Short", parameters={})
    assert wait_for_end(short).state == JobState.SUCCEEDED
    for job in (*jobs, waiting):
        job.refresh_from_db()
    assert [job.state for job in (*jobs, waiting)] == [JobState.RUNNING, JobState.RUNNING, JobState.WAITING]
    wait_until(
        lambda: living(queue_states()[0]) == [(["mail", "intake", "light"], 2)],
        "the heartbeat of the worker of short jobs",
    )
    let_go(*files)
    assert {wait_for_end(job).state for job in (*jobs, waiting)} == {JobState.SUCCEEDED}


def test_killed_worker_comes_back_and_one_interrupt_ends_everything(served, alone, tmp_path):
    file = tmp_path / "steps"
    job = make_steps(file, held_at=3)
    wait_for_items(file, 3)
    before = served.pids(COMPUTING)
    os.kill(served.main_pid(COMPUTING), signal.SIGKILL)
    wait_until(lambda: served.pids(COMPUTING) and served.pids(COMPUTING).isdisjoint(before), "a new worker")
    wait_until(lambda: Job.objects.filter(pk=job.pk, state=JobState.RUNNING, attempt=2), "the second attempt")
    hold(file, 5)
    wait_for_items(file, 5)
    served.program.send(signal.SIGINT)
    assert served.program.wait() == 0
    assert served.program.family() == {}
    told = served.program.output().splitlines()
    assert told[0] == f"The portal opens at {served.url}/ (Ctrl-C ends it)"
    assert [line for line in told if "shutdown" in line.lower()] == []
    assert answer(f"{served.url}/health/live") is None
    job.refresh_from_db()
    assert (job.state, job.attempt, job.claim) == (JobState.WAITING, 1, None)
    assert len(items_of(file)) == 5
    let_go(file)
    alone.stand()
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, items_of(file)) == (JobState.SUCCEEDED, 2, list(range(12)))


def test_portal_at_a_taken_address_ends_with_a_sentence(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings.ADDRESS = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(CommandError) as refusal:
            call_command("serve")
        assert str(refusal.value).startswith(f"The address {settings.ADDRESS} cannot be used (Address already in use)")
