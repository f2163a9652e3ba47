"""Real work through real processes: speech is imported and anonymised with B2 while its worker is killed."""

import csv
import hashlib
import io
import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.storage import default_storage

from anonymization.methods.registry import get_method
from anonymization.models import AnonymizationRun
from anonymization.services import pseudo_speaker_of, start_anonymization
from evaluation.formats.audio import read_pcm16, write_flac16
from portal.challenges.importing import start_import
from portal.challenges.models import Corpus
from portal.jobs.models import JobEvent, State
from portal.submissions.models import SubmittedFile
from portal.submissions.services import create_baseline
from tests.portal.processes.programs import wait_for_end, wait_until

SPEECH = [settings.BASE_DIR / "demo" / "corpus", settings.BASE_DIR.parent / "shared" / "speech"]
METHOD = "mcadams-2022"


@pytest.fixture
def speech(tmp_path):
    """A folder with the first utterances of two women and two men, in the manifest of the whole."""
    whole = next((folder for folder in SPEECH if (folder / "utterances.csv").exists()), None)
    if whole is None:
        pytest.skip(f"there is no speech in {' or '.join(map(str, SPEECH))}")
    with (whole / "utterances.csv").open(newline="") as stream:
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
        (folder / top).symlink_to(whole / top)
    return folder


def test_b2_continues_after_a_kill_and_gives_each_utterance_once(standing, speech):
    imported = wait_for_end(start_import(folder=str(speech), name="speech"))
    assert imported.state == State.SUCCEEDED, imported.failure
    corpus = Corpus.objects.get(name="speech")
    data_set = max(corpus.data_sets.all(), key=lambda data_set: data_set.utterances.count())
    count = data_set.utterances.count()
    submission = create_baseline(name="b2", title="B2", corpus=corpus)
    [run] = start_anonymization(submission=submission, data_sets=[data_set], method=METHOD, seed=7)
    files = SubmittedFile.objects.filter(submission=submission)
    wait_until(lambda: files.count() >= 3, "three anonymised utterances")
    for pid in set(standing.worker.family()) - {standing.worker.pid}:
        os.kill(pid, signal.SIGKILL)
    kept = files.count()
    assert 3 <= kept < count
    ended = wait_for_end(run.job)
    assert (ended.state, ended.attempt, ended.result) == (State.SUCCEEDED, 2, {"utterances": count})
    note = f"{kept} of {count} utterances were anonymised before; continuing."
    assert JobEvent.objects.filter(job=run.job, text=note).count() == 1
    assert files.count() == files.values("utterance").distinct().count() == count
    assert [file.utterance.name for file in files if not is_what_the_method_gives(run, file)] == []


def is_what_the_method_gives(run: AnonymizationRun, file: SubmittedFile) -> bool:
    """Byte for byte: a stored file against the method called here, in this process and without a break."""
    with default_storage.open(file.utterance.audio) as original:
        samples, rate = read_pcm16(original)
    output = get_method(METHOD).anonymize(samples, rate, pseudo_speaker_of(run, file.utterance))
    flac = io.BytesIO()
    write_flac16(flac, output, rate)
    stored = Path(default_storage.path(file.audio))
    return stored.read_bytes() == flac.getvalue() and hashlib.sha256(stored.read_bytes()).hexdigest() in file.audio
