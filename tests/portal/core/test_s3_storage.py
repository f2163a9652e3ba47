"""Files in a bucket: how many requests each thing costs, what is read of a file, and what happens without the store."""

import io
import time
import uuid

import numpy as np
import pytest
from botocore.exceptions import ClientError
from django.core.files.base import ContentFile

from portal.core import health, storage, upload_files
from portal.core.s3_storage import ONE_REQUEST_BYTES, BucketStorage
from portal.core.signed_urls import signed_address
from portal.core.storage import StorageAway
from portal.jobs.models import JobState
from portal.jobs.runner import execute
from portal.jobs.services import create_job
from tests.buckets import counted
from tests.jobkit.handlers import read_lines


def test_small_content_is_stored_and_read_by_one_request_each(bucket_files, bucket_store):
    samples = np.arange(-800, 800, dtype=np.int16)
    with counted(bucket_files) as asked:
        key = storage.keep_audio(samples, 16000)
    assert asked == ["PutObject"]
    with counted(bucket_files) as asked:
        found, rate_hz = storage.load_audio(key)
    assert (asked, rate_hz, found.tolist()) == (["GetObject"], 16000, samples.tolist())
    assert bucket_store.names() == [f"portal/{key}"]
    with counted(bucket_files) as asked:
        assert storage.read_stored("content/00/none.json") is None
        storage.replace_named("derived/a.json", b"1")
        storage.replace_named("derived/a.json", b"22")
        assert storage.read_stored("derived/a.json") == b"22"
    assert asked == ["GetObject", "PutObject", "PutObject", "GetObject"]
    with pytest.raises(storage.AudioError, match="found none"):
        storage.load_audio("content/00/none.flac")


def test_large_file_goes_in_parts_and_only_what_is_asked_for_comes_back(bucket_files):
    content = np.random.default_rng(1).bytes(ONE_REQUEST_BYTES + 3_000_000)
    with counted(bucket_files) as asked:
        key = storage.store_bytes(content, ".bin")
    assert asked.count("UploadPart") == 2
    with counted(bucket_files) as asked, bucket_files.open(key) as stored:
        stored.seek(9_000_000)
        assert stored.read(10) == content[9_000_000:9_000_010]
        assert (stored.seek(-5, io.SEEK_END), stored.read(), stored.read()) == (len(content) - 5, content[-5:], b"")
    assert len(asked) == 3
    assert storage.read_stored(key) == content
    with counted(bucket_files) as asked:
        storage.store_bytes(content, ".bin")
    assert "UploadPart" not in asked  # only its age changes


def test_age_is_that_of_the_last_storing(bucket_files):
    now, key = time.time(), storage.store_bytes(b"something", ".json")
    assert (storage.is_older(key, now - 60), storage.is_older(key, now + 60)) == (False, True)
    assert storage.refresh(key)
    assert not storage.refresh("content/00/none.json")
    assert not storage.delete_old(key, now - 60)
    assert bucket_files.exists(key)
    assert storage.delete_old(key, now + 60)
    assert not bucket_files.exists(key)
    assert storage.delete_old(key, now)
    assert storage.is_older(key, now)


@pytest.mark.django_db
def test_media_is_streamed_by_range_and_bound_to_its_session(bucket_files, client, bucket_store):
    client.get("/health/live")
    session = client.session
    session["some"] = "thing"
    session.save()
    content = bytes(range(256)) * 40
    key = storage.store_bytes(content, ".flac")
    address = signed_address(type("Request", (), {"session": session})(), key)
    assert client.get(address).status_code == 200
    with counted(bucket_files) as asked:
        answer = client.get(address, headers={"range": "bytes=100-299"})
        assert b"".join(answer.streaming_content) == content[100:300]
    assert (answer.status_code, answer["Content-Range"], asked) == (206, "bytes 100-299/10240", ["GetObject"])
    assert key.rpartition("/")[2][:64] not in address
    assert "Location" not in answer.headers
    assert type(client)().get(address).status_code == 404  # in another session
    bucket_files.delete(key)
    assert client.get(address).status_code == 404


