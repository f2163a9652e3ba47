"""A data set as large as the largest of the challenge, whose utterances share a few real recordings, in bounded memory.

Set ANONYMIZE_UTTERANCES=28275 for the size of the largest; without it a smaller one is made.
"""

import io
import json
import os

import pytest
import soundfile

from anonymization.app.models import AnonymizationRun
from anonymization.app.services import start_anonymization
from portal.challenges.models import Corpus, DataSet
from portal.core.storage import store_bytes
from portal.jobs.models import Job, JobState
from portal.submissions.models import SubmittedFile
from portal.submissions.services import create_baseline
from tests.recordings import DEMO

UTTERANCES = int(os.environ.get("ANONYMIZE_UTTERANCES", "1500"))
RECORDINGS = 20
SPEAKERS = 50
SECONDS = 1.0
RATE_HZ = 16_000
# What a run of any size may take beside a small one before it, and further for each utterance of the report of voices.
MOST_MB = 50
MOST_KB_PER_UTTERANCE = 2.5
PROGRAM = """
import django, json, resource, sys, time
django.setup()
from portal.jobs.runner import execute
told = []
for job in sys.argv[1:]:
    began = time.monotonic()
    state = execute(job).state
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told.append({"state": state, "peak_mb": peak_mb, "took_s": time.monotonic() - began})
print(json.dumps(told))
"""


@pytest.fixture
def recordings():
    """Keys of the first second of some recordings of the demo corpus."""
    keys = []
    for path in sorted(DEMO.rglob("*.flac"))[:RECORDINGS]:
        samples, rate = soundfile.read(path, dtype="int16", frames=int(SECONDS * RATE_HZ))
        assert rate == RATE_HZ
        packed = io.BytesIO()
        soundfile.write(packed, samples, rate, format="FLAC", subtype="PCM_16")
        keys.append((store_bytes(packed.getvalue(), ".flac"), samples.size))
    return keys


def make_set(corpus, recordings, name, count):
    """A training set of so many utterances."""
    data_set = corpus.data_sets.create(name=name, role="training")
    speakers = [corpus.speakers.get_or_create(name=f"s{n:02}", gender="fm"[n % 2])[0] for n in range(SPEAKERS)]
    rows = []
    for number in range(count):
        audio, samples = recordings[number % len(recordings)]
        rows.append(
            corpus.utterances.model(
                corpus=corpus,
                speaker=speakers[number % SPEAKERS],
                name=f"{name}-{number:06}",
                audio=audio,
                samples=samples,
                rate_hz=RATE_HZ,
                duration_s=samples / RATE_HZ,
            )
        )
    made = corpus.utterances.model.objects.bulk_create(rows, batch_size=1000)
    through = DataSet.utterances.through
    through.objects.bulk_create((through(dataset_id=data_set.pk, utterance_id=one.pk) for one in made), batch_size=1000)
    return data_set


@pytest.mark.slow  # 1,700 utterances
def test_data_set_of_many_utterances_is_anonymised_in_bounded_memory(alone, recordings, monkeypatch):
    monkeypatch.setattr("portal.jobs.services.send", lambda _: True)
    corpus = Corpus.objects.create(name="many", layout="manifest", source="made here")
    sets = [make_set(corpus, recordings, "few", 200), make_set(corpus, recordings, "many", UTTERANCES)]
    submission = create_baseline(name="b2", title="B2", corpus=corpus)
    runs = start_anonymization(submission=submission, data_sets=sets, method="mcadams-2022", seed=1)
    program = alone.start("one-process", "-c", PROGRAM, *(str(run.job_id) for run in runs))
    program.wait(60 + UTTERANCES)
    few, many = json.loads(program.output().splitlines()[-1])
    print(f"{UTTERANCES} utterances of {SECONDS:g} s in {many['took_s']:.0f} s")
    print(f"peak {few['peak_mb']:.0f} MB after 200, {many['peak_mb']:.0f} MB after all")
    assert (few["state"], many["state"]) == (JobState.SUCCEEDED, JobState.SUCCEEDED)
    assert many["peak_mb"] - few["peak_mb"] < MOST_MB + UTTERANCES * MOST_KB_PER_UTTERANCE / 1024
    files = SubmittedFile.objects.filter(data_set=sets[1])
    assert files.count() == files.values("utterance").distinct().count() == UTTERANCES
    assert files.values("audio").distinct().count() == UTTERANCES  # each in a voice of its own
    run = AnonymizationRun.objects.get(data_set=sets[1])
    assert run.report["voices"]["n_voices"] == UTTERANCES
    assert Job.objects.get(pk=run.job_id).result == {"utterances": UTTERANCES}
