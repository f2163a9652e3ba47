"""``vp`` as a team runs it, against a real server with a real worker: check, send, follow, look at the numbers."""

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import call_command

from portal.accounts.tokens import create_token
from portal.submissions.models import Submission, Upload
from portal.submissions.resumable_uploads import upload_path
from tests.portal.archives import anonymised, zip_of
from tests.portal.factories import make_corpus, make_edition, make_team, make_user
from tests.portal.processes.programs import wait_until
from tests.portal.processes.uploading import MEBIBYTE, BadLine, make_archive, standing_server

LIMIT_S = 120
SCOPES = ["read", "submit"]


@pytest.fixture
def owner(transactional_db):
    return make_user()


@pytest.fixture
def team(owner):
    edition = make_edition(make_corpus("tones", speakers=4), name="vpc", scores_required=False)
    return make_team(edition, owner=owner, number=11)


@pytest.fixture
def server(portal):
    return standing_server(portal)


class Shell:
    """Runs ``vp`` in a home of its own."""

    def __init__(self, home, server, user):
        _, self.token = create_token(user=user, name="vp", scopes=SCOPES, expires_at=None)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("VP_")}
        folders = {"XDG_CONFIG_HOME": str(home / "config")}
        self.home, self.environment = home, clean | folders | {"VP_SERVER": server, "VP_TOKEN": self.token}

    def start(self, *words, **environment):
        command = [sys.executable, "-m", "portal.client", *map(str, words)]
        return subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            env=self.environment | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, given="", **environment):
        """Exit code, standard output, standard error."""
        program = self.start(*words, **environment)
        said, warned = program.communicate(given, timeout=LIMIT_S)
        return program.returncode, said, warned


@pytest.fixture
def shell(tmp_path, server, owner):
    return Shell(tmp_path, server.address, owner)


@pytest.mark.slow  # a portal of its own and the whole way of a team
def test_team_verifies_uploads_repairs_and_reads_its_results(standing, server, team, shell, tmp_path):
    members = anonymised(team.edition.corpus)
    path = tmp_path / "archive.zip"
    lost = sorted(members)[0]
    path.write_bytes(zip_of({name: data for name, data in members.items() if name != lost}))

    code, said, warned = shell.run("verify", path, "--edition", "vpc")
    assert (code, "Missing utterances" in said, "would be refused" in said) == (1, True, True), warned
    code, said, warned = shell.run("submit", path, "--edition", "vpc", "--title", "McAdams")
    assert (code, "T11-p1 version 1 was refused" in said) == (1, True), said + warned
    assert "Missing utterances" in said

    path.write_bytes(zip_of({lost: members[lost]}))
    code, _, warned = shell.run("submit", path, "--edition", "vpc")
    assert (code, "--system T11-p1" in warned) == (2, True)
    code, said, warned = shell.run("submit", path, "--edition", "vpc", "--system", "T11-p1")
    assert (code, "T11-p1 version 2" in said, "Found 0 errors" in said) == (0, True, True), said + warned

    submission = Submission.objects.get(version=2)
    wait_until(lambda: Submission.objects.get(pk=submission.pk).state in {"evaluated", "failed"}, "evaluation")
    code, said, _ = shell.run("status")
    assert code == 0
    assert [line.split()[:4] for line in said.splitlines()[2:]] == [
        [str(submission.pk), "vpc", "T11-p1", "2"],
        [str(Submission.objects.get(version=1).pk), "vpc", "T11-p1", "1"],
    ]
    code, said, _ = shell.run("status", submission.pk)
    assert (code, "evaluating" in said, "of them inherited" in said) == (0, True, True)
    code, said, _ = shell.run("results", "T11-p1", "--json")
    values = json.loads(said)
    assert (code, values["version"]) == (0, 2)
    assert {row["metric"] for row in values["speech"]} >= {"pitch_correlation"}
    code, said, _ = shell.run("results", "vpc-t11-p1")
    assert "Pitch correlation ρF0" in said
    code, said, _ = shell.run("results", "vpc-t11-p1", "--csv")
    assert said.startswith("system,version,data_set,")


