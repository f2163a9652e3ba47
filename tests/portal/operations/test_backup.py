"""Backups: made while people write, complete, incremental; what is damaged is found."""

import json
import threading
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.utils import timezone

from common.errors import CommandError as Unusable
from listening.app.models import Answer
from portal.challenges.models import Utterance
from portal.core.models import AuditEvent
from portal.core.one_state import read_one_state
from portal.core.storage import store_bytes
from portal.operations.backup import database
from portal.operations.backup.database import load
from portal.operations.backup.services import verify_backup
from portal.submissions.resumable_uploads import upload_path
from tests.listening.factories import make_session, make_study
from tests.portal.backups import RECEIVED, back_up, begin_work, ignore, read_dump
from tests.portal.processes.programs import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def without_uploads_of_other_tests():
    """Their unfinished uploads would be copied, too."""
    for path in settings.UPLOAD_DIR.iterdir():
        if path.is_file():
            path.unlink()


@pytest.fixture(autouse=True)
def empty_storage(settings, tmp_path_factory):
    """Files of other tests would be copied, too, and have equal contents."""
    own = settings.STORAGES["default"] | {"OPTIONS": {"location": tmp_path_factory.mktemp("files")}}
    settings.STORAGES = settings.STORAGES | {"default": own}


def test_backup_during_writes_is_of_one_moment(tmp_path):
    """Each write adds a row and the next one; a backup holds as many of the second as of the first, or one less."""
    study = make_study(evaluators=1, trials=8)
    session = make_session(study)
    trials = list(session.block.trials.all())
    stop, failed, written = threading.Event(), [], []

    def write():
        try:
            while not stop.is_set():
                number = len(written)
                key = store_bytes(f"during {number}".encode(), ".document")
                AuditEvent.objects.create(action="first", subject=key, subject_type="a", subject_id=str(number))
                AuditEvent.objects.create(action="second", subject=key, subject_type="a", subject_id=str(number))
                if number < len(trials):
                    Answer.objects.create(
                        session=session, trial=trials[number], task="naturalness", received_at=timezone.now()
                    )
                written.append(key)
        except Exception as error:
            failed.append(error)
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(written) > 20 or failed, "writes")
        before = len(written)
        made = back_up(tmp_path)
        during = len(written)
        wait_until(lambda: len(written) > during or failed, "writes after the backup")
    finally:
        stop.set()
        writer.join()
    assert not failed
    rows = [json.loads(row) for row in read_dump(tmp_path)["core_auditevent"][1:]]
    counts = [sum("first" in row for row in rows), sum("second" in row for row in rows)]
    assert counts[0] - counts[1] in (0, 1)
    assert before <= counts[1] <= during + 1
    listed = {json.loads(line)["path"] for line in (tmp_path / "backups" / made.name / "files.jsonl").open()}
    assert {f"files/{key}" for key in written[: counts[1]]} <= listed
    assert not verify_backup(tmp_path, progress=ignore).problems.report()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps nobody out who reads")
def test_reading_of_one_moment_keeps_no_writer_out():
    with read_one_state():
        before = AuditEvent.objects.count()
        failed = []

        def write():
            try:
                AuditEvent.objects.create(action="a", subject="a", subject_type="a", subject_id="1")
            except Exception as error:
                failed.append(error)
            finally:
                connection.close()

        writer = threading.Thread(target=write)
        writer.start()
        writer.join()
        assert (failed, AuditEvent.objects.count()) == ([], before)
    assert AuditEvent.objects.count() == before + 1


def test_second_backup_copies_only_what_is_new_and_old_ones_go(tmp_path):
    store_bytes(b"first", ".document")
    first = back_up(tmp_path)
    key = store_bytes(b"second " * 1000, ".document")
    second = back_up(tmp_path, later_s=1)
    assert (first.new_files, second.new_files, second.new_bytes) == (first.files, 1, 7000)
    default_storage.delete(key)
    third = back_up(tmp_path, later_s=2, keep=1)
    assert (third.old_backups, third.freed_bytes, third.new_files) == (2, 7000, 0)
    assert [path.name for path in (tmp_path / "backups").iterdir()] == [third.name]


def test_upload_that_ends_during_the_backup_is_read_whole(monkeypatch, tmp_path):
    _, upload, _ = begin_work()
    dump = database.dump

    def end_meanwhile(path, progress):
        counts = dump(path, progress)
        upload_path(upload).unlink()
        return counts

    monkeypatch.setattr(database, "dump", end_meanwhile)
    made = back_up(tmp_path)
    [line] = [
        json.loads(line) for line in (tmp_path / "backups" / made.name / "files.jsonl").open() if str(upload.pk) in line
    ]
    assert (tmp_path / "content" / line["sha256"][:2] / line["sha256"]).read_bytes() == RECEIVED


