"""Real work through real processes: speech is imported and anonymised with B2 while its worker is killed."""

import csv
import hashlib
import io
import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from anonymization.app.models import AnonymizationRun
from anonymization.app.services import start_anonymization
from anonymization.app.voice_assignment import find_pseudo_speaker
from anonymization.methods.registry import get_method
from portal.challenges.models import Corpus
from portal.corpora.services import start_import
from portal.jobs.models import JobEvent, JobState
from portal.submissions.models import SubmittedFile
from portal.submissions.services import create_baseline
from speech.audio.files import read_pcm16, write_flac16
from tests.portal.processes.held import Held
from tests.portal.processes.programs import wait_for_end, wait_until
from tests.recordings import DEMO

METHOD = "mcadams-2022"


@pytest.fixture
def speech(tmp_path):
    """A folder with the first utterances of two women and two men, in the manifest of the whole."""
    with (DEMO / "utterances.csv").open(newline="") as stream:
        table = csv.DictReader(stream)
        rows, columns = list(table), table.fieldnames
    speakers = defaultdict(list)
    for row in rows:
        if row["speaker"] not in speakers[row["gender"]]:
            speakers[row["gender"]].append(row["speaker"])
    chosen = {name for names in speakers.values() for name in names[:2]}
    folder = tmp_path / "speech"
    folder.mkdir()
    with (folder / "utterances.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(row for row in rows if row["speaker"] in chosen)
    for top in {Path(row["path"]).parts[0] for row in rows}:
        (folder / top).symlink_to(DEMO / top)
    return folder


def begin(speech):
    """A corpus imported by the worker, and the run of a method on its largest data set."""
    imported = wait_for_end(start_import(folder=str(speech), name="speech"))
    assert imported.state == JobState.SUCCEEDED, imported.failure
    corpus = Corpus.objects.get(name="speech")
    data_set = max(corpus.data_sets.all(), key=lambda data_set: data_set.utterances.count())
    submission = create_baseline(name="b2", title="B2", corpus=corpus)
    [run] = start_anonymization(submission=submission, data_sets=[data_set], method=METHOD, seed=7)
    return run, data_set.utterances.count(), SubmittedFile.objects.filter(submission=submission)


def stored_as(files):
    """Rows and stored files as they are now: key and time of the last change."""
    return {
        row["id"]: (row["audio"], Path(default_storage.path(row["audio"])).stat().st_mtime_ns)
        for row in files.values("id", "audio")
    }


# B2 as a plain method, which takes the utterances of a batch one by one. Each process and each attempt prepares it by
# one call more.
HELD = """
from dataclasses import fields

from anonymization.methods.contract import Method
from anonymization.methods.mcadams import method as mcadams

def hold(method):
    def process(*arguments):
        wait()
        output = method.process(*arguments)
        note()
        return output
    return Method(**{each.name: getattr(method, each.name) for each in fields(Method)} | {"process": process})

mcadams.METHODS = tuple(hold(method) for method in mcadams.METHODS)
"""


def kill_at_work(job, programs):
    """The processes that these programs started, one of which has the job."""
    job.refresh_from_db()
    assert job.state == JobState.RUNNING
    for program in programs:
        for pid in set(program.family()) - {program.pid}:
            os.kill(pid, signal.SIGKILL)


def test_b2_continues_after_a_kill_and_gives_each_utterance_once(alone, speech, tmp_path):
    held = Held(tmp_path / "held", HELD)
    worker = alone.start_worker(**held.environment)
    alone.start_scheduler(**held.environment)
    held.let(10)  # one to prepare, the first utterance alone, two batches of four
    run, count, files = begin(speech)
    wait_until(lambda: files.count() >= 9, "nine anonymised utterances")
    kill_at_work(run.job, [worker])
    before = stored_as(files)
    assert 9 == len(before) < count
    held.let(10**6)
    ended = wait_for_end(run.job)
    assert (ended.state, ended.attempt, ended.result) == (JobState.SUCCEEDED, 2, {"utterances": count})
    note = f"{len(before)} of {count} utterances were anonymised before; continuing."
    assert JobEvent.objects.filter(job=run.job, text=note).count() == 1
    assert files.count() == files.values("utterance").distinct().count() == count
    assert [file.utterance.name for file in files if not is_what_the_method_gives(run, file)] == []
    after = stored_as(files)
    assert {key: after[key] for key in before} == before  # nothing that was finished was touched


def is_what_the_method_gives(run: AnonymizationRun, file: SubmittedFile) -> bool:
    """Byte for byte: a stored file against the method called here, in this process and without a break."""
    with default_storage.open(file.utterance.audio) as original:
        samples, rate = read_pcm16(original)
    output = get_method(METHOD).anonymize(samples, rate, find_pseudo_speaker(run, file.utterance))
    flac = io.BytesIO()
    write_flac16(flac, output, rate)
    stored = Path(default_storage.path(file.audio))
    return stored.read_bytes() == flac.getvalue() and hashlib.sha256(stored.read_bytes()).hexdigest() in file.audio