def test_upload_survives_cuts_and_the_end_of_server_and_program(unattended, server, team, shell, tmp_path):
    path = tmp_path / "archive.zip"
    sha256 = make_archive(path, megabytes=48)
    line = BadLine(server.port, bytes_per_s=16 * MEBIBYTE)
    words = ("submit", path, "--edition", "vpc", "--no-wait", "--server", line.address)
    try:
        program = shell.start(*words)
        for number in (1, 2, 3):
            wait_until(lambda due=number * 10 * MEBIBYTE: _received() >= due, f"part {number}")
            line.cut()
        server.kill()
        line.bytes_per_s = 2 * MEBIBYTE  # so slow that the program is met at work
        server.start()
        wait_until(lambda: _received() >= 34 * MEBIBYTE, "the way on after the kill")
        program.send_signal(signal.SIGKILL)
        program.communicate()
        line.bytes_per_s = None
        before = _received()
        assert 34 * MEBIBYTE <= before < path.stat().st_size
        code, said, warned = shell.run(*words, "--resume")
    finally:
        line.close()
    assert (code, "arrived completely" in said, "Resuming at" in warned) == (0, True, True), said + warned
    upload = Upload.objects.get()
    assert (upload.state, upload.claimed_sha256) == ("complete", sha256)
    assert hashlib.sha256(upload_path(upload).read_bytes()).hexdigest() == sha256


MAINTENANCE = "The portal is under maintenance. What you sent before is kept. Back at six."


def test_submit_outlasts_maintenance_or_says_how_to_go_on(unattended, server, team, shell, tmp_path):
    path = tmp_path / "archive.zip"
    sha256 = make_archive(path, megabytes=48)
    line = BadLine(server.port, bytes_per_s=8 * MEBIBYTE)
    words = ("submit", path, "--edition", "vpc", "--no-wait", "--server", line.address)
    try:
        program = shell.start(*words, "--patience", "2")
        wait_until(lambda: _received() >= 8 * MEBIBYTE, "the first part")
        call_command("maintenance", "on", "--message", "Back at six.")
        _, warned = program.communicate(timeout=LIMIT_S)
        again = f"{MAINTENANCE} Run the same command again later: it continues where it stopped.\n"
        assert (program.returncode, warned.endswith(again), "no reason" in warned) == (2, True, False), warned
        kept = _received()
        assert 8 * MEBIBYTE <= kept < path.stat().st_size
        assert shell.run(*words, "--patience", "0") == (2, "", again)
        program = shell.start(*words, "--patience", str(LIMIT_S))
        told = next(one for one in program.stderr if MAINTENANCE in one)
        assert told == f"{MAINTENANCE} Trying again, for {LIMIT_S} s at most.\n"
        call_command("maintenance", "off")
        said, warned = program.communicate(timeout=LIMIT_S)
    finally:
        line.close()
    assert (program.returncode, "arrived completely" in said, "Resuming at" in warned) == (0, True, True), said + warned
    assert MAINTENANCE not in warned  # it was said once
    upload = Upload.objects.get()
    assert upload.state == "complete"
    assert hashlib.sha256(upload_path(upload).read_bytes()).hexdigest() == sha256


def _received():
    upload = Upload.objects.first()
    return upload.offset if upload else 0


def test_login_keeps_the_token_for_its_server_and_its_user_only(server, team, shell, tmp_path):
    nothing = {"VP_SERVER": "", "VP_TOKEN": ""}
    code, said, warned = shell.run("login", "--server", server.address, given=f"{shell.token}\n", **nothing)
    assert (code, "may read, submit" in said) == (0, True), warned
    kept = tmp_path / "config" / "voiceprivacy" / "login.json"
    assert oct(kept.stat().st_mode & 0o777) == "0o600"
    assert shell.run("status", **nothing) == (0, "Nothing was submitted yet.\n", "")
    code, _, warned = shell.run("status", "--server", server.address.replace("127.0.0.1", "localhost"), **nothing)
    assert (code, "You are not logged in." in warned) == (2, True), warned