def test_file_that_is_deleted_after_the_database_was_read_stays_in_the_backup(monkeypatch, tmp_path):
    key = default_storage.save("derived/notes/1.json", ContentFile(b"{}"))
    dump = database.dump

    def delete_after(path, progress):
        counts = dump(path, progress)
        default_storage.delete(key)
        return counts

    monkeypatch.setattr(database, "dump", delete_after)
    made = back_up(tmp_path)
    listed = (tmp_path / "backups" / made.name / "files.jsonl").read_text()
    assert f"files/{key}" in listed


def test_failed_migration_after_a_restore_says_to_run_migrate_alone(monkeypatch):
    def fail(*_, **__):
        raise OperationalError("disk is full")

    monkeypatch.setattr(database, "call_command", fail)
    with pytest.raises(Unusable, match=r"failed \(disk is full\)\. Fix the cause and run .* migrate; do not restore"):
        database.upgrade()


def test_secret_key_is_restored_before_the_database(monkeypatch, settings, tmp_path):
    """A restore whose database fails is repeated, or ended by migrations alone; neither comes back to the key."""
    settings.SECRET_KEY = "old"
    back_up(tmp_path / "backups", with_secret=True)
    settings.SECRET_KEY, settings.DATA_DIR, settings.UPLOAD_DIR = "new", tmp_path / "data", tmp_path / "data/uploads"
    settings.UPLOAD_DIR.mkdir(parents=True)
    (settings.DATA_DIR / "secret_key").write_text("new")

    def fail(*_):
        raise Unusable("no database")

    monkeypatch.setattr(database, "find_content", str)
    monkeypatch.setattr(database, "load", fail)
    with pytest.raises(CommandError, match="no database"):
        call_command("restore", str(tmp_path / "backups"))
    assert (settings.DATA_DIR / "secret_key").read_text() == "old"


def test_interrupted_backup_counts_for_nothing_and_the_next_goes_on(monkeypatch, tmp_path):
    store_bytes(b"kept", ".document")

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(database, "dump", interrupt)
        with pytest.raises(KeyboardInterrupt):
            back_up(tmp_path)
    with pytest.raises(CommandError, match="expected the backup that is complete, found none"):
        call_command("restore", str(tmp_path))
    made = back_up(tmp_path, later_s=2)
    assert made.new_files == 0


def test_flipped_byte_and_missing_file_are_found_here_and_in_the_backup(capfd, tmp_path):
    begin_work()
    back_up(tmp_path / "backups")
    damaged, missing = Utterance.objects.all()[:2]
    path = Path(default_storage.path(damaged.audio))
    content = path.read_bytes()
    other = Path(default_storage.path(missing.audio))
    kept = other.read_bytes()
    copy = tmp_path / "backups" / "content" / path.stem[:2] / path.stem
    try:
        path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        other.unlink()
        with pytest.raises(SystemExit) as ended:
            call_command("verify")
        said = capfd.readouterr()
        assert ended.value.code == 1
        assert f"files/{damaged.audio}: expected content {path.stem}, found content " in said.err
        assert f"files/{missing.audio}: expected a file of utterances, found none. Restore the file" in said.err
        assert "2 differences." in said.out
        call_command("verify", str(tmp_path / "backups"))
        assert ": 0 differences" in capfd.readouterr().out
    finally:
        path.write_bytes(content)
        other.write_bytes(kept)
    copy.chmod(0o600)
    copy.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    with pytest.raises(SystemExit):
        call_command("verify", str(tmp_path / "backups"))
    assert f"files/{damaged.audio}: expected content {path.stem} in the backup, found content" in capfd.readouterr().err


def test_restore_refuses_what_is_in_use(tmp_path):
    begin_work()
    back_up(tmp_path / "backups")
    with pytest.raises(CommandError, match=r"^The database is in use: it has [\d,]+ rows in the table \w+\. A"):
        call_command("restore", str(tmp_path / "backups"))


def test_backup_folder_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    for place, words in (
        (tmp_path, "expected a folder of backups or an empty one, found other files"),
        (settings.DATA_DIR / "backups", "expected a folder outside of the portal's data"),
    ):
        with pytest.raises(CommandError, match=words):
            call_command("backup", str(place))
    with pytest.raises(CommandError, match="expected a folder of backups, found none"):
        call_command("verify", str(tmp_path))


def test_root_of_a_disk_takes_backups(tmp_path):
    (tmp_path / "lost+found").mkdir(mode=0)
    call_command("backup", str(tmp_path))
    call_command("verify", str(tmp_path))
    assert len(list((tmp_path / "backups").iterdir())) == 1


def test_backup_of_a_newer_portal_is_refused(tmp_path):
    with pytest.raises(Unusable, match=r"newer portal: this one does not have the migrations core\.9999_later"):
        load(tmp_path / "none", [["core", "9999_later"]], {}, ignore)
