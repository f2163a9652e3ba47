"""Runs a command on PostgreSQL and Redis where both answer; says so and does nothing where they do not.

`python -m tests.services -- COMMAND`. TEST_DATABASE_URL and TEST_BROKER_URL name other servers than those of this
machine. Under CI (CI=true) a missing server is a failure.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

DATABASE_URL = os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
BROKER_URL = os.environ.get("TEST_BROKER_URL", "redis://127.0.0.1:6379/9")


DATABASES_OF_REDIS = 16
_claimed: list[IO[str]] = []


def claim_number(first: int) -> int:
    """A number that no other process of tests on this machine has for as long as this one lives, the first or higher:
    that of its database of Redis, which names its database on PostgreSQL, too. Waits while all are taken.
    """
    while True:
        for number in range(first, DATABASES_OF_REDIS):
            with suppress(OSError):
                lock = Path(tempfile.gettempdir(), f"portal-tests-{number}.lock").open("a")  # noqa: SIM115 - kept open
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _claimed.append(lock)
                return number
        time.sleep(1)


def missing_servers() -> list[str]:
    """One sentence for each server that does not answer."""
    import psycopg
    import redis

    missing = []
    try:
        psycopg.connect(DATABASE_URL, connect_timeout=3).close()
    except psycopg.Error as error:
        missing.append(f"PostgreSQL does not answer at {DATABASE_URL}: {str(error).splitlines()[0]}")
    try:
        redis.Redis.from_url(BROKER_URL, socket_connect_timeout=3).ping()
    except redis.RedisError as error:
        missing.append(f"Redis does not answer at {BROKER_URL}: {error}")
    return missing


def main(arguments: list[str]) -> int:
    command = arguments[arguments.index("--") + 1 :]
    missing = missing_servers()
    if missing:
        print("Tests on PostgreSQL and Redis are skipped.", *missing, sep="\n")
        return 1 if os.environ.get("CI") == "true" else 0
    print("The same tests on PostgreSQL and Redis")
    environment = os.environ | {"PORTAL_DATABASE_URL": DATABASE_URL, "PORTAL_BROKER_URL": BROKER_URL}
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv))
