"""A program of somebody else as a baseline: described in the operator's folder, run by the portal's jobs, confined."""

from __future__ import annotations

import io
import threading
import time

import numpy as np
import pytest
import soundfile
from django.core.files.storage import default_storage

from anonymization.app.models import AnonymizationRun
from anonymization.methods.registry import get_method
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.jobs.services import request_cancel, run_again
from portal.submissions.models import SubmittedFile
from portal.systems.services import start_baseline
from tests.anonymization.programs import confined, make_command
from tests.portal.factories import make_corpus

pytestmark = [pytest.mark.django_db(transaction=True), confined]
# The first utterance alone and the speech of a held program are given back at once; others wait to be ended.
HELD = """
if len(list(source.iterdir())) > 1 and Path(__file__).with_name("held").exists():
    time.sleep(600)
copy()
"""
BACKWARDS = "copy()"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The operator's folder of commands."""
    place = tmp_path / "anonymizers"
    place.mkdir()
    monkeypatch.setenv("PORTAL_ANONYMIZERS_DIR", str(place))
    return place


def start(corpus):
    data_sets = corpus.data_sets.filter(name="tones_trials_f")
    start_baseline(name="hushed", corpus=corpus, data_sets=data_sets, method="hush", seed=1)
    return Job.objects.get(kind="anonymize")


def samples_of(key):
    with default_storage.open(key) as stored:
        return soundfile.read(io.BytesIO(stored.read()), dtype="int16")[0]


def assert_whole_and_backwards(run):
    files = SubmittedFile.objects.select_related("utterance")
    assert files.count() == run.data_set.utterances.count() > 2
    for file in files:
        # The program turns the bytes around, so each sample is read from its other end, too.
        turned = samples_of(file.utterance.audio)[::-1].byteswap()
        np.testing.assert_array_equal(samples_of(file.audio), turned)


def test_command_of_the_operators_folder_makes_the_files_of_a_system(folder):
    make_command(folder / "hush", BACKWARDS)
    job = start(make_corpus("tones", speakers=4))
    ended = execute(job.pk)
    assert (ended.state, ended.failure) == (JobState.SUCCEEDED, "")
    run = AnonymizationRun.objects.get()
    assert (run.method, run.recipe_version) == ("hush", get_method("hush").version)
    assert_whole_and_backwards(run)


def test_command_that_works_when_its_run_is_cancelled_is_ended_and_can_be_continued(folder, settings):
    """It would work for ten minutes; the cancel comes once its second call is under way."""
    settings.JOB_HEARTBEAT_S = 0.2
    make_command(folder / "hush", HELD)
    (folder / "hush" / "held").touch()
    job = start(make_corpus("tones", speakers=4))
    began = time.monotonic()
    done = threading.Event()

    def cancel():
        try:
            while not done.wait(0.1):
                if SubmittedFile.objects.exists():
                    request_cancel(Job.objects.get(pk=job.pk), by=None)
                    return
        finally:
            from django.db import connection

            connection.close()

    visitor = threading.Thread(target=cancel)
    visitor.start()
    try:
        ended = execute(job.pk)
    finally:
        done.set()
        visitor.join()
    assert (ended.state, ended.failure) == (JobState.CANCELLED, "Cancelled; what was finished is kept.")
    assert time.monotonic() - began < 300  # half of what the command would have slept
    assert SubmittedFile.objects.count() == 1
    (folder / "hush" / "held").unlink()
    run_again(ended, by=None)
    assert execute(job.pk).state == JobState.SUCCEEDED
    assert_whole_and_backwards(AnonymizationRun.objects.get())
