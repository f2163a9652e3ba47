"""Which tests run no branch of the product that others do not run, and are dear: `make test` leaves them to
`make test-slow`.

`python -m tests.repeated` (a quarter of an hour) runs the tests that need no browser and no other process, notes for
each what it runs and how long it takes, and writes those tests to `repeated.txt`, the dearest first to go. Who may see
or do what, and what is held against published numbers, stays in `make test` whatever it costs.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

LIST = Path(__file__).with_name("repeated.txt")
HEADER = """\
# Tests that only make test-slow runs: each takes a fifth of a second or more of processor time, and others run every
# branch of the product that it runs. Made by: python -m tests.repeated
"""
ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("anonymization", "common", "demo", "evaluation", "listening", "portal", "speech")
LEAST_S = 0.2
# The tables are described in the documentation of coverage.
BRANCHES = """SELECT context.context, file.path, fromno, tono
    FROM arc JOIN context ON context.id = context_id JOIN file ON file.id = file_id"""
MOST_OF_CHILDREN = 0.3  # of the time of a test: what other processes run is not noted
ELSEWHERE = ("processes", "browser", "test_documentation.py")
KEPT = re.compile(
    # who may see or do what, and what must not be lost
    r"access|blind|nobody|not_found|for_whom|organizers|named|published|public_|erasure|withdraw|signed|password|token"
    r"|hostile|test_farming|test_leases|test_sessions_at_once|killed_run_is_continued"
    # numbers, and the ways to them
    r"|kaldi|agree|equal|numbers_of|those_of_the_recipe|whole_submission_is_read|test_real_panel|test_any_request"
    r"|uploaded_speech_of_people|goes_from_received_to_the_leaderboard"
    # the house and its descriptions
    r"|test_house|test_migrations|description_is_valid"
)


@dataclass
class Run:
    """What a test took, in seconds of processor time (without fixtures that it shares with others, and of that in
    processes that it started), and what it ran in its own process: file, line before, line after."""

    all_s: float
    children_s: float
    branches: set[tuple[str, int, int]]

    @property
    def can_go(self) -> bool:
        return self.all_s >= LEAST_S and self.children_s <= MOST_OF_CHILDREN * self.all_s


class Notes:
    """The plugin of pytest that notes, in each of its processes, what each test runs and takes."""

    def __init__(self, folder: Path):
        self.times: dict[str, tuple[float, float]] = {}  # in all, and in processes that the test started
        self.shared_s = 0.0  # of the test that runs, for fixtures that others have, too
        self.path = folder / f"times-{os.getpid()}.json"
        self.coverage = coverage.Coverage(
            data_file=str(folder / f"branches-{os.getpid()}"),
            include=[f"{ROOT}/{package}/*" for package in PRODUCT],
            branch=True,
            config_file=False,
        )
        self.coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.coverage.switch_context(item.nodeid)
        before, self.shared_s = os.times(), 0.0
        result = yield
        after = os.times()
        children = after.children_user + after.children_system - before.children_user - before.children_system
        own = after.user + after.system - before.user - before.system - self.shared_s
        self.times[item.nodeid] = (own + children, children)
        self.coverage.switch_context("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        before = os.times()
        result = yield
        if fixturedef.scope != "function":
            after = os.times()
            self.shared_s += after.user + after.system - before.user - before.system
        return result

    def pytest_sessionfinish(self):
        self.coverage.stop()
        self.coverage.save()
        self.path.write_text(json.dumps(self.times))


def pytest_configure(config):
    config.pluginmanager.register(Notes(Path(os.environ["REPEATED_NOTES"])))


def run_tests(folder: Path) -> None:
    ignored = [f"--ignore-glob=*/{name}" for name in ELSEWHERE]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "tests.repeated", "-m", "not slow"]
    environment = os.environ | {"REPEATED_NOTES": str(folder)}
    subprocess.run([*command, *ignored, "tests"], cwd=ROOT, env=environment, check=True)


def read_notes(folder: Path) -> dict[str, Run]:
    runs = {}
    for path in folder.glob("times-*.json"):
        for name, (all_s, children_s) in json.loads(path.read_text()).items():
            runs[name] = Run(all_s, children_s, set())
    for path in folder.glob("branches-*"):
        with closing(sqlite3.connect(path)) as connection:
            for name, *branch in connection.execute(BRANCHES):
                if name in runs:
                    runs[name].branches.add(tuple(branch))
    return runs


def choose(runs: dict[str, Run]) -> list[str]:
    """The dearest first, as long as others run all that it runs; of a test with several cases one stays."""
    times_run = Counter(branch for run in runs.values() for branch in run.branches)
    cases = Counter(name.partition("[")[0] for name in runs)
    chosen = []
    for name, run in sorted(runs.items(), key=lambda item: (-item[1].all_s, item[0])):
        test, has_cases, _ = name.partition("[")
        if not run.can_go or KEPT.search(name) or (has_cases and cases[test] == 1):
            continue
        if all(times_run[branch] > 1 for branch in run.branches):
            times_run.subtract(run.branches)
            cases[test] -= 1
            chosen.append(name)
    return sorted(chosen)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        LIST.write_text(HEADER)  # those that are in it run, too
        run_tests(Path(folder))
        runs = read_notes(Path(folder))
    chosen = choose(runs)
    LIST.write_text(HEADER + "".join(f"{name}\n" for name in chosen))
    print(f"{len(chosen)} of {len(runs)} tests, {sum(runs[name].all_s for name in chosen):.0f} s of", end=" ")
    print(f"{sum(run.all_s for run in runs.values()):.0f} s of processor time: {LIST.relative_to(ROOT)}")
