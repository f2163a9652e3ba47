"""The manual's copy of a portal, made while it is in maintenance and restored elsewhere, where people go on."""

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta

import pytest
import requests
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from portal.accounts.tokens import create_token
from portal.submissions.models import Upload
from portal.submissions.resumable_uploads import upload_path
from tests.listening.factories import make_session, make_study
from tests.portal.factories import make_organizer, make_team, make_user
from tests.portal.processes.other_portal import OtherPortal
from tests.portal.processes.programs import PATIENCE_S

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="these commands are those of SQLite"),
    pytest.mark.skipif(not (shutil.which("sqlite3") and shutil.which("rsync")), reason="sqlite3 and rsync are missing"),
]
RECEIVED = bytes(range(256)) * 20


def begin_upload(edition):
    """Begin an upload of which half is here; return it with the token of its sender."""
    sender = make_user(email="sends@test.example")
    upload = Upload.objects.create(
        edition=edition,
        team=make_team(edition, owner=sender, number=7),
        created_by=sender,
        file_name="a.zip",
        size=2 * len(RECEIVED),
        offset=len(RECEIVED),
        system_kind="primary",
        system_title="Ours",
        expires_at=timezone.now() + timedelta(days=7),
    )
    upload_path(upload).write_bytes(RECEIVED)
    _, token = create_token(user=sender, name="test", scopes=["submit"], expires_at=None)
    return upload, token


def make_data_folder(folder):
    """Lay out what this test's portal holds as the data folder of a portal."""
    folder.mkdir()
    shutil.copytree(default_storage.location, folder / "files")
    shutil.copytree(settings.UPLOAD_DIR, folder / "uploads")
    (folder / "secret_key").write_text(settings.SECRET_KEY)
    with closing(sqlite3.connect(folder / "portal.sqlite3")) as target:
        connection.connection.backup(target)


def run_block(block, portal, backup):
    """Run commands of the manual on a portal."""
    program = portal.folder.parent / "voiceprivacy"
    program.write_text(f'#!/bin/sh\ncd {settings.BASE_DIR} && exec {sys.executable} -m portal.config "$@"\n')
    program.chmod(0o755)
    known = portal.environment | {"BACKUP": str(backup), "PATH": f"{program.parent}:{portal.environment['PATH']}"}
    done = subprocess.run(["sh", "-c", block], env=known, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, (block, done.stdout, done.stderr)
    return done.stdout


def test_people_go_on_in_a_portal_that_was_restored_as_the_manual_says(tmp_path):
    session = make_session(make_study(organizer=make_organizer(email="runs@test.example")))
    upload, token = begin_upload(session.study.edition)
    call_command("maintenance", "on", "--message", "Back at six.")
    old, new, backup = OtherPortal(tmp_path / "old"), OtherPortal(tmp_path / "new"), tmp_path / "backup"
    make_data_folder(old.folder)
    for folder in (new.folder, backup):
        folder.mkdir()
    text = (settings.BASE_DIR / "docs" / "operator.md").read_text().partition("## Back up and restore\n")[2]
    copy, restore = re.findall(r"^```sh\n(.*?)^```", text.partition("\n## ")[0], re.MULTILINE | re.DOTALL)
    run_block(copy, old, backup)
    assert ": 0 differences." in run_block(restore, new, backup)
    assert "Back at six." in new.run("maintenance")[1]
    assert "Maintenance mode is off after" in new.run("maintenance", "off")[1]
    server = new.start_web()
    try:
        page = requests.get(f"{new.address}{session.get_absolute_url()}", timeout=30)
        assert (page.status_code, "trial" in page.text) == (200, True), page.text
        headers = {"Authorization": f"Bearer {token}", "Tus-Resumable": "1.0.0", "Upload-Offset": str(len(RECEIVED))}
        headers["Content-Type"] = "application/offset+octet-stream"
        answer = requests.patch(f"{new.address}/api/uploads/{upload.pk}", RECEIVED, headers=headers, timeout=30)
        assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, str(2 * len(RECEIVED))), answer.text
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
