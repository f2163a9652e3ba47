"""Backups restored by real programs into another data folder and database, where people go on."""

import json

import pytest
import requests
from django.conf import settings

from tests.portal.backups import RECEIVED, back_up, begin_work, read_dump
from tests.portal.processes.other_portal import OtherPortal
from tests.portal.processes.programs import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)
OF_TESTS = ("django_content_type", "auth_permission")  # these know the app of the tests, too


def go_on(portal, session, upload, token):
    """The evaluator's link opens, the address of an utterance plays, and the upload takes its second half."""
    headers = {"Authorization": f"Bearer {token}", "Tus-Resumable": "1.0.0"}
    address = f"{portal.address}/api/uploads/{upload.pk}"
    server = portal.start_web()
    try:
        page = requests.get(f"{portal.address}{session.get_absolute_url()}", timeout=30)
        assert page.status_code == 200, page.text
        assert "trial" in page.text
        told = requests.head(address, headers=headers, timeout=30)
        assert (told.status_code, told.headers["Upload-Offset"]) == (200, str(len(RECEIVED)))
        sent = headers | {"Content-Type": "application/offset+octet-stream", "Upload-Offset": str(len(RECEIVED))}
        answer = requests.patch(address, RECEIVED, headers=sent, timeout=30)
        assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, str(2 * len(RECEIVED))), answer.text
        state = requests.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=30).json()
        assert state["state"] == "complete", state
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def compare(first, second):
    for table in second.keys() - set(OF_TESTS):
        assert first[table] == second[table], table


def test_interrupted_restore_goes_on_and_so_do_people(tmp_path):
    begun = begin_work()
    back_up(tmp_path / "backups", with_secret=True)
    portal = OtherPortal(tmp_path / "other")
    [content, *_] = sorted(path for path in (tmp_path / "backups" / "content").rglob("*") if path.is_file())
    aside = content.rename(tmp_path / "aside")
    code, said = portal.run("restore", tmp_path / "backups")
    assert (code, "in the backup, found none. Delete that content" in said, "Traceback" in said) == (1, True, False), (
        said
    )
    aside.rename(content)
    code, said = portal.run("restore", tmp_path / "backups")
    assert (code, "verify, then start the portal." in said) == (0, True), said
    assert (tmp_path / "other" / "secret_key").read_text() == settings.SECRET_KEY
    go_on(portal, *begun)


def test_backup_is_restored_to_postgresql_and_brought_up_to_date(new_database, tmp_path):
    """The summary tells of an older migration of listening tests, whose tables are the same: the newer one follows."""
    begun = begin_work()
    made = back_up(tmp_path / "backups")
    file = tmp_path / "backups" / "backups" / made.name / "summary.json"
    summary = json.loads(file.read_text())
    older = dict(summary["migrations"]) | {"listening": "0005_archives"}
    assert older != dict(summary["migrations"])
    file.write_text(json.dumps(summary | {"migrations": sorted(map(list, older.items()))}))
    portal = OtherPortal(tmp_path / "other", new_database())
    code, said = portal.run("restore", tmp_path / "backups")
    assert (code, "The backup holds no secret key. Give this portal that of the old one" in said) == (0, True), said
    code, said = portal.run("verify")
    assert (code, "compared: 0 differences." in said) == (0, True), said
    assert portal.run("backup", tmp_path / "again")[0] == 0
    compare(read_dump(tmp_path / "backups"), read_dump(tmp_path / "again"))
    go_on(portal, *begun)  # which makes rows: their keys go on after those that were restored
