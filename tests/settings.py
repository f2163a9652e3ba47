"""The portal's settings for tests: the same file, with a data folder of its own for each run and process."""

import atexit
import os
import shutil
import tempfile
from datetime import timedelta

from django.utils import timezone

from tests.services import claim_number

# The matrices of tests are small: threads of two tests at a time would only wait for each other, and OpenMP spins.
for _library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
# Where threads are asked for, one that waits for another sleeps: cores that others wait for are not kept busy by it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Processes of pytest-xdist inherit the folder of the one that started them; each takes another.
_process = os.environ.get("PYTEST_XDIST_WORKER", "main")
if "PORTAL_DATA_DIR" not in os.environ or os.environ.get("TESTS_PROCESS", _process) != _process:
    _folder = tempfile.mkdtemp(prefix=f"portal-tests-{_process}-")
    os.environ |= {"PORTAL_DATA_DIR": _folder, "TESTS_PROCESS": _process}
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    # Where servers are shared, each has databases of its own: another's would be dropped, and its jobs taken.
    _server, _, _number = os.environ.get("PORTAL_BROKER_URL", "").rpartition("/")
    if _server.startswith("redis") or "PORTAL_DATABASE_URL" in os.environ:
        os.environ["TESTS_NUMBER"] = str(claim_number(int(_number or 9)))
        if _server.startswith("redis"):
            os.environ["PORTAL_BROKER_URL"] = f"{_server}/{os.environ['TESTS_NUMBER']}"

from portal.config.settings import *  # noqa: E402, F403

# A program of a test may stand for one on a machine whose clock is wrong.
if _ahead_s := float(os.environ.get("TEST_CLOCK_AHEAD_S", "0")):
    _right_time = timezone.now
    timezone.now = lambda: _right_time() + timedelta(seconds=_ahead_s)
# A program of a test may draw figures as pages show them, without those for print: they take most of its time.
if os.environ.get("TEST_FIGURES") == "svg":
    from evaluation.figures import style
    from listening.analysis.figures.view import StudyFigure

    style.KEPT = ("svg",)
    _all_files = vars(StudyFigure)["files"].fget
    _shown = property(lambda figure: [path for path in _all_files(figure) if path.endswith(".svg")])
    setattr(StudyFigure, "files", _shown)  # noqa: B010 - a property, to mypy
# Nothing that a test writes has to survive a power cut.
os.fsync = lambda fd: None  # noqa: ARG005
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":  # noqa: F405
    DATABASES["default"]["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"  # noqa: F405
else:
    DATABASES["default"].setdefault("OPTIONS", {})["options"] = "-c synchronous_commit=off"  # noqa: F405
    DATABASES["default"]["TEST"] = {"NAME": f"test_portal_{os.environ.get('TESTS_NUMBER', 0)}"}  # noqa: F405
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}  # noqa: F405
OWN_APPS = [*OWN_APPS, "tests.jobkit"]  # noqa: F405
INSTALLED_APPS = [*INSTALLED_APPS, "tests.jobkit"]  # noqa: F405
