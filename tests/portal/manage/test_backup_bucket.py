"""A backup of a portal whose files are in a bucket, and their way back."""

import pytest
from django.conf import settings

from portal.core import storage
from portal.manage.backup.folder import BackupFolder
from portal.manage.backup.services import _restore_files, verify_portal
from tests.buckets import counted
from tests.portal.backups import back_up, ignore
from tests.portal.factories import make_corpus

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
