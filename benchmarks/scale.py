"""Queries, processor time and memory of every page of a large challenge, for each role, on a database of its own.

Run from the root of the repository: ``python -m benchmarks.scale``; with names of addresses after it, those alone.
``python -m tests.services -- python -m benchmarks.scale`` measures on PostgreSQL, in a test database that is dropped.
The rows are simulated and added in bulk: 40 systems with 16 data sets, 60,000 utterances and 240,000 measured files,
1,000 sessions with three ratings of 52 trials (7 of 10 sessions finished), 5,000 jobs. Files share one content. Each
size is an argument: ``python -m benchmarks.scale --help``. The addresses are those that the portal has.

A page may take 20 queries, half a second and 100 MB: of this process's own time, SQLite included; on PostgreSQL of that
time and of the processor time of the process that answers its queries, or where that is on another machine of what they
take by the clock. Memory is the most that Python and numpy held for the answer beyond what they had before, in a
request of its own. Files that hold the whole of something have no budget. A line is what the role for which the
page takes longest needs, of those that can open it; the end says how many pages miss the budget.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import tracemalloc
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

QUERIES, BUDGET_S, BUDGET_MB = 20, 0.5, 100
OF_PHASES = ("studies:", "leaderboard:", "listeners:", "systems:", "api:")
OPENED = (200, 286)  # 286 ends the questions of a page that refreshes itself
SIZES = {
    "systems": 40,
    "sets": 16,
    "utterances": 60_000,
    "files": 240_000,
    "sessions": 1000,
    "trials": 52,
    "jobs": 5000,
}


@dataclass(frozen=True)
class Cost:
    """What the answer to one role took, and whether it was the page."""

    role: str
    status: int
    queries: int
    seconds: float


def main(arguments: list[str]) -> int:
    """Print what each page takes; the exit status is 1 where one takes too much."""
    wanted = read_sizes(arguments)
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
            return measure_challenge(wanted)
        finally:
            runner.teardown_databases(databases)


def read_sizes(arguments: list[str]) -> argparse.Namespace:
    """The sizes of `SIZES`, and `names`: how the names of the pages begin."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("names", nargs="*", default=[""], help="how the names of the pages begin (default: all)")
    for name, size in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=size, help=f"how many (default {size:,})")
    return parser.parse_args(arguments)


def measure_challenge(wanted: argparse.Namespace) -> int:
    """Load a challenge of these sizes and print what its pages take; 1 where one takes too much."""
    from django.db import connection

    from tests.portal.grown import GrownChallenge, Size

    of_others = max(0, wanted.files - wanted.utterances) // (wanted.systems - 1)
    sizes = {name: getattr(wanted, name) for name in SIZES if name != "files"}
    began = perf_counter()
    grown = GrownChallenge(Size(**sizes, files=of_others))
    print(f"Simulated challenge on {connection.vendor}, made in {perf_counter() - began:.1f} s: {_describe(grown)}")
    print(f"{'page':44} {'queries':>7} {'seconds':>8} {'MB':>6}  role")
    names = tuple(wanted.names)
    found = _measure_pages(grown, grown.study, "", names, "")
    found += _measure_pages(grown, grown.draft, "studies:", names, " in draft")
    grown.close_study()
    found += _measure_pages(grown, grown.study, OF_PHASES, names, " with results")
    print(
        f"{found['missed']} of {found['pages']} pages miss the budget of {QUERIES} queries, {BUDGET_S:g} s and "
        f"{BUDGET_MB} MB"
    )
    return int(found["missed"] > 0)


def _describe(grown: Any) -> str:
    from listening.app.models import Answer, Session
    from portal.challenges.models import DataSet, Utterance
    from portal.jobs.models import Job
    from portal.submissions.models import SubmittedFile, System

    counted = {
        "systems": System.objects.filter(edition=grown.edition, submissions__state="evaluated").distinct(),
        "data sets": DataSet.objects.filter(corpus=grown.edition.corpus),
        "utterances": Utterance.objects,
        "files": SubmittedFile.objects,
        "sessions": Session.objects,
        "answers": Answer.objects,
        "jobs": Job.objects,
    }
    return ", ".join(f"{rows.count():,} {name}" for name, rows in counted.items())


def _measure_pages(
    grown: Any, study: Any, only: str | tuple[str, ...], wanted: tuple[str, ...], when: str
) -> Counter[str]:
    """Print a line for each page that a role can open; how many there are and how many of them miss the budget."""
    from tests.portal.grown import ROLES, WHOLE, clients

    found: Counter[str] = Counter()
    asked = dict(clients(grown, ROLES))
    for name, address in grown.addresses(study).items():
        if not (name.startswith(only) and name.startswith(wanted)):
            continue
        costs = [_take(role, client, address) for role, client in asked.items()]
        opened = [cost for cost in costs if cost.status in OPENED]
        if not opened:
            continue
        dearest = max(opened, key=lambda cost: cost.seconds)
        queries, megabytes = max(cost.queries for cost in opened), _hold(asked[dearest.role], address)
        is_missed = queries > QUERIES or dearest.seconds > BUDGET_S or megabytes > BUDGET_MB
        found["pages"] += 1
        found["missed"] += is_missed and name not in WHOLE
        mark = "  whole" if name in WHOLE else "  over the budget" if is_missed else ""
        print(f"{name + when:44} {queries:7} {dearest.seconds:8.3f} {megabytes:6.1f}  {dearest.role}{mark}", flush=True)
    return found


def _take(role: str, client: Any, address: str) -> Cost:
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
            status = _read(client, address)
            of_server[0] += (_server_seconds() or 0.0) - of_server_before
            found.append(process_time() - began + of_server[0])
    return Cost(role, status, counted(), min(found))


def _read(client: Any, address: str) -> int:
    """Ask for an address and read all of the answer, part by part; its status."""
    answer = client.get(address)
    for _ in answer.streaming_content if answer.streaming else ():
        pass
    return int(answer.status_code)


def _hold(client: Any, address: str) -> float:
    """The most megabytes that an answer held beyond what was there before."""
    from django.db import reset_queries

    reset_queries()
    tracemalloc.start()
    try:
        _read(client, address)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


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
    sys.exit(main(sys.argv[1:]))
