"""Starts the processes of the portal on one machine and runs them as one.

First everything has to be in order, told in one sentence where it is not. Then each line that a process prints is
marked with its name, one that dies is started again, and one signal ends all of them.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import Error

from common.child_process import end_with_parent
from common.cores import count_cores
from common.memory import total_bytes
from common.wording import first_line

# What libraries bring and no page asks for; to compress it would take half of the time of a start.
UNUSED_STATIC_FILES = ["flags", "rest_framework"]
# Of `serve`: mails, what people send and short jobs have a worker of their own, so that none waits for a computation.
SHORT, LONG = "mail,intake,light", "cpu,gpu"
QUEUES = f"{SHORT},{LONG}"
SHORT_PROCESSES = 2
# Of the environment of a worker: the seconds without anything to do after which it ends.
UNTIL_IDLE = "VOICEPRIVACY_UNTIL_IDLE_S"
# A job that computes takes about so much memory (`job_memory_bytes` of the metrics).
JOB_BYTES = 1_500_000_000
PATIENCE_S = 25.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
STEADY_AFTER_S = 60.0


def prepare() -> None:
    """Bring the database and the static files up to date.

    Raises:
        CommandError: the database does not answer or is damaged, or the data folder cannot be written.
    """
    try:
        call_command("migrate", verbosity=0)
    except Error as error:
        raise CommandError(
            f"The database cannot be used ({first_line(error)}). Start or fix it, or set PORTAL_DATABASE_URL; "
            "the SQLite file is portal.sqlite3 in the data folder."
        ) from error
    except OSError as error:
        raise _unwritable(error) from error
    collect_static_files()


def collect_static_files() -> None:
    """Bring the static files up to date.

    Raises:
        CommandError: the data folder cannot be written.
    """
    try:
        call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=UNUSED_STATIC_FILES)
    except OSError as error:
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> CommandError:
    return CommandError(f"The data folder cannot be written ({error.strerror or error}). Make room or fix its rights.")


@contextmanager
def hold(folder: Path, address: str) -> Iterator[None]:
    """Hold the data folder for this portal, whose processes share one queue and one database in it.

    The lock ends with this process, however that ends; those that it starts do not inherit it. Ctrl-C ends it quietly.

    Raises:
        CommandError: another portal holds the folder, or it cannot be locked.
    """
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CommandError(
                f"Another portal runs on the data folder {folder}: {file.read().strip() or 'it is just starting'}. "
                "Use that one, end it, or set PORTAL_DATA_DIR to another folder."
            ) from None
        except OSError as error:
            raise CommandError(
                f"The data folder {folder} cannot be locked ({error.strerror}). Set PORTAL_DATA_DIR to a local one."
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}, http://{address}/\n")
        file.flush()
        try:
            yield
        except KeyboardInterrupt:  # Ctrl-C before the processes run
            raise SystemExit(130) from None


def require_free(address: str) -> None:
    """Refuse an address at which the web server could not listen.

    Raises:
        CommandError: it is taken or not an address of this machine.
    """
    host, _, port = address.rpartition(":")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise CommandError(
            f"The address {address} cannot be used ({error.strerror}). Choose another, such as 127.0.0.1:8001, with "
            "make demo ADDRESS=… or make run ADDRESS=…"
        ) from None


@dataclass
class Process:
    """One supervised program; the lines in `hushed` are not worth telling."""

    name: str
    command: list[str]
    hushed: frozenset[str] = frozenset()
    running: subprocess.Popen[str] | None = None
    started_at: float = 0.0
    failures: int = 0
    start_at: float = field(default=0.0)


class Supervisor:
    """Keeps the processes running until it is told to stop."""

    def __init__(self, processes: list[Process], say: Callable[[str], None]) -> None:
        self.processes = processes
        self.say = say
        self.stopping = threading.Event()

    def run(self) -> None:
        """Run until a signal or `stop`; returns when every process has ended."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.stopping.set())
        try:
            while not self.stopping.wait(0.2):
                for process in self.processes:
                    self._look_after(process)
        finally:
            self._end_all()

    def _look_after(self, process: Process) -> None:
        now = time.monotonic()
        if process.running is None:
            if now >= process.start_at:
                self._start(process, now)
            return
        code = process.running.poll()
        if code is None:
            return
        process.failures = 1 if now - process.started_at > STEADY_AFTER_S else process.failures + 1
        pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (process.failures - 1))
        _kill_group(process.running)
        self._tell(f"{process.name} ended ({_how(code)}); it starts again in {pause:.0f} s")
        process.running, process.start_at = None, now + pause

    def _start(self, process: Process, now: float) -> None:
        # A session of its own: the terminal's Ctrl-C reaches the supervisor alone, which then ends the others in order.
        process.running = subprocess.Popen(  # noqa: S603
            process.command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=partial(end_with_parent, signal.SIGTERM),
        )
        process.started_at = now
        threading.Thread(target=self._echo, args=(process, process.running), daemon=True).start()

    def _echo(self, process: Process, running: subprocess.Popen[str]) -> None:
        assert running.stdout is not None  # noqa: S101
        for line in map(str.rstrip, running.stdout):
            if line and line not in process.hushed:
                self._tell(f"{process.name:<9} | {line}")

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # the terminal is gone; the processes must not wait for it
            self.say(line)

    def _end_all(self) -> None:
        alive = [process for process in self.processes if process.running and process.running.poll() is None]
        for process in alive:
            process.running.terminate()  # type: ignore[union-attr]
        deadline = time.monotonic() + PATIENCE_S
        for process in alive:
            try:
                process.running.wait(max(0.1, deadline - time.monotonic()))  # type: ignore[union-attr]
            except subprocess.TimeoutExpired:
                self._tell(f"{process.name} did not end in time and is killed")
            _kill_group(process.running)  # type: ignore[arg-type]


