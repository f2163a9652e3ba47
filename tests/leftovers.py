"""What one test leaves behind would meet the tests after it: a test that leaves processes, threads, rows, another
environment or another folder fails with a sentence, and what can be ended or put back is.

What a fixture of several tests starts is its own to end.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pytest_django.plugin import blocking_manager_key

from tests.snapshots import empty_database, find_filled_tables

PATIENCE_S = 5.0  # for what is about to end
MARK = "TESTS_OF_PROCESS"  # in the environment of what this process starts, and of what that starts
# They wait for requests and keep nothing of a test: live servers, Playwright, a store of files, what draws pictures,
# and what Python starts once for all that share memory.
WAITING_THREADS = ("LiveServerThread", "process_request_thread", "asyncio_", "_server_entry")
WAITING_PROCESSES = (
    "-m evaluation.figures.json_figures",
    "-m tests.portal.core.echo",
    "multiprocessing.resource_tracker",
    "multiprocessing.forkserver",
)
# Libraries set them when they are imported; the last is pytest's own.
LASTING_VARIABLES = ("KMP_", "TORCH", "MOONSHINE_", "PYTEST_CURRENT_TEST")


class Surroundings:
    """What is there beside a test and is not its own."""

    def __init__(self) -> None:
        os.environ[MARK] = str(os.getpid())
        self.mark = f"{MARK}={os.getpid()}".encode()
        self.threads: set[threading.Thread] = set()
        self.processes: set[int] = set()
        self.strangers: set[int] = set()
        self.row_makers: set[str] = set()  # fixtures whose rows several tests read
        self.variables: set[str] = set()  # those that such a fixture changes
        self.include_all()

    def include_all(self) -> None:
        """What is there now is not of one test."""
        self.include_running()
        self.environment, self.folder = read_environment(), Path.cwd()

    def include_running(self) -> None:
        """What runs now is not of one test."""
        self.threads = set(threading.enumerate())
        self.processes |= set(self.find_processes())

    def find_processes(self) -> dict[int, str]:
        """Numbers and commands of what this process, or what it started, has started and is not known."""
        numbers = {int(path.name) for path in Path("/proc").glob("[1-9]*")}
        self.strangers &= numbers
        self.processes &= numbers
        found = {}
        for number in numbers - self.strangers - self.processes:
            with suppress(ProcessLookupError, FileNotFoundError):
                parents = _find_parents(number)
                if os.getpid() not in parents and not self._has_mark(number):
                    self.strangers.add(number)
                elif self.processes.isdisjoint(parents):
                    found[number] = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        # One that has ended and waits for its parent has no command.
        return {number: command for number, command in found.items() if command}

    def _has_mark(self, number: int) -> bool:
        try:
            return self.mark in Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
        except (PermissionError, ProcessLookupError):  # of another person, of the kernel
            return False

    def find_left(self, *, with_orphans: bool = True) -> list[str]:
        """The threads and processes that a test left, as words; without those of processes that have ended, cheaper."""
        threads = [thread.name for thread in set(threading.enumerate()) - self.threads]
        left = [f"thread {name}" for name in threads if not any(words in name for words in WAITING_THREADS)]
        if with_orphans or _has_children():
            processes = self.find_processes().items()
            left += [
                f"process {number} ({command})"
                for number, command in processes
                if not any(words in command for words in WAITING_PROCESSES)
            ]
        return left

    def clear(self, *, with_orphans: bool = True) -> list[str]:
        """End and put back what a test left; each thing as words."""
        end = time.monotonic() + PATIENCE_S
        while (left := self.find_left(with_orphans=with_orphans)) and time.monotonic() < end:
            time.sleep(0.02)
        if left:
            for number in self.find_processes():
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        if changed := find_changes(self.environment) - self.variables:
            left.append(f"the environment with another {', '.join(sorted(changed))}")
            for name in changed:
                os.environ.pop(name, None)
            os.environ.update({name: self.environment[name] for name in changed & self.environment.keys()})
        if Path.cwd() != self.folder:
            left.append(f"the working folder {Path.cwd()}")
            os.chdir(self.folder)
        if left:
            self.include_all()
        return left


def read_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(LASTING_VARIABLES)}


def find_changes(environment: dict[str, str]) -> set[str]:
    """The variables that are others now, new or gone."""
    return {name for name, _ in environment.items() ^ read_environment().items()}


def _find_parents(number: int) -> list[int]:
    """The process that started this one, the one that started that, and so on, up to this one."""
    parents: list[int] = []
    while number > 1 and number != os.getpid():
        number = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
        parents.append(number)
    return parents


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


surroundings = Surroundings()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    if fixturedef.scope in {"function", "class"}:  # that of a class is made for each test of none, too
        return (yield)
    before = read_environment()
    try:
        return (yield)
    finally:
        surroundings.include_running()
        surroundings.variables |= find_changes(before)
        if "django_db_blocker" in fixturedef.argnames and fixturedef.argname != "django_db_setup":
            surroundings.row_makers.add(fixturedef.argname)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item, nextitem):
    try:
        return (yield)
    finally:
        left = surroundings.clear(with_orphans=nextitem is None or nextitem.path != item.path)
        fixtures = set(item.fixturenames)
        is_last = nextitem is None  # the database went with the session
        if not is_last and "_django_db_helper" in fixtures and fixtures.isdisjoint(surroundings.row_makers):
            with item.config.stash[blocking_manager_key].unblock():
                if tables := find_filled_tables():
                    left.append(f"rows in {', '.join(tables)}")
                    empty_database()
        if left:
            pytest.fail(f"{item.nodeid} left {'; '.join(left)}. A test ends and undoes what it begins.", pytrace=False)
