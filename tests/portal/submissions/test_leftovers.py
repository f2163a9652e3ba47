"""What a killed process leaves on a machine that has a data folder of its own, beside a bucket, is removed there."""

import os
import uuid
from pathlib import Path

import pytest
from django.utils import timezone

from portal.core import upload_files
from portal.submissions import leftovers, staging
from portal.submissions.models import Upload
from portal.submissions.resumable_uploads import create_corpus_upload
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(settings, tmp_path, monkeypatch):
    """A machine whose data folder is its own."""
    settings.DATA_DIR, settings.UPLOAD_DIR = tmp_path, tmp_path / "uploads"
    settings.UPLOAD_DIR.mkdir()
    monkeypatch.setattr(leftovers, "_machine", leftovers._Machine())
    return tmp_path


def leave(path, *, is_old=True):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"left behind")
    if is_old:
        os.utime(path, (0, 0))
    return path


def make_upload(state):
    return Upload.objects.create(
        file_name="a.zip", size=3, state=state, created_by=make_organizer(), expires_at=timezone.now()
    )


def leave_all():
    """Staged files of no submission, unpacked ones of no job, a copy and received bytes that nobody needs."""
    return [
        leave(staging._root() / "submission-777" / "kept.flac"),
        leave(leftovers.unpacking_folder(uuid.uuid4()) / "corpus" / "a.wav"),
        leave(upload_files.readable_path(make_upload(Upload.State.ABANDONED).pk)),
        leave(upload_files.path_of(uuid.uuid4())),
    ]


def test_upload_that_begins_tidies_the_web_server(machine, bucket_files):
    left = leave_all()
    plan = type("Plan", (), {"name": "tones", "options": {}})()
    create_corpus_upload(plan=plan, file_name="tones.zip", size=10, by=make_organizer(), now=timezone.now())
    assert [path for path in left if path.exists()] == []


def test_machines_that_share_a_data_folder_leave_it_to_the_scheduler(machine):
    left = leave_all()
    leftovers.tidy_machine()
    assert all(path.exists() for path in left)
    assert isinstance(left[0], Path)


def test_what_a_killed_request_unpacked_goes_after_an_hour(machine):
    old, young = (leave(leftovers.unpacking_folder(name) / "archive") for name in ("tmp-old", "tmp-young"))
    os.utime(old.parent, (0, 0))
    leftovers.tidy_unpacked()
    assert [path.exists() for path in (old, young)] == [False, True]
