"""Queries and seconds of every page of a challenge that has grown, for each role, on a database of its own.

Run from the root of the repository: ``python -m benchmarks.pages``; with names of addresses after it, those alone.
``python -m tests.services -- python -m benchmarks.pages`` measures on PostgreSQL, in a test database that is dropped.
There are 1,000 sessions, 60,000 utterances, 40 systems and 5,000 jobs; the addresses are those that the portal has. A
page may take 20 queries and half a second: of this process's own time, SQLite included; on PostgreSQL of that time and
of the processor time of the process that answers its queries, or where that is on another machine of what they take by
the clock. Files that hold the whole of something have no budget. Prints what
takes more than a tenth of a second, and how many pages miss the budget.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

QUERIES, BUDGET_S, WORTH_TELLING_S = 20, 0.5, 0.1
OF_PHASES = ("studies:", "leaderboard:", "listeners:", "systems:", "api:")


def main() -> int:
    """Print what each page takes; the exit status is 1 where one takes too much."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PORTAL_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django

        django.setup()
        from django.test.utils import get_runner, setup_test_environment

        setup_test_environment()
        from django.conf import settings

        runner = get_runner(settings)(verbosity=0)
        databases = runner.setup_databases()
        try:
            return _measure(tuple(sys.argv[1:]) or ("",))
        finally:
            runner.teardown_databases(databases)


def _measure(wanted: tuple[str, ...]) -> int:
    from tests.portal.grown import GrownChallenge

    began = process_time()
    grown = GrownChallenge()
    print(f"made in {process_time() - began:.1f} s; most queries and seconds of a role")
    found = [_measure_pages(grown, grown.study, "", wanted, "")]
    found.append(_measure_pages(grown, grown.draft, "studies:", wanted, " in draft"))
    grown.close_study()
    found.append(_measure_pages(grown, grown.study, OF_PHASES, wanted, " with results"))
    pages, missed = (sum(column) for column in zip(*found, strict=True))
    print(f"{missed} of {pages} pages miss the budget of {QUERIES} queries and {BUDGET_S:g} s")
    return int(missed > 0)


def _measure_pages(
    grown: Any, study: Any, only: str | tuple[str, ...], wanted: tuple[str, ...], when: str
) -> tuple[int, int]:
    """How many pages there are and how many of them miss the budget."""
    from tests.portal.grown import ROLES, WHOLE, clients

    asked = [(role, client) for role, client in clients(grown, ROLES)]
    pages = missed = 0
    for name, address in grown.addresses(study).items():
        if not (name.startswith(only) and name.startswith(wanted)):
            continue
        costs = [(*_take(client, address), role) for role, client in asked]
        queries, seconds = max(cost[0] for cost in costs), max(cost[1] for cost in costs)
        is_missed = name not in WHOLE and (queries > QUERIES or seconds > BUDGET_S)
        pages, missed = pages + 1, missed + is_missed
        if is_missed or seconds > WORTH_TELLING_S:
            mark = "  over the budget" if is_missed else "  whole" if name in WHOLE else ""
            print(
                f"{name + when:40} {queries:3} queries {seconds:6.2f} s  {max(costs, key=lambda one: one[1])[2]}{mark}"
            )
    return pages, missed


def _take(client: Any, address: str) -> tuple[int, float]:
    """Queries, and the seconds of the quicker of two requests."""
    from django.db import connection

    from tests.portal.grown import count_queries

    of_server, is_here = [0.0], _server_seconds() is not None

    def wait(execute: Any, *query: Any) -> Any:
        began, used = perf_counter(), process_time()
        try:
            return execute(*query)
        finally:  # what this process used itself counts already
            of_server[0] += max(0.0, perf_counter() - began - (process_time() - used))

    found = []
    for _ in range(2):
        of_server[0] = 0.0
        with count_queries() as counted, ExitStack() as stack:
            if connection.vendor != "sqlite" and not is_here:
                stack.enter_context(connection.execute_wrapper(wait))
            began, of_server_before = process_time(), _server_seconds() or 0.0
            answer = client.get(address)
            for _ in answer.streaming_content if answer.streaming else ():
                pass
            answer.close()
            of_server[0] += (_server_seconds() or 0.0) - of_server_before
            found.append(process_time() - began + of_server[0])
    return counted(), min(found)


def _server_seconds() -> float | None:
    """Processor time of the process of PostgreSQL that answers this one; None where it is not on this machine."""
    from django.db import connection

    if connection.vendor != "postgresql" or connection.connection is None:
        return None
    process = Path(f"/proc/{connection.connection.info.backend_pid}")
    try:
        is_postgres = b"postgres" in (process / "cmdline").read_bytes()
        return int((process / "schedstat").read_text().split()[0]) / 1e9 if is_postgres else None
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