def _kill_group(process: subprocess.Popen[str]) -> None:
    """End what a program left behind, such as the children of a killed worker, and itself."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def web_command(address: str, *, threads: int) -> list[str]:
    """Return the command of one web server, without the checks of Django, which its starter has run."""
    web = [sys.executable, "-m", "gunicorn", "portal.config.wsgi", "--config", "python:portal.config.gunicorn"]
    return [*web, "--bind", address, "--threads", str(threads)]


def choose_processes(queues: str, *, cores: int | None = None, memory_bytes: int | None = None) -> int:
    """Return how many jobs a worker of these queues runs at a time, if nobody says it.

    One with a graphics card alone, else as many as there are cores up to four and then one for four cores, each of
    which uses several threads, but no more than fit into memory.
    """
    if queues == "gpu":
        return 1
    cores, memory_bytes = cores or count_cores(), memory_bytes or total_bytes()
    fitting = memory_bytes // JOB_BYTES if memory_bytes else cores
    return max(1, min(max(min(cores, 4), cores // 4), fitting))


def worker_command(queues: str, *, processes: int) -> list[str]:
    """Return a worker for queues with commas between them; it works at low priority, so that pages stay quick.

    One of short jobs goes before those that compute.

    Args:
        processes: jobs at a time; 0 for `choose_processes`.
    """
    processes = processes or choose_processes(queues)
    # A worker that is root says so at length; who runs the portal as root has chosen to.
    worker = ["nice", "-n", "10" if {"cpu", "gpu"} & set(queues.split(",")) else "5", sys.executable]
    worker += ["-W", "ignore:You're running the worker with superuser privileges"]
    worker += ["-m", "celery", "--skip-checks", "--quiet", "--app", "portal.config.celery", "worker"]
    worker += ["--queues", queues, "--concurrency", str(processes)]
    worker += ["--loglevel", settings.LOG_LEVEL]  # Celery would set another one
    return [*worker, "--without-gossip", "--without-mingle", "--without-heartbeat"]


def portal_processes(address: str, *, web_threads: int, worker_processes: int) -> list[Process]:
    """Return the web server, the workers and the scheduler of a portal on one machine.

    Args:
        worker_processes: how many computations run at a time, 0 for `choose_processes`; `SHORT_PROCESSES` short jobs
            run beside them.
    """
    hushed = frozenset({"worker: Warm shutdown (MainProcess)"})
    return [
        Process("web", web_command(address, threads=web_threads)),
        Process("worker", worker_command(LONG, processes=worker_processes), hushed),
        Process("light", worker_command(SHORT, processes=SHORT_PROCESSES), hushed),
        Process("scheduler", [sys.executable, "-m", "portal.config", "scheduler", "--skip-checks"]),
    ]
