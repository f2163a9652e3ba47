"""Listening tests of recordings of one's own: archives as people pack them, and studies of which no file is there."""

import io
import zipfile

import numpy as np
import soundfile
from django.core.files.uploadedfile import SimpleUploadedFile

from listening.app.models import Condition, Item, Stimulus, Study
from listening.app.studies import designing, services
from listening.design.crossed import list_versions
from listening.questions import load_preset
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from tests.listening.edition_factories import TOLD

CONDITIONS = ("clean", "codec")
ITEMS = ("a", "b", "c")


def sound(hertz, *, seconds=0.6, rate_hz=16000, channels=1, peak=0.3, form="WAV"):
    """Return the bytes of a file with a tone."""
    samples = peak * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate_hz)) / rate_hz)
    file = io.BytesIO()
    soundfile.write(file, np.repeat(samples[:, None], channels, axis=1), rate_hz, format=form)
    return file.getvalue()


def pack(files):
    """Return a zip of files, by their paths."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return SimpleUploadedFile("recordings.zip", file.getvalue())


def send_recordings(client, files, **more):
    """Send the form of a new test with these recordings."""
    form = {"title": "Codecs", "preset": "mos", "loudness": "p56", **TOLD, "archive": pack(files)}
    return client.post("/studies/new/recordings/", form | more)


def run_jobs():
    """Do what waits, as a worker would."""
    for job in Job.objects.exclude(state__in=[JobState.SUCCEEDED, JobState.FAILED]):
        execute(job.pk)


def recordings(conditions=CONDITIONS, items=ITEMS, **more):
    """Return tones for each item in each condition, by their paths."""
    return {
        f"{condition}/{item}.wav": sound(200 + 40 * place + 7 * number, **more)
        for place, condition in enumerate(conditions)
        for number, item in enumerate(items)
    }


def make_own_draft(
    by, *, name="own-test", title="Own test", preset="mos", conditions=CONDITIONS, items=ITEMS, **fields
):
    """Return a test of recordings that are not there, before its design; the original is the condition ``""``."""
    asked = fields.pop("questions", load_preset(preset).questions)
    trials = len(list_versions(asked[0].screen, conditions)) * len(items)
    defaults = {"evaluators": 4, "trials_per_evaluator": trials, "originals_per_evaluator": 0, "seed": 2022} | TOLD
    told = {"practice_trials": 0, "gold_trials": 0, "bridge_trials": 0, "role_play": "none", "questions": asked}
    study = services.create_study(edition=None, by=by, name=name, title=title, **defaults | told | fields)
    rows = [
        Condition.objects.create(study=study, code=code, kind="folder" if code else "original") for code in conditions
    ]
    for item in [Item.objects.create(study=study, name=item, transcript=f"the word {item}") for item in items]:
        for condition in rows:
            Stimulus.objects.create(study=study, condition=condition, item=item, source=f"absent/{condition}/{item}")
    return study


def make_own_prepared(by, **fields):
    """Return a designed test whose stimuli count as made; they cannot be heard."""
    study = make_own_draft(by, **fields)
    designing.make_design(study, by)
    study.stimulus_files.update(file="derived/nothing.wav", bytes=1, duration_s=0.6)
    study = Study.objects.get(pk=study.pk)
    study.state = Study.State.PREPARED
    study.save()
    return study
