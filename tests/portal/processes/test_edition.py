"""An edition goes from SQLite to PostgreSQL and back by the programs of both portals, and keeps its leaderboard."""

import json

import pytest
import requests
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from portal.jobs.models import Job
from portal.leaderboard.services import publish_leaderboard
from portal.submissions.models import System
from tests.portal.api.calls import Challenge
from tests.portal.factories import make_team_system
from tests.portal.leaderboards import put_on_leaderboard
from tests.portal.processes.other_portal import OtherPortal
from tests.portal.processes.programs import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)
ORGANIZER = "other@test.example"
MAKE_ORGANIZER = f"""
from portal.accounts.models import User
User.objects.create(email="{ORGANIZER}", name="Other", is_organizer=True)
"""
ADDRESSES = [f"/editions/vpc/leaderboard/leaderboard.{kind}" for kind in ("csv", "json", "tex")]


def take_over(portal, folder):
    """What visitors download of the leaderboard where this folder was imported into an empty portal."""
    assert portal.run("migrate")[0] == 0
    assert portal.run("shell", "--command", MAKE_ORGANIZER)[0] == 0
    code, said = portal.run("import", folder, "--organizer", ORGANIZER)
    assert code == 0, said
    server = portal.start_web()
    try:
        answers = [requests.get(portal.address + one, timeout=30) for one in ADDRESSES]
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
    assert [one.status_code for one in answers] == [200] * len(ADDRESSES)
    return [one.content for one in answers]


def count_rows(folder):
    return json.loads((folder / "edition.json").read_text())["rows"]["counts"]


def list_contents(folder):
    """SHA-256 of every file that came along; lists of recognised words hold numbers of rows and only count."""
    listed = [json.loads(line) for line in (folder / "files.jsonl").read_text().splitlines()]
    return sorted("words" if one["path"].startswith("derived/recognition/") else one["sha256"] for one in listed)


def test_edition_goes_to_postgresql_and_back_with_the_same_leaderboard(new_database, tmp_path):
    challenge = Challenge()
    put_on_leaderboard(make_team_system(challenge.rival_team), eer=30.0, wer=9.5)
    Job.objects.filter(state__in=["waiting", "running"]).update(state="cancelled")
    publish_leaderboard(edition=challenge.edition, now=timezone.now(), by=challenge.organizer)
    before = [Client().get(one).content for one in ADDRESSES]
    assert all(b"T01-p1" in one and b"T02-p1" in one for one in before)
    call_command("export", "vpc", str(tmp_path / "there"))
    other = OtherPortal(tmp_path / "other", new_database())
    assert take_over(other, tmp_path / "there") == before
    code, said = other.run("export", "vpc", tmp_path / "back")
    assert code == 0, said
    assert take_over(OtherPortal(tmp_path / "again"), tmp_path / "back") == before
    assert count_rows(tmp_path / "back") == count_rows(tmp_path / "there")
    assert list_contents(tmp_path / "back") == list_contents(tmp_path / "there") != []
    assert System.objects.filter(edition__name="vpc").count() == 2
