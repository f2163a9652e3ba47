"""`manage.py demo` in a fresh data folder: interrupted, it goes on where it was and ends with a leaderboard.

Beside it stand the results of studies whose listeners are simulated.

One more run finds everything there, opens at once and adds nothing.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from django.conf import settings

from tests.portal.processes.programs import free_port

pytestmark = pytest.mark.skipif(
    settings.DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3",
    reason="the demo has a data folder and a database of its own; it is tried once, with the embedded default",
)
LIMIT_S = 300
NEVER = "\0"
OPEN = "Ctrl-C ends it"  # the last line, after which nothing else is said
MOMENTS = (
    "Anonymise demo_trials_f · b2-demo",
    "Uploading wide.zip",
    "T02-p1 version 1: accepted",
    "Planning Demo ratings",
    "simulated listeners have answered",
)
TEAMS = ["Wide Range (simulated)", "Low Coefficients (simulated)", "Hasty Upload (simulated)"]
COUNTED = (
    "submissions_submission",
    "submissions_upload",
    "submissions_system",
    "teams_team",
    "jobs_job",
    "listening_study",
    "listening_session",
    "listening_answer",
    "listening_analysis",
)


class Demo:
    """A demo on a data folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"

    def run(self, *options: str, until: str = NEVER, action: Callable[[], Any] = lambda: None) -> list[str]:
        """Start the demo; once it prints `until`, do the `action` and send it a Ctrl-C. All that it printed.

        However it comes to its end, it must be a good one.
        """
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "TESTS_"))}
        mine = {"PORTAL_DATA_DIR": str(self.folder), "PORTAL_ADDRESS": self.address}
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", *options],
            cwd=settings.BASE_DIR,
            env=known | mine | {"DJANGO_SETTINGS_MODULE": "portal.config.settings"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        lines: list[str] = []
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                if until in line or (until != NEVER and OPEN in line):
                    action()
                    os.killpg(process.pid, signal.SIGINT)
                    until = NEVER
            assert process.wait(LIMIT_S) == 0, "\n".join(lines)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return lines

    def ask(self, question: str) -> list[Any]:
        """The first column of what the database answers, or each whole row of several."""
        with closing(sqlite3.connect(self.folder / "portal.sqlite3")) as database:
            rows = database.execute(question).fetchall()
        return [row[0] if len(row) == 1 else row for row in rows]

    def counts(self) -> dict[str, int]:
        return {table: self.ask(f"SELECT count(*) FROM {table}")[0] for table in COUNTED}

    def leaderboard(self) -> dict[str, Any]:
        """As everybody may download it."""
        with urlopen(f"http://{self.address}/editions/demo/leaderboard/leaderboard.json", timeout=60) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def runs(demo: Demo) -> list[list[str]]:
    """What each run printed: some that were interrupted, then one that was left to end."""
    found = []
    for moment in MOMENTS:
        found.append(demo.run(until=moment))
        assert any(moment in line for line in found[-1]), moment
    return [*found, demo.run("--and-exit")]


@pytest.fixture(scope="module")
def lines(runs: list[list[str]]) -> list[str]:
    """What the run printed that was left to end."""
    return runs[-1]


def test_demo_goes_on_after_interrupts_and_ends_well(demo: Demo, runs: list[list[str]]) -> None:
    said = [line for lines in runs for line in lines]
    assert "Traceback" not in "\n".join(said)
    assert "The corpus demo is there already." in runs[-1]
    assert "T02-c1 version 1: evaluated: 89 of 89 numbers were recomputed; 2 reported numbers differ from ours." in said
    question = (
        "SELECT system.label, submission.state, submission.errors FROM submissions_submission submission "
        "JOIN submissions_system system ON system.id = submission.system_id WHERE system.edition_id IS NOT NULL"
    )
    assert sorted(demo.ask(question)) == [
        ("B2", "evaluated", 0),
        ("T01-p1", "evaluated", 0),
        ("T02-c1", "evaluated", 0),
        ("T02-p1", "evaluated", 0),
        ("T03-p1", "refused", 6),
    ]
    assert demo.ask("SELECT name FROM teams_team ORDER BY number") == TEAMS
    assert set(demo.ask("SELECT state FROM submissions_upload")) <= {"complete", "abandoned"}
    assert set(demo.ask("SELECT state FROM jobs_job WHERE kind != 'send-notice'")) == {"succeeded"}


def test_demo_prints_where_to_look_and_no_mail_to_its_own_people(lines: list[str]) -> None:
    start = next(number for number, line in enumerate(lines) if line.startswith("The portal is open at"))
    words = [line.split()[0] for line in lines[start + 1 :] if not line.startswith(("web ", "worker ", "scheduler "))]
    people = [f"{name}@demo.example" for name in ("organizer", "operator", "wide", "low", "hasty")]
    assert words == [
        "leaderboard",
        "report",
        "reported",
        "listen",
        "monitor",
        "heard",
        "result",
        "To",
        "Log",
        *people,
        "Ctrl-C",
    ]
    assert [line for line in lines if "Mail to" in line] == []


def test_closed_studies_are_published_and_nothing_in_them_passes_for_human(demo: Demo, lines: list[str]) -> None:
    question = (
        "SELECT name, form, state, is_simulated, results_published_at IS NOT NULL FROM listening_study ORDER BY name"
    )
    assert demo.ask(question) == [
        ("demo-listening", "rating", "open", 0, 0),
        ("demo-ratings", "rating", "closed", 1, 1),
        ("demo-voices", "linkability", "closed", 1, 1),
        ("demo-words", "transcription", "closed", 1, 1),
    ]
    sessions = (
        "SELECT study.is_simulated, session.is_simulated, count(*) FROM listening_session session "
        "JOIN listening_study study ON study.id = session.study_id GROUP BY 1, 2"
    )
    assert demo.ask(sessions) == [(1, 1, 48)]


def test_second_run_adds_nothing_and_its_leaderboard_ranks_the_wide_range_first(demo: Demo, lines: list[str]) -> None:
    before = demo.counts()
    leaderboards: list[dict[str, Any]] = []
    demo.run(until=OPEN, action=lambda: leaderboards.append(demo.leaderboard()))
    assert demo.counts() == before
    [leaderboard] = leaderboards
    assert leaderboard["published_at"]
    heard = {one["study"]: one for one in leaderboard["listeners"]}
    assert {name: one["is_simulated"] for name, one in heard.items()} == {
        "demo-ratings": True,
        "demo-voices": True,
        "demo-words": True,
    }
    numbers = {one["label"]: one["numbers"] for one in heard["demo-ratings"]["systems"]}
    assert set(numbers) == {"Original speech", "B2", "T01-p1", "T02-p1", "T02-c1"}
    assert all(one["naturalness"]["low"] is not None for one in numbers.values())
    assert all("wer" in one for label, one in numbers.items() if label != "Original speech")
    ranks = [
        [(row["label"], row["rank"]) for row in table["rows"] if row["rank"] is not None]
        for table in leaderboard["rankings"]
    ]
    assert ranks == [[("T01-p1", 1), ("T02-p1", 2)]] * 3 + [[("T01-p1", 1)]]
    assert [entry["label"] for entry in leaderboard["outside"] if entry["kind"] == "system"] == ["T02-c1"]
