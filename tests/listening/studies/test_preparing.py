"""Making the stimuli of a study as a job: whole, interrupted, cancelled, failed, fixed; with speech of the demo."""

import io

import numpy as np
import pytest
from django.core.files.storage import default_storage

from common.errors import NotPossible
from listening.app.models import Stimulus, Study
from listening.app.studies import handlers
from listening.app.studies.services import prepare_study
from listening.stimuli.making import SILENCE_SAMPLES
from portal.core.storage import store_bytes
from portal.jobs.models import Job, JobState
from portal.jobs.runner import JobReleased, execute
from portal.jobs.services import request_cancel, run_again
from speech.audio.files import write_flac16
from speech.audio.level import active_speech_level
from tests.listening.factories import make_study
from tests.listening.stimuli.speech import decode, demo_recordings
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db


def store(samples):
    file = io.BytesIO()
    write_flac16(file, np.asarray(samples, np.int16), 16000)
    return store_bytes(file.getvalue(), ".flac")


@pytest.fixture
def study():
    """Designed, with spoken recordings and no stimulus file yet."""
    study = make_study(trials=6, state=Study.State.DRAFT, launched_at=None)
    for stimulus, samples in zip(study.stimulus_files.all(), demo_recordings(), strict=False):
        stimulus.source, stimulus.file, stimulus.bytes, stimulus.duration_s = store(samples), "", 0, 0
        stimulus.save()
    assert study.stimulus_files.count() > 6
    return study


def prepare(study):
    return execute(prepare_study(study, make_organizer()).pk)


def content(stimulus):
    with default_storage.open(stimulus.file) as file:
        return file.read()


def test_criterion_02_one_channel_serves_both_ears_at_the_common_level(study):
    prepare(study)
    for stimulus in study.stimulus_files.all():
        heard = decode(content(stimulus)) / 32768
        assert heard.shape[1] == 1
        speech = heard[SILENCE_SAMPLES : SILENCE_SAMPLES + round(stimulus.duration_s * 16000), 0]
        assert active_speech_level(speech, 16000).active_dbov == pytest.approx(-26, abs=0.1)


def test_study_without_a_design_or_closed_cannot_be_prepared(study):
    for fields, sentence in (({"certificate": {}}, "Make the design first"), ({"state": Study.State.CLOSED}, "closed")):
        Study.objects.filter(pk=study.pk).update(**fields)
        with pytest.raises(NotPossible, match=sentence):
            prepare_study(study, make_organizer())
    assert not Job.objects.exists()


def test_interrupted_job_continues_and_makes_nothing_twice(study, monkeypatch):
    made, make_one = [], handlers._make_one

    def one(stimulus):
        if len(made) == 4:
            raise JobReleased
        made.append(stimulus.pk)
        return make_one(stimulus)

    monkeypatch.setattr(handlers, "_make_one", one)
    job = prepare(study)
    study.refresh_from_db()
    assert (job.state, study.state) == (JobState.WAITING, Study.State.PREPARING)
    assert Stimulus.objects.exclude(file="").count() == 4
    monkeypatch.setattr(handlers, "_make_one", lambda *args: made.append(args[0].pk) or make_one(*args))
    assert execute(job.pk).state == JobState.SUCCEEDED
    total = study.stimulus_files.count()
    assert len(made) == len(set(made)) == total
    assert f"4 of {total} stimuli are there already; continuing." in job.events.values_list("text", flat=True)


def test_job_that_is_cancelled_before_it_began_leaves_a_draft(study):
    request_cancel(prepare_study(study, make_organizer()), by=make_organizer())
    study.refresh_from_db()
    assert study.state == Study.State.DRAFT


def test_every_faulty_recording_is_named_and_the_fixed_job_goes_on(study):
    stimuli = list(study.stimulus_files.select_related("condition", "item"))
    silent, missing, short = stimuli[2], stimuli[3], stimuli[5]
    sources = [one.source for one in (silent, missing, short)]
    Stimulus.objects.filter(pk=silent.pk).update(source=store(np.zeros(16000)))
    Stimulus.objects.filter(pk=missing.pk).update(source="")
    Stimulus.objects.filter(pk=short.pk).update(source=store(np.full(800, 500)))
    job = prepare(study)
    study.refresh_from_db()
    assert (job.state, job.failure_actor, study.state) == (JobState.FAILED, "organizer", Study.State.DRAFT)
    assert job.failure.startswith(f"3 of {len(stimuli)} recordings cannot be made into stimuli. ")
    assert [(problem["code"], problem["file"].split(" ")[0]) for problem in job.problems] == [
        ("silent", silent.item.name),
        ("missing-file", missing.item.name),
        ("too-short", short.item.name),
    ]
    for problem, stimulus in zip(job.problems, (silent, missing, short), strict=True):
        origin = f"as {stimulus.condition.code} has it" if stimulus.condition.code else "the original"
        assert problem["file"].endswith(f"({origin})")
    for stimulus, source in zip((silent, missing, short), sources, strict=True):
        Stimulus.objects.filter(pk=stimulus.pk).update(source=source)
    run_again(job, by=make_organizer())
    assert execute(job.pk).state == JobState.SUCCEEDED
    study.refresh_from_db()
    assert study.state == Study.State.PREPARED


def test_faulty_first_recording_stops_the_job_as_a_canary(study):
    first = study.stimulus_files.select_related("item").first()
    Stimulus.objects.filter(pk=first.pk).update(source="content/00/gone.flac")
    job = prepare(study)
    total = study.stimulus_files.count()
    assert job.failure.startswith(
        f"1 of {total} recordings cannot be made into stimuli, the first one among them, so the others were not tried. "
        f"{first.item.name} "
    )
    assert not Stimulus.objects.exclude(file="").exists()


def test_launched_study_stays_as_it_is_while_added_recordings_are_made(study):
    prepare(study)
    added = study.stimulus_files.last()
    before = dict(study.stimulus_files.exclude(pk=added.pk).values_list("pk", "file"))
    Stimulus.objects.filter(pk=added.pk).update(file="", bytes=0, facts={})
    Study.objects.filter(pk=study.pk).update(state=Study.State.OPEN)
    job = prepare_study(study, make_organizer())
    study.refresh_from_db()
    assert study.state == Study.State.OPEN
    assert execute(job.pk).state == JobState.SUCCEEDED
    study.refresh_from_db()
    added.refresh_from_db()
    assert (study.state, bool(added.file)) == (Study.State.OPEN, True)
    assert dict(study.stimulus_files.exclude(pk=added.pk).values_list("pk", "file")) == before


def test_old_job_of_a_study_that_was_designed_anew_changes_nothing(study):
    job = prepare_study(study, make_organizer())
    job = request_cancel(job, by=make_organizer())
    study.refresh_from_db()
    other = prepare_study(study, make_organizer())
    run_again(job, by=make_organizer())
    ended = execute(job.pk)
    assert (ended.state, ended.failure) == (JobState.FAILED, "The study has changed since this job was started.")
    assert not Stimulus.objects.exclude(file="").exists()
    study.refresh_from_db()
    assert (study.state, study.job) == (Study.State.PREPARING, other)
