"""A worker and a scheduler that run next to the tests, and a queue that begins empty."""

import sys

import pytest

from portal.jobs.models import Job, State
from tests.portal.processes.programs import Portal, empty_queue, end_all_programs


def pytest_collection_modifyitems(items):
    if sys.platform != "linux":
        for item in items:
            item.add_marker(pytest.mark.skip(reason="these tests find processes in /proc"))


@pytest.fixture(scope="session")
def all_programs(django_db_setup, tmp_path_factory):
    portal = Portal(tmp_path_factory.mktemp("logs"))
    yield portal
    portal.kill_all()


@pytest.fixture
def portal(all_programs, transactional_db):
    """The test's programs; those that a test leaves behind with a job are killed."""
    end_all_programs(but=all_programs)
    empty_queue()
    standing = all_programs.standing()
    yield all_programs
    if Job.objects.filter(state=State.RUNNING).exists():
        all_programs.kill_all()
    for program in set(all_programs.programs) - all_programs.standing() - standing:
        program.kill()
        all_programs.programs.remove(program)


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
