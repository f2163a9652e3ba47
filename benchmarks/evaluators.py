"""Three hundred evaluators at once, some of whom quit and some of whom cheat, against the portal's own web server.

Run from the root of the repository: ``python -m benchmarks.evaluators`` (SQLite) or with
``TEST_DATABASE_URL=postgresql://…`` (PostgreSQL; a database of its own is made there and dropped). Locust is the load
generator. Afterwards the database is compared with what was acknowledged: no answer may be lost, doubled or foreign,
every trial must be answered in a finished block, and a block must have been held by one person at a time. Prints the
throughput, the median and the 95th percentile of an answer, and their ratio to a bare view that writes one row and was
asked by the same evaluators in the same moments; budget 2 for the median. At the end it prints what an answer to a
trial takes: processor time of the portal's processes and growth of the database, with pages, recordings, heartbeats
and what the bare view does; the processor time of PostgreSQL is not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

BUDGET = 2.0
DATABASE = "evaluators_benchmark"
ROOT = Path(__file__).parents[1]
LEASE_MINUTES = 1
MOST_ROUNDS = 6


@dataclass
class Running:
    """A portal: its address, and once it has ended the processor time of all its processes."""

    address: str
    used_s: float = 0.0


def main() -> int:
    """Print the figures; the exit status is 1 where one misses its budget or an answer is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluators", type=int, default=300)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--quitting", type=float, default=0.3)
    parser.add_argument("--hostile", type=float, default=0.1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _database(os.environ.get("TEST_DATABASE_URL", "")) as database:
        os.environ |= {"PORTAL_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "benchmarks._bare_settings"}
        if database:
            os.environ["PORTAL_DATABASE_URL"] = database
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        study = _make_study(options.evaluators, options.trials)
        before = measure_database()
        with _portal() as portal:
            status = _measure(study, portal.address, Path(folder) / "answers.jsonl", options)
        from listening.app.models import Answer

        answered = Answer.objects.values("session", "trial").distinct().count()
        print(
            f"of an answer: {1000 * portal.used_s / answered:.0f} ms of the portal's processor time, "
            f"{(measure_database() - before) / answered:,.0f} bytes of the database"
        )
        return status


def measure_database() -> int:
    """Bytes of the database's pages."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        else:
            cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def _make_study(evaluators: int, trials: int) -> Any:
    from listening.app.models import Study
    from tests.listening.factories import make_study

    return make_study(
        evaluators=evaluators,
        trials=trials,
        platform=Study.Platform.PROLIFIC,
        platform_settings={
            "parameters": {"person": "PROLIFIC_PID", "study": "STUDY_ID", "session": "SESSION_ID"},
            "codes": {"complete": "C1", "screened-out": "C2", "failed-attention": "C3", "technical": "C4"},
        },
        screening={"sound": False, "headphones": "none"},
        lease_minutes=LEASE_MINUTES,
        places_per_network=evaluators * MOST_ROUNDS,  # they all come from here
        is_simulated=True,
    )


def _measure(study: Any, address: str, log: Path, options: argparse.Namespace) -> int:
    first, quitting, told = 1, options.quitting, {}
    for number in range(1, MOST_ROUNDS + 1):
        if not (left := study.blocks.filter(is_finished=False).count()):
            break
        begun = time.monotonic()
        done = _load(address, study.link_key, left, first, quitting, options.hostile, log)
        print(f"round {number}: {left} evaluators in {time.monotonic() - begun:.0f} s", flush=True)
        told, first, quitting = told or done, first + left, 0.0
        _wait_for_leases(study)
    problems = [f"{text}: {count} times" for text, count in told["problems"].items()]
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    problems += check(study, lines)
    answer, bare = told["stats"]["answer"], told["stats"]["bare"]
    ratio = answer["p50_ms"] / max(1.0, bare["p50_ms"])
    print(f"answers: {answer['per_s']:.0f}/s, median {answer['p50_ms']:.0f} ms, 95 % {answer['p95_ms']:.0f} ms")
    print(f"bare view: median {bare['p50_ms']:.0f} ms, 95 % {bare['p95_ms']:.0f} ms")
    print(
        f"ratio of the medians {ratio:.2f}, of the 95th percentiles {answer['p95_ms'] / max(1.0, bare['p95_ms']):.2f}"
    )
    print(f"answers sent again for want of a reply: {sum(line.get('status') == 0 for line in lines)}")
    print(
        "\n".join(problems)
        or "no answer lost, doubled or foreign; every trial covered; one holder of a block at a time"
    )
    return int(ratio > BUDGET or bool(problems))


def _load(address: str, key: str, users: int, first: int, quitting: float, hostile: float, log: Path) -> Any:
    command = [sys.executable, "-m", "benchmarks._evaluators", "--host", address, "--key", key, "--log", str(log)]
    command += ["--users", str(users), "--first", str(first)]
    command += ["--quitting", str(quitting), "--hostile", str(hostile)]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def _wait_for_leases(study: Any) -> None:
    """Until the leases of those who quit are over."""
    while study.blocks.filter(is_finished=False, holder__isnull=False).exists():
        time.sleep(2)


def check(study: Any, lines: list[dict[str, Any]]) -> list[str]:
    """What the database says otherwise than the replies did."""
    from listening.app.models import Answer

    acknowledged, sent = {}, defaultdict(set)
    for line in lines:
        for task, rating in line.get("answers", {}).items():
            place = (line["token"], line["position"], task)
            sent[place].add(rating)
            if line["status"] == 200 and (line["kind"] == "answer" or place not in acknowledged):
                acknowledged.setdefault(place, rating)
    answers = Answer.objects.filter(session__study=study).select_related("session", "trial")
    stored = {(one.session.token, one.trial.position, one.task): one.rating for one in answers}
    problems = [f"lost: {place}" for place in acknowledged.keys() - stored.keys()]
    problems += [f"changed: {place}" for place in acknowledged.keys() & stored if acknowledged[place] != stored[place]]
    problems += [f"never sent: {place}" for place, rating in stored.items() if rating not in sent[place]]
    problems += [f"foreign: {one.pk}" for one in answers if one.trial.block_id != one.session.block_id]
    if len(stored) != answers.count():
        problems.append(f"doubled: {answers.count() - len(stored)} answers")
    return problems + list(_uncovered(study)) + list(_held_twice(study))


def _uncovered(study: Any) -> Iterator[str]:
    for block in study.blocks.select_related("holder"):
        if not block.is_finished or block.holder is None:
            yield f"block {block.number} is not finished"
        elif block.holder.answers.count() != block.trials.count() * len(study.tasks):
            yield f"block {block.number} is finished without all of its answers"


def _held_twice(study: Any) -> Iterator[str]:
    """A session holds its block from its first trial to its end."""
    for block in study.blocks.all():
        last = None
        for session in block.sessions.order_by("trials_started_at"):
            if last is not None and (last.ended_at is None or last.ended_at > session.trials_started_at):
                yield f"block {block.number} was held by two sessions at once"
            last = session


@contextmanager
def _portal() -> Iterator[Running]:
    """Web server, workers and scheduler as `manage.py serve` starts them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    environment = os.environ | {"PORTAL_ADDRESS": address, "PORTAL_SWEEP_EVERY_S": "5", "PORTAL_LOG_LEVEL": "WARNING"}
    portal = Running(f"http://{address}")
    with (Path(os.environ["PORTAL_DATA_DIR"]) / "serve.log").open("w") as output:
        command = [sys.executable, "manage.py", "serve"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        _wait_until_open(f"http://{address}/health/live")
        yield portal
    finally:
        before = os.times()
        process.send_signal(signal.SIGTERM)
        process.wait()
        after = os.times()
        portal.used_s = after.children_user + after.children_system - before.children_user - before.children_system


def _wait_until_open(address: str) -> None:
    for _ in range(240):
        try:
            with urlopen(address, timeout=2):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise SystemExit(f"{address} did not open")


@contextmanager
def _database(server: str) -> Iterator[str]:
    """A database of its own on the server, dropped at the end; nothing for SQLite."""
    if not server:
        yield ""
        return
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {DATABASE}")
        yield f"{server.rpartition('/')[0]}/{DATABASE}"
        connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


if __name__ == "__main__":
    sys.exit(main())
