"""The stimuli of a study are made by a real worker, which is killed in the middle."""

import io
import os
import signal

import pytest

from listening.app.models import Stimulus, Study
from listening.app.studies.services import prepare_study
from listening.stimuli.making import make_stimulus
from portal.core.storage import default_storage, load_audio, store_bytes
from portal.jobs.models import JobState
from speech.audio.files import write_flac16
from tests.listening.factories import make_study
from tests.listening.stimuli.speech import demo_recordings
from tests.portal.factories import make_organizer
from tests.portal.processes.programs import processes_of, wait_for_end, wait_until


def store(samples):
    file = io.BytesIO()
    write_flac16(file, samples, 16000)
    return store_bytes(file.getvalue(), ".flac")


@pytest.mark.slow  # two whole preparations
def test_stimuli_continue_after_a_kill_and_are_what_they_would_have_been(standing, tmp_path):
    study = make_study(trials=40, systems=3, state=Study.State.DRAFT, launched_at=None)
    recordings = demo_recordings()
    for place, stimulus in enumerate(study.stimulus_files.all()):
        Stimulus.objects.filter(pk=stimulus.pk).update(
            source=store(recordings[place % len(recordings)]), file="", bytes=0, duration_s=0
        )
    processes = processes_of(standing.worker, tmp_path)
    job = prepare_study(study, make_organizer())
    made = study.stimulus_files.exclude(file="")
    wait_until(lambda: made.count() >= 3, "three stimuli")
    for pid in processes:
        os.kill(pid, signal.SIGKILL)
    before = set(made.values_list("pk", flat=True))
    kept, total = len(before), study.stimulus_files.count()
    assert 3 <= kept < total
    ended = wait_for_end(job)
    assert (ended.state, ended.attempt, ended.result["files"]) == (JobState.SUCCEEDED, 2, total)
    study.refresh_from_db()
    assert study.state == Study.State.PREPARED
    note = f"{kept} of {total} stimuli are there already; continuing."
    assert ended.events.filter(text=note).count() == 1
    assert made.count() == total
    for stimulus in made:
        if stimulus.pk not in before and stimulus.pk % 4:
            continue  # of those that came after the kill every fourth
        with default_storage.open(stimulus.file) as file:
            assert file.read() == make_stimulus(*load_audio(stimulus.source)).content
