"""Stored files that nothing needs go once they are old; whatever somebody needs, or stores just now, stays."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command

from evaluation.app.audio_measures.services import start_measures
from evaluation.app.models import EvaluationRun
from portal.challenges.data_files import keep_data_files, make_data_files
from portal.challenges.models import Edition, Utterance
from portal.core.storage import AtomicFileSystemStorage, store_bytes
from portal.deletion.files import clean_up_files, list_held_files
from portal.deletion.services import delete
from portal.jobs.runner import execute
from portal.operations import sweep
from portal.operations.periodic_tasks import delete_leftovers
from portal.submissions.models import Submission
from tests.listening.factories import make_study
from tests.portal.factories import make_corpus, make_edition, make_job, make_organizer, make_system

pytestmark = pytest.mark.django_db
SECOND = 1.0


@pytest.fixture(autouse=True)
def folder(own_storage):
    return own_storage


def age_all(folder):
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (SECOND, SECOND))


def list_stored(folder):
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def swept(key, folder):
    sweep.sweep(sweep.time_of_sweep())
    return key not in list_stored(folder)


@pytest.mark.usefixtures("quick_figures", "quick_measures")
def test_disk_use_falls_to_what_is_needed(folder):
    """Of two challenges one is deleted, and a job was killed: then the files are those of the other, byte by byte."""
    study = make_study(name="stays")
    for name in ("goes", "stays-too"):
        corpus = make_corpus(name=name, created_by=make_organizer(email=f"{name}@test.example"))
        edition = make_edition(corpus, name=name)
        submission = make_system(corpus, name=f"of-{name}").submissions.get()
        run = start_measures(submission=submission, data_set=corpus.data_sets.filter(role="trial").first())
        assert execute(run.job.pk).state == "succeeded"
        keep_data_files(edition, make_data_files(edition, lambda *_: None))
    lost = store_bytes(b"of a job that was killed before it wrote its row", ".flac")
    draft = folder / "content" / f".{'0' * 32}.part"
    draft.write_bytes(b"half of")
    before = list_stored(folder)
    going = Edition.objects.get(name="goes")
    for thing in (going, going.corpus):
        delete(thing=thing, by=None, patience_s=0)
    age_all(folder)
    clean_up_files()
    call_command("sweep")
    after = list_stored(folder)
    needed = {key for _, key in list_held_files()}
    drawn = {key for key in after if key.startswith("derived/figures/")}
    runs = set(map(str, EvaluationRun.objects.values_list("pk", flat=True)))
    assert {key.split("/")[2] for key in drawn} <= runs
    assert after.keys() - drawn == needed
    assert lost in before
    assert not draft.exists()
    assert sum(after.values()) < sum(before.values())
    assert Submission.objects.filter(system__name="of-stays-too").exists()
    assert study.stimulus_files.exists()
    call_command("verify")


def test_new_files_stay_for_a_day(folder):
    key = store_bytes(b"new", ".flac")
    path = folder / key
    edge = time.time() - sweep.SECONDS_KEPT
    os.utime(path, (edge + 60, edge + 60))
    assert not swept(key, folder)
    os.utime(path, (edge - 60, edge - 60))
    assert swept(key, folder)


def test_file_that_is_stored_again_meanwhile_stays(folder, monkeypatch):
    key = store_bytes(b"again", ".flac")
    age_all(folder)
    find = sweep.find_unneeded

    def find_and_store(before):
        found = find(before)
        assert [one.key for one in found] == [key]
        assert store_bytes(b"again", ".flac") == key
        return found

    monkeypatch.setattr(sweep, "find_unneeded", find_and_store)
    assert not swept(key, folder)


def test_file_whose_row_comes_meanwhile_stays(folder, monkeypatch):
    utterance = make_corpus().utterances.first()
    key = store_bytes(b"of a row", ".flac")
    age_all(folder)
    find = sweep.find_unneeded

    def find_and_name(before):
        found = find(before)
        Utterance.objects.filter(pk=utterance.pk).update(audio=key)
        return found

    monkeypatch.setattr(sweep, "find_unneeded", find_and_name)
    assert not swept(key, folder)


def test_files_that_a_job_or_an_archive_to_download_names_stay(folder):
    edition = make_edition(make_corpus())
    keep_data_files(edition, make_data_files(edition, lambda *_: None))
    replaced = edition.corpus.utterances.first()
    listed = replaced.audio
    Utterance.objects.filter(pk=replaced.pk).update(audio=store_bytes(b"another", ".flac"))
    of_job = store_bytes(b"of a job", ".zip")
    job = make_job("waiting", parameters={"files": [of_job]})
    age_all(folder)
    sweep.sweep(sweep.time_of_sweep())
    assert {listed, of_job} <= list_stored(folder).keys()
    job.delete()
    edition.data_files.all().delete()
    sweep.sweep(sweep.time_of_sweep())
    assert not {listed, of_job} & list_stored(folder).keys()


WRITE_FOR_EVER = """
import itertools, sys
from django.conf import settings
settings.configure()
from django.core.files.base import File
from portal.core.storage import AtomicFileSystemStorage

class Endless(File):
    def chunks(self, chunk_size=None):
        for _ in itertools.count():
            yield b"speech" * 1000
            print("writing", flush=True)

AtomicFileSystemStorage(location=sys.argv[1]).save("content/ab/one.flac", Endless(None, "one.flac"))
"""


def test_half_written_file_of_a_killed_process_is_deleted_a_day_later(tmp_path, settings):
    command = [sys.executable, "-c", WRITE_FOR_EVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=settings.BASE_DIR) as process:
        assert process.stdout.readline() == b"writing\n"
        process.kill()
    [draft] = (path for path in tmp_path.rglob("*") if path.is_file())
    kept = tmp_path / "content" / "ab" / "other.flac"
    kept.write_bytes(b"kept")
    os.utime(kept, (0, 0))
    files = AtomicFileSystemStorage(location=tmp_path)
    assert (files.delete_drafts(sweep.time_of_sweep()), draft.exists()) == (0, True)
    os.utime(draft, (0, 0))
    assert (files.delete_drafts(sweep.time_of_sweep()), draft.exists(), kept.exists()) == (1, False, True)


def test_scheduler_deletes_drafts_and_files_of_killed_checks(folder):
    names = ["health/left-by-a-killed-check", "health/young"]
    for name in names:
        default_storage.save(name, ContentFile(b"ok"))
    draft = Path(default_storage.path("content")) / "ab" / f".{'0' * 32}.part"
    draft.parent.mkdir(parents=True, exist_ok=True)
    draft.write_bytes(b"half")
    for path in (draft, default_storage.path(names[0])):
        os.utime(path, (0, 0))
    delete_leftovers()
    assert [default_storage.exists(name) for name in names] == [False, True]
    assert not draft.exists()
