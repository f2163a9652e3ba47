"""Real processes for tests: the portal's programs against the database and the queue of this test run.

Everything here polls with a limit of its own, so that a problem shows as a failure and never as a test that hangs.
"""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import connection

from portal.config.celery import app
from portal.jobs.models import Job, JobState
from portal.jobs.services import create_job
from tests.jobkit.handlers import hold_file, read_lines

PATIENCE_S = 180.0  # a busy machine starves workers, which run at low priority
MARK = "TEST_PORTAL_MARK"
LOST_AFTER_S = 10  # a busy machine lets nobody who lives be silent for as long
QUICK = {"PORTAL_JOB_HEARTBEAT_S": "1", "PORTAL_JOB_LOST_AFTER_S": str(LOST_AFTER_S), "PORTAL_SWEEP_EVERY_S": "1"}
# For tests in which nothing dies: a process that a busy machine holds up is not taken for dead.
PATIENT = {"PORTAL_JOB_LOST_AFTER_S": "60"}


_ports = itertools.count(os.getpid() * 16)


def free_port():
    """A port that nobody uses, outside of those that the system gives to requests for any port."""
    while True:
        port = 10_000 + next(_ports) % 20_000
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_until(condition, what, *, seconds=PATIENCE_S):
    """The first true value of `condition`; fails with `what` was expected when the time is over."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.05)
    return value


def database_url():
    """Address of the test database, which has another name than the configured one."""
    known = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{known['NAME']}"
    secret = f":{known['PASSWORD']}" if known["PASSWORD"] else ""
    host = f"{known['HOST'] or '127.0.0.1'}:{known['PORT'] or 5432}"
    return f"postgresql://{known['USER']}{secret}@{host}/{known['NAME']}"


class Program:
    """One program in a session of its own, so that it can be killed with all its children."""

    def __init__(self, name, command, folder, *, place=settings.BASE_DIR, python=sys.executable, **environment):
        self.mark = uuid.uuid4().hex
        self.log = folder / f"{name}-{self.mark[:6]}.log"
        known = os.environ | QUICK | {"PORTAL_DATA_DIR": str(settings.DATA_DIR), MARK: self.mark}
        known |= {"PORTAL_DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "tests.settings"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [python, *command],
                cwd=place,
                env=known | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self):
        return self.process.pid

    @property
    def is_running(self):
        return self.process.poll() is None

    def output(self):
        return self.log.read_text(errors="replace")

    def family(self):
        """Pids and command lines of what runs of the program and all that it started, in sessions of their own too."""
        wanted = f"{MARK}={self.mark}".encode()
        return {int(folder.name): command for folder, command in _running() if wanted in _environment(folder)}

    def send(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=PATIENCE_S):
        """Exit code."""
        return self.process.wait(seconds)

    def kill(self):
        """``kill -9`` of the program and of everything that it started."""
        wait_until(self._kill_family, "the end of killed processes")
        self.process.wait(PATIENCE_S)

    def _kill_family(self):
        family = self.family()
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not family


def _running():
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
            if command:  # a zombie has none
                yield folder, command


def parent_of(pid):
    """Pid of the process that started this one."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def _environment(folder):
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


class Portal:
    """The programs of a test; worker, scheduler and web server stand for all tests until one of them kills them."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = []
        self.worker = None
        self.scheduler = None
        self.server = None  # the `WebServer` that stands

    def start(self, name, *command, **environment):
        program = Program(name, command, self.folder, **environment)
        self.programs.append(program)
        return program

    def start_worker(self, *, queues="mail,intake,light,cpu,gpu", concurrency=2, **environment):
        command = ["-m", "celery", "--skip-checks", "--app", "portal.config.celery", "worker", "--queues"]
        command += [queues, "--concurrency", str(concurrency), "--loglevel", "INFO"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        return self.start("worker", *command, **environment)

    def start_scheduler(self, **environment):
        return self.start("scheduler", "manage.py", "scheduler", "--skip-checks", **environment)

    def stand(self):
        """The standing worker and scheduler run; whichever does not is started."""
        if self.worker is None or not self.worker.is_running:
            self.worker = self.start_worker()
        self.stand_scheduler()

    def stand_scheduler(self):
        if self.scheduler is None or not self.scheduler.is_running:
            self.scheduler = self.start_scheduler()

    def end_workers(self):
        """Neither worker nor scheduler stands any more."""
        for program in (self.worker, self.scheduler):
            if program is not None:
                program.kill()
                self.programs.remove(program)
        self.worker = self.scheduler = None

    def standing(self):
        """The programs that the next test takes over."""
        return {self.worker, self.scheduler, self.server and self.server.program}

    def kill_all(self):
        for program in self.programs:
            program.kill()
        self.programs.clear()
        self.worker = self.scheduler = self.server = None


def empty_queue():
    """Take every message out of the queue."""
    with app.connection_for_write() as broker, broker.channel() as channel:
        for queue in app.amqp.queues.values():
            bound = queue(channel)
            bound.declare()
            bound.purge()


def lose_queue():
    """Lose the queue as badly as its kind can: remove the folder; or flush Redis and cut every connection to it."""
    if settings.CELERY_BROKER_URL.startswith("filesystem"):
        shutil.rmtree(settings.BROKER_DIR)
    elif settings.CELERY_BROKER_URL.startswith("redis"):
        import redis

        server = redis.Redis.from_url(settings.CELERY_BROKER_URL)
        server.flushdb()
        ours = str(server.connection_pool.connection_kwargs["db"])
        for client in server.client_list():
            if client["db"] == ours and int(client["id"]) != server.client_id():
                server.client_kill_filter(_id=client["id"])
    else:
        empty_queue()


def make_steps(file, *, items=12, pause_s=0.05, held_at=None, **fields):
    """A job that writes one line for each item, and waits after so many where it is held."""
    if held_at is not None:
        hold(file, held_at)
    parameters = {"file": str(file), "items": items, "pause_s": pause_s}
    return create_job(kind="test-steps", title=f"Steps to {file.name}", parameters=parameters, **fields)


def hold(file, items):
    """Let the job of this file write so many lines and then wait, so that whatever happens to it meets it at work."""
    fresh = file.with_name(f"{file.name}.fresh")
    fresh.write_text(str(items))
    fresh.replace(hold_file(file))


def let_go(*files):
    for file in files:
        hold_file(file).unlink()


def wait_for_end(job, *, seconds=PATIENCE_S):
    """The job as it ended."""
    return wait_until(
        lambda: Job.objects.filter(
            pk=job.pk, state__in=[JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED]
        ).first(),
        f"the end of {job}",
        seconds=seconds,
    )


def processes_of(worker, folder):
    """Pids of the processes that do a worker's jobs, known beforehand so that a kill meets a quick job at work."""
    wait_for_end(make_steps(folder / "first", items=1))
    return set(worker.family()) - {worker.pid}


def wait_for_items(file, count):
    """Process that runs the job of this file, once it has written so many lines."""
    wait_until(lambda: len(read_lines(file)) >= count, f"{count} lines in {file}")
    return read_lines(file)[-1][1]


def items_of(file):
    return [item for item, _ in read_lines(file)]
