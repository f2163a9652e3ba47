"""Runs a command on PostgreSQL and Redis where both answer; says so and does nothing where they do not.

`python -m tests.services -- COMMAND`. TEST_DATABASE_URL and TEST_BROKER_URL name other servers than those of this
machine. Under CI (CI=true) a missing server is a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys

DATABASE_URL = os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
BROKER_URL = os.environ.get("TEST_BROKER_URL", "redis://127.0.0.1:6379/9")


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
    environment = os.environ | {
        "PORTAL_DATABASE_URL": DATABASE_URL,
        "PORTAL_BROKER_URL": BROKER_URL,
    }
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv))
