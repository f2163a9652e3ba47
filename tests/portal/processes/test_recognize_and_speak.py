"""T04 lite by its real models in a portal job on real speech: killed while it plans and while it speaks, it goes on."""

import csv
from collections import defaultdict

import pytest
import soundfile
from django.core.files.storage import default_storage

from anonymization.app.handlers import PLANNING
from anonymization.app.services import start_anonymization
from anonymization.methods.registry import get_method
from portal.challenges.models import Corpus, Role
from portal.corpora.services import start_import
from portal.jobs.models import JobState
from portal.submissions.models import SubmittedFile
from portal.submissions.services import create_baseline
from tests.portal.processes.held import Held
from tests.portal.processes.programs import wait_for_end, wait_until
from tests.portal.processes.test_speech import kill_at_work, stored_as

# Two speakers whose shortest utterances are taken, in seconds, and how many.
SPEAKERS, SHORTEST_S, UTTERANCES = ("1998", "3080"), 2.0, 4


HELD = """
from anonymization.methods.recognize_and_speak.method import RecognizeAndSpeak

def hold(whole):
    def held(*arguments, **options):
        wait()
        given = whole(*arguments, **options)
        note()
        return given
    return held

RecognizeAndSpeak.plan_voices = hold(RecognizeAndSpeak.plan_voices)
RecognizeAndSpeak._anonymize = hold(RecognizeAndSpeak._anonymize)
"""


@pytest.fixture
def speech(shared, tmp_path):
    """A folder of real speech whose speakers have no gender, so that planning hears them."""
    if missing := get_method("t04").missing():
        pytest.skip(missing)
    with (shared / "speech" / "utterances.csv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["speaker"] in SPEAKERS]
    by_speaker = defaultdict(list)
    for row in sorted(rows, key=lambda row: float(row["duration_s"])):
        if float(row["duration_s"]) >= SHORTEST_S and len(by_speaker[row["speaker"]]) < UTTERANCES:
            by_speaker[row["speaker"]].append(row)
    chosen = [row for own in by_speaker.values() for row in own]
    folder = tmp_path / "speech"
    folder.mkdir()
    for row in chosen:
        (folder / f"{row['utterance_id']}.flac").symlink_to(shared / "speech" / row["path"])
    columns = ("utterance_id", "speaker", "gender", "transcript", "path")
    rows = [{**row, "path": f"{row['utterance_id']}.flac"} for row in chosen]
    with (folder / "utterances.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return folder


@pytest.mark.slow  # Whisper and Kokoro in three workers
def test_it_goes_on_after_a_kill_while_it_plans_and_while_it_speaks(alone, tmp_path, speech):
    held = Held(tmp_path / "held", HELD)
    worker = alone.start_worker(**held.environment)
    alone.start_scheduler(**held.environment)
    held.let(0)
    imported = wait_for_end(start_import(folder=str(speech), name="speech"))
    assert imported.state == JobState.SUCCEEDED, imported.failure
    corpus = Corpus.objects.get(name="speech")
    corpus.speakers.update(gender="")
    data_set = max(corpus.data_sets.filter(role=Role.TRIAL), key=lambda one: one.utterances.count())
    count = data_set.utterances.count()
    submission = create_baseline(name="t04", title="T04 lite", corpus=corpus)
    [run] = start_anonymization(submission=submission, data_sets=[data_set], method="t04", seed=7)
    files = SubmittedFile.objects.filter(submission=submission)

    def stage():
        run.job.refresh_from_db()
        assert run.job.state != JobState.FAILED, run.job.failure
        return run.job.stage

    wait_until(lambda: stage() == PLANNING, "planning")
    kill_at_work(run.job, [worker])
    run.refresh_from_db()
    assert (run.voices, files.count()) == ({}, 0)

    held.let(3)  # the plan, the first utterance alone, and another
    wait_until(lambda: files.count() >= 1, "a spoken utterance")
    held.let(0)
    run.refresh_from_db()
    planned, before = run.voices, stored_as(files)
    kill_at_work(run.job, [worker])
    held.let(10**6)
    ended = wait_for_end(run.job)
    assert (ended.state, ended.attempt) == (JobState.SUCCEEDED, 3), ended.failure
    run.refresh_from_db()
    assert run.voices == planned
    after = stored_as(files)
    assert {key: after[key] for key in before} == before  # what was finished stayed
    assert files.count() == count
    for file in files.select_related("utterance__speaker"):
        with default_storage.open(file.utterance.audio) as original:
            samples, rate = soundfile.read(original, dtype="int16")
        voice = run.voices[file.utterance.speaker.name]
        assert {name[1] for name in voice["mixture"]} in ({"f"}, {"m"})  # a gender was heard
        with default_storage.open(file.audio) as stored:
            spoken, _ = soundfile.read(stored, dtype="int16")
        assert rate == 16_000
        assert spoken.any()
        assert 0.3 < spoken.size / samples.size < 3
