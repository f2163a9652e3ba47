"""The portal's settings for tests: the same file, with a data folder of its own for each run and process."""

import atexit
import os
import shutil
import tempfile

if "PORTAL_DATA_DIR" not in os.environ:
    _folder = tempfile.mkdtemp(prefix="portal-tests-")
    os.environ["PORTAL_DATA_DIR"] = _folder
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)

from portal.config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}  # noqa: F405
INSTALLED_APPS = [*INSTALLED_APPS, "tests.jobkit"]  # noqa: F405