def test_upload_is_sent_on_in_parts_while_it_comes(bucket_files, bucket_store, monkeypatch, tmp_path, settings):
    settings.UPLOAD_DIR = tmp_path
    monkeypatch.setattr(upload_files, "PART_BYTES", 5 << 20)
    upload, content = uuid.uuid4(), np.random.default_rng(3).bytes((12 << 20) + 17)
    path = upload_files.path_of(upload)
    path.write_bytes(content[: 6 << 20])
    with counted(bucket_files) as asked:
        upload_files.send_on(upload, 6 << 20)
    assert asked == ["CreateMultipartUpload", "UploadPart"]
    bucket_store.stop()
    path.write_bytes(content)
    upload_files.send_on(upload, 11 << 20)  # it stays on this disk
    with pytest.raises(StorageAway, match="does not answer"):
        upload_files.complete(upload, len(content))
    bucket_store.start()
    with counted(bucket_files) as asked:
        upload_files.complete(upload, len(content))
    assert asked == ["UploadPart", "UploadPart", "CompleteMultipartUpload"]
    upload_files.drop_received(upload)
    assert upload_files.is_there(upload)
    assert upload_files.fetch(upload).read_bytes() == content
    upload_files.remove(upload)
    assert (list(tmp_path.iterdir()), bucket_store.names(), upload_files.is_there(upload)) == ([], [], False)


def test_upload_whose_transfer_the_bucket_gave_up_is_sent_anew(bucket_files, monkeypatch, tmp_path, settings):
    settings.UPLOAD_DIR = tmp_path
    monkeypatch.setattr(upload_files, "PART_BYTES", 5 << 20)
    upload, content = uuid.uuid4(), np.random.default_rng(4).bytes(6 << 20)
    upload_files.path_of(upload).write_bytes(content)
    upload_files.send_on(upload, len(content))

    def give_up(**_):  # as a store answers; moto knows no such answer
        raise ClientError({"Error": {"Code": "NoSuchUpload", "Message": "none"}}, "UploadPart")

    events = bucket_files.connection.meta.client.meta.events
    events.register("before-call.s3.UploadPart", give_up, unique_id="give up")
    with pytest.raises(StorageAway, match="NoSuchUpload"):
        upload_files.complete(upload, len(content))
    events.unregister("before-call.s3.UploadPart", unique_id="give up")
    upload_files.complete(upload, len(content))
    assert storage.read_stored(upload_files.sent_name(upload)) == content
    upload_files.remove(upload)


@pytest.mark.django_db
def test_store_that_is_away_is_told_and_a_job_waits_for_it(bucket_files, bucket_store, tmp_path, monkeypatch):
    assert health.check_files() is None
    key = storage.store_bytes(b"something", ".json")
    parameters = {"file": str(tmp_path / "lines"), "items": 2, "pause_s": 0, "reads": key}
    job = create_job(kind="test-steps", title="Steps", parameters=parameters)
    bucket_store.stop()
    try:
        sentence = health.check_files()
        assert sentence.startswith("The store of files does not answer (")
        assert sentence.endswith("Start the store, or fix PORTAL_FILES_URL or its keys.")
        monkeypatch.setattr("portal.jobs.runner.STORAGE_PATIENCE_S", 0.5)
        ended = execute(job.pk)
        assert (ended.state, ended.attempt, read_lines(tmp_path / "lines")) == (JobState.WAITING, 0, [])
        told = list(ended.events.values_list("text", flat=True))
        assert "The job goes on where the store of files broke off." in told
    finally:
        bucket_store.start()
    ended = execute(job.pk)
    assert (ended.state, ended.attempt, len(read_lines(tmp_path / "lines"))) == (JobState.SUCCEEDED, 1, 2)


def test_page_that_cannot_read_the_store_says_so(bucket_files, bucket_store, rf):
    from portal.core.errors import FILES_AWAY, show_error_pages

    shown = show_error_pages(lambda _: None)
    bucket_store.stop()
    try:
        with pytest.raises(StorageAway) as raised:
            storage.read_stored("derived/any")
    finally:
        bucket_store.start()
    answer = shown.process_exception(rf.get("/some/"), raised.value)
    assert (answer.status_code, answer.content.decode(), answer["Retry-After"]) == (503, FILES_AWAY, "10")
    assert shown.process_exception(rf.get("/some/"), ValueError()) is None


def test_bucket_that_is_missing_is_named(bucket_store):
    options = bucket_store.settings()["default"]["OPTIONS"] | {"bucket_name": "portal-none"}
    with pytest.raises(StorageAway, match="NoSuchBucket"):
        BucketStorage(**options).save("a", ContentFile(b"1"))
