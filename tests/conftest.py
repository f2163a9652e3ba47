"""What all tests share: one browser a process (two would not live in one thread), the same examples of properties
everywhere, and a mixed order of files."""

import gc
import os
import pkgutil
import signal
import zlib
from contextlib import suppress
from importlib import import_module

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.internal.conjecture import providers

from portal.jobs import workers
from tests import leftovers
from tests.browsing import (  # noqa: F401
    browser,
    check_page,
    lasting_contexts,
    new_page,
    operator_page,
    organizer_page,
    page,
    problems,
    traffic,
)
from tests.buckets import bucket_files, bucket_store  # noqa: F401
from tests.librispeech import write_data_directories, write_scores
from tests.quick_jobs import (  # noqa: F401
    archives_unheard,
    designs_without_limit,
    few_resamples,
    figures_of_pages,
    pages_without_drawings,
    plain_figures_of_studies,
    plain_refusals,
    quick_figures,
    quick_measures,
)
from tests.recordings import require_shared
from tests.snapshots import empty_by_snapshot, once  # noqa: F401

# A shell lets what it starts in the background ignore Ctrl-C, and the programs that these tests start would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The thread of a heartbeat cannot see the job that a test has not committed: it would take it for lost, or wait for it.
django_settings.JOB_HEARTBEAT_S = 10**6

# The garbage collector runs after 10,000 new objects instead of 700, which saves a tenth of the time of all tests.
gc.set_threshold(10_000)

# Property tests run on the same few examples in every environment: Hypothesis would otherwise mix in numbers and words
# of whatever modules happen to be loaded. `make test-random` explores; what it finds becomes an `@example` of its test.
_USUAL = {"database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("same", derandomize=True, max_examples=20, phases=[Phase.explicit, Phase.generate], **_USUAL)
settings.register_profile("random", max_examples=1000, print_blob=True, verbosity=Verbosity.normal, **_USUAL)
settings.load_profile(os.environ.get("TEST_PROPERTIES", "same"))
if os.environ.get("TEST_PROPERTIES", "same") == "same":
    providers._get_local_constants = providers.Constants


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """The database is made from the models; programs that migrate it find every migration applied."""
    with django_db_blocker.unblock():
        recorder = MigrationRecorder(connection)
        recorder.ensure_schema()
        applied = recorder.applied_migrations()
        for app in apps.get_app_configs():
            with suppress(ModuleNotFoundError):
                folder = import_module(f"{app.name}.migrations").__path__
                for module in pkgutil.iter_modules(folder):
                    if module.name[:1].isdigit() and (app.label, module.name) not in applied:
                        recorder.record_applied(app.label, module.name)
        empty_by_snapshot()


@pytest.fixture(scope="session")
def shared():
    """The folder of real speech and large files beside the repository, which no clone has: for slow tests alone."""
    return require_shared()


@pytest.fixture(scope="session")
def librispeech(tmp_path_factory):
    """The folder of the challenge's LibriSpeech directories, `data`, and of made-up scores, `scores`."""
    folder = tmp_path_factory.mktemp("librispeech")
    write_data_directories(folder / "data")
    write_scores(folder / "scores", folder / "data")
    return folder


@pytest.fixture(autouse=True)
def no_worker():
    """A test that makes its process a worker leaves none behind: what watches a worker's job ends the whole process at
    the job's limits."""
    yield
    workers._process.worker, workers._process.capacity = "", None


def pytest_configure(config):
    # The hooks of a conftest hear nothing of the fixtures of a session.
    config.pluginmanager.register(leftovers)


def pytest_collection_modifyitems(config, items):
    # Files in a mixed order, the same everywhere: those that wait for a browser then run beside those that compute. The
    # longest test, a whole demo, begins before all others.
    crc = {path: zlib.crc32(str(path.relative_to(config.rootpath)).encode()) for path in {item.path for item in items}}
    items.sort(key=lambda item: (item.get_closest_marker("golden") is None, crc[item.path]))
    for item in items:
        if item.path.parent.name in {"browser", "processes"}:
            item.add_marker(item.path.parent.name)


def pytest_collection_finish(session):
    """What was collected stays until the end: the garbage collector would otherwise look through thousands of tests
    again and again, half a second each time."""
    gc.collect()
    gc.freeze()
