"""Files in a bucket: their backup and its way back, and what is deleted."""

import time

import pytest
from django.conf import settings
from django.utils import timezone

from portal.core import storage
from portal.core.removal import list_held_files
from portal.operations.backup.folder import BackupFolder
from portal.operations.backup.services import _restore_files, verify_portal
from portal.operations.sweep import find_unneeded, sweep
from portal.removal.retention import delete_speech
from portal.removal.services import delete_unneeded_files
from tests.buckets import counted
from tests.portal.backups import back_up, ignore
from tests.portal.factories import (
    add_files,
    make_corpus,
    make_edition,
    make_submission,
    make_team,
    make_team_system,
    store_tone,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_files_of_a_bucket_are_backed_up_and_come_back(bucket_files, bucket_store, tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "UPLOAD_DIR", tmp_path / "uploads")
    settings.UPLOAD_DIR.mkdir()
    make_corpus("tones", speakers=1)
    storage.replace_named("derived/a/b.json", b"derived")
    storage.replace_named("health/probe", b"no part of a backup")
    (settings.UPLOAD_DIR / "half").write_bytes(b"half of an upload")
    kept = [name for name in bucket_store.names() if "/health/" not in name]
    made = back_up(tmp_path / "backups")
    assert (made.files, made.uploads, made.problems) == (len(kept) + 1, 1, [])
    with counted(bucket_files) as asked:
        again = back_up(tmp_path / "backups", later_s=60)
    assert (again.new_files, set(asked)) == (0, {"ListObjectsV2"})
    assert verify_portal(progress=ignore).problems.report() == ()

    bucket_store.empty()
    (settings.UPLOAD_DIR / "half").unlink()
    [*_, missing] = verify_portal(progress=ignore).problems.report()
    assert (missing.code, missing.found) == ("missing-file", "none")
    folder = BackupFolder(tmp_path / "backups", is_new=False)
    _restore_files(folder, folder.find_backup(""), ignore)
    assert bucket_store.names() == kept
    assert (settings.UPLOAD_DIR / "half").read_bytes() == b"half of an upload"
    assert verify_portal(progress=ignore).problems.report() == ()
    (settings.UPLOAD_DIR / "half").unlink()


def test_sweep_and_retention_delete_in_a_bucket_what_nothing_needs(bucket_files, bucket_store):
    corpus = make_corpus("tones", speakers=1)
    edition = make_edition(corpus)
    submission = make_submission(make_team_system(make_team(edition)))
    add_files(submission, audio=store_tone(333))
    storage.store_bytes(b"left by a job that was killed", ".npz")
    storage.replace_named("derived/attacks/999999/results.zip", b"of a run that is gone")
    needed = {key for _, key in list_held_files()}
    assert sweep(time.time() - 3600) == (0, 0)
    found = {one.key for one in find_unneeded(time.time() + 3600)}
    assert (len(found), found & needed, "derived/attacks/999999/results.zip" in found) == (2, set(), True)
    assert sweep(time.time() + 3600)[0] == 2
    assert {name.partition("/")[2] for name in bucket_store.names()} == needed

    speech = set(submission.files.values_list("audio", flat=True))
    assert delete_speech(edition, timezone.now())["anonymised recordings"] == submission.files.count()
    assert delete_unneeded_files() == 0  # stored within a day
    assert sweep(time.time() + 3600)[0] == len(speech) == 1
    assert {name.partition("/")[2] for name in bucket_store.names()} == needed - speech
    assert verify_portal(progress=ignore).problems.report() == ()
