"""`manage.py demo` on a part of the demo corpus: interrupted, it goes on where it was and ends with a leaderboard.

Its numbers are the portal's own, by real models where they are installed; beside it stand the results of studies whose
listeners are simulated. One more run finds everything there, opens at once and adds nothing.
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

from anonymization.methods.registry import explain_missing, get_method
from tests.portal.browser.journey import copy_speech
from tests.portal.processes.programs import free_port

pytestmark = pytest.mark.skipif(
    settings.DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3",
    reason="the demo has a data folder and a database of its own; it is tried once, with the embedded default",
)
LIMIT_S = 300
NEVER = "\0"
OPEN = "Ctrl-C ends it"  # the last line, after which nothing else is said
TEAMS = ["Wide Range (simulated)", "Quick Pitch (simulated)", "Hasty Upload (simulated)"]
# It speaks by models that not every machine has.
SPOKEN = [] if explain_missing(get_method("t04")) else ["Spoken Anew (simulated)"]
MOMENTS = (
    "Quick Pitch (simulated) makes",
    *(f"{team} makes" for team in SPOKEN),  # networks compute then
    f"{'T04' if SPOKEN else 'T02'}-p1 version 1: accepted",  # what the interrupted runs had not uploaded
    "simulated listeners have answered",
)
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
        self.folder = folder / "data"
        self.folder.mkdir()
        self.speech = copy_speech(folder / "voices", speakers_of_a_gender=2)
        self.address = f"127.0.0.1:{free_port()}"

    def run(self, *options: str, until: str = NEVER, action: Callable[[], Any] = lambda: None) -> list[str]:
        """Start the demo; once it prints `until`, do the `action` and send it a Ctrl-C. All that it printed.

        However it comes to its end, it must be a good one.
        """
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "TESTS_"))}
        mine = {"PORTAL_DATA_DIR": str(self.folder), "PORTAL_ADDRESS": self.address}
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--speech", str(self.speech), *options],
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
        with urlopen(f"http://{self.address}/editions/voices/leaderboard/leaderboard.json", timeout=60) as answer:
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
    assert "Traceback" not in "\n".join(line for lines in runs for line in lines)
    assert "The corpus voices is there already." in runs[-1]
    question = (
        "SELECT system.label, submission.state, submission.errors FROM submissions_submission submission "
        "JOIN submissions_system system ON system.id = submission.system_id"
    )
    assert sorted(demo.ask(question)) == [
        ("B2", "evaluated", 0),
        ("Pitch shift", "evaluated", 0),
        ("T01-p1", "evaluated", 0),
        ("T02-c1", "evaluated", 0),
        ("T02-p1", "evaluated", 0),
        ("T03-p1", "refused", 6),
        *(("T04-p1", "evaluated", 0) for _ in SPOKEN),
    ]
    assert demo.ask("SELECT name FROM teams_team ORDER BY number") == [*TEAMS, *SPOKEN]
    assert set(demo.ask("SELECT state FROM submissions_upload")) <= {"complete", "abandoned"}
    assert set(demo.ask("SELECT state FROM jobs_job WHERE kind != 'send-notice'")) == {"succeeded"}


def test_demo_prints_where_each_journey_begins_and_no_mail_to_its_own_people(lines: list[str]) -> None:
    start = next(number for number, line in enumerate(lines) if line.startswith("The portal is open at "))
    of_processes = ("web ", "worker ", "light ", "scheduler ")
    said = [line for line in lines[start + 1 :] if line and not line.startswith(of_processes)]
    assert [line.split()[0].rstrip(",") for line in said] == [
        *("Reader", "leaderboard", "system", "heard"),
        *("Organizer", "challenge", "new", "baseline", "monitor"),
        *("Team", "data", "report"),
        *("Operator", "operations"),
        *("Evaluator", "listen"),
        "Ctrl-C",
    ]
    assert all(f"{name}@demo.example" in "\n".join(said) for name in ("organizer", "operator", "wide", "low", "hasty"))
    assert [line for line in lines if "Mail to" in line] == []


def test_studies_that_the_speech_is_enough_for_are_published_and_nothing_in_them_passes_for_human(
    demo: Demo, lines: list[str]
) -> None:
    question = (
        "SELECT name, form, state, is_simulated, results_published_at IS NOT NULL FROM listening_study ORDER BY name"
    )
    assert demo.ask(question) == [
        ("voices-listening", "rating", "open", 0, 0),
        ("voices-ratings", "rating", "closed", 1, 1),
        ("voices-voices", "linkability", "closed", 1, 1),
        ("voices-words", "transcription", "closed", 1, 1),
    ]
    sessions = (
        "SELECT study.is_simulated, session.is_simulated, count(*) FROM listening_session session "
        "JOIN listening_study study ON study.id = session.study_id GROUP BY 1, 2"
    )
    assert demo.ask(sessions) == [(1, 1, 24 + 12 + 12)]


def test_second_run_adds_nothing_and_every_row_has_the_portals_own_measures(demo: Demo, lines: list[str]) -> None:
    before = demo.counts()
    leaderboards: list[dict[str, Any]] = []
    demo.run(until=OPEN, action=lambda: leaderboards.append(demo.leaderboard()))
    assert demo.counts() == before
    [leaderboard] = leaderboards
    assert leaderboard["published_at"]
    heard = {one["study"]: one for one in leaderboard["listeners"]}
    closed = ("voices-ratings", "voices-voices", "voices-words")
    assert {name: one["is_simulated"] for name, one in heard.items()} == dict.fromkeys(closed, True)
    ranked = {row["label"] for table in leaderboard["rankings"] for row in table["rows"] if row["rank"] is not None}
    assert ranked >= {"T01-p1", "T02-p1"}
