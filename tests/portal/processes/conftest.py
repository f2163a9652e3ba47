"""A worker and a scheduler that run next to the tests, and a queue that begins empty."""

import os
import sys
import uuid

import psycopg
import pytest

from portal.jobs.models import Job, JobState
from tests.leftovers import surroundings
from tests.portal.processes.programs import Portal, empty_queue
from tests.services import DATABASE_URL, missing_servers
from tests.snapshots import empty_database

# What takes longest comes first; then what works with the programs that stand, before what ends them.
ORDER = ("test_from_zero", "test_whole_study", "test_documentation", "standing", "unattended", "alone")
# Their tests share what was started for the first of them.
TOGETHER = ("test_whole_study", "test_supervisor")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Deal the tests that start processes out to the processes of pytest: each begins with as many in a row, so that
    programs stand for all of them."""
    units = {}
    for item in filter(_starts_processes, items):
        if sys.platform != "linux":
            item.add_marker(pytest.mark.skip(reason="these tests find processes in /proc"))
        units.setdefault(item.path.stem if item.path.stem in TOGETHER else item.nodeid, []).append(item)
    hands = [[] for _ in range(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))]
    for unit in sorted(units.values(), key=lambda unit: _place(unit[0])):
        min(hands, key=len).extend(unit)
    others = [item for item in items if not _starts_processes(item)]
    share = len(items) // len(hands)
    items.clear()
    for hand in hands[:-1]:
        items += [*hand, *others[: max(0, share - len(hand))]]
        del others[: max(0, share - len(hand))]
    items += [*hands[-1], *others]


def _starts_processes(item):
    return item.path.parent.name == "processes" or item.path.stem in ORDER


def _place(item):
    names = {item.path.stem, *item.fixturenames}
    return next((place for place, name in enumerate(ORDER) if name in names), len(ORDER))


@pytest.fixture(scope="package")
def all_programs(django_db_setup, django_db_blocker, tmp_path_factory):
    """The programs of the tests of this folder: no test of another meets them, or what they wrote after the last."""
    portal = Portal(tmp_path_factory.mktemp("logs"))
    yield portal
    portal.kill_all()
    with django_db_blocker.unblock():
        empty_database()


@pytest.fixture
def portal(all_programs, transactional_db):
    """The test's programs; those that a test leaves behind with a job are killed."""
    empty_queue()
    standing = all_programs.standing()
    yield all_programs
    if Job.objects.filter(state=JobState.RUNNING).exists():
        all_programs.kill_all()
    for program in set(all_programs.programs) - all_programs.standing() - standing:
        program.kill()
        all_programs.programs.remove(program)
    surroundings.processes |= {program.pid for program in all_programs.programs}


@pytest.fixture
def alone(portal):
    """Nothing runs but what the test starts."""
    portal.kill_all()
    return portal


@pytest.fixture
def unattended(portal):
    """No worker takes up what is handed in: a check that ends removes the archive."""
    portal.end_workers()
    return portal


@pytest.fixture
def standing(portal):
    """A worker with two processes and a scheduler."""
    portal.stand()
    return portal


@pytest.fixture
def new_database():
    """Addresses of new databases on PostgreSQL, which go with the test."""
    if missing := missing_servers():
        pytest.skip(missing[0])
    names = []

    def make():
        names.append(f"restored_{uuid.uuid4().hex[:12]}")
        with psycopg.connect(DATABASE_URL, autocommit=True) as server:
            server.execute(f'CREATE DATABASE "{names[-1]}"')
        return f"{DATABASE_URL.rpartition('/')[0]}/{names[-1]}"

    yield make
    with psycopg.connect(DATABASE_URL, autocommit=True) as server:
        for name in names:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
