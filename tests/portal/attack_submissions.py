"""Submissions whose speech is attacked with the long-term spectrum, which every machine has: voices, runs, and numbers
worked out beside the portal."""

import io

import numpy as np
import soundfile

from evaluation.app.attacks.services import start_attack
from evaluation.app.runs.selectors import list_jobs
from evaluation.metrics.detection import detection_metrics
from portal.core.storage import load_audio, store_bytes
from portal.jobs.runner import execute
from speech.encoders import long_term_spectrum, registry
from tests.evaluation.formant_speech import voice
from tests.portal.factories import RATE_HZ, make_submission, make_team, make_team_system
from tests.portal.objective_runs import add_audio

SPECTRUM = "long-term-spectrum"


def store_samples(samples):
    """The key of a stored FLAC file."""
    file = io.BytesIO()
    soundfile.write(file, np.asarray(samples, np.int16), RATE_HZ, format="FLAC", subtype="PCM_16")
    return store_bytes(file.getvalue(), ".flac")


def give_voices(corpus):
    """Every speaker of a corpus of tones gets a voice that the spectrum tells from others."""
    for place, speaker in enumerate(corpus.speakers.order_by("name")):
        for sentence, utterance in enumerate(speaker.utterances.order_by("name")):
            utterance.audio = store_samples(voice(place, sentence))
            utterance.save()
    return corpus


def make_unprotected_submission(edition, state="evaluated"):
    """A submission whose anonymised speech is the original one, so that every attack finds the same."""
    give_voices(edition.corpus)
    return add_audio(make_submission(make_team_system(make_team(edition)), state=state))


def replace_files(submission, key, **where):
    """Give these files other audio."""
    submission.files.filter(**where).update(audio=key)


def run_chain(run):
    """Every job of a run in its order, as a worker would."""
    ended = [execute(job.pk) for job in list_jobs(run)]
    run.refresh_from_db()
    return [job for job in ended if job]


def attack(submission, engine=SPECTRUM, **fields):
    """A finished attack."""
    run = start_attack(submission=submission, engine=engine, **fields)
    run_chain(run)
    return run


def expected_metrics(corpus, data_set, enrolled, tested):
    """The numbers of a test by the engine alone; `enrolled` and `tested` give the stored key of an utterance."""
    trials = corpus.data_sets.get(name=data_set).utterances.select_related("speaker").order_by("name")
    enrolment = corpus.data_sets.get(name=f"{corpus.name}_enrolls").utterances.select_related("speaker")
    models: dict[str, list] = {}
    for utterance in enrolment.filter(speaker__in=[one.speaker for one in trials]).order_by("name"):
        models.setdefault(utterance.speaker.name, []).append(spectrum_of(enrolled(utterance)))
    tests = {one.name: spectrum_of(tested(one)) for one in trials}
    pairs = [(model, one.name) for one in trials for model in sorted(models)]
    scored = long_term_spectrum.score_trials(models, tests, pairs)
    own = {one.name: one.speaker.name for one in trials}
    # Kaldi prints six significant digits.
    scores = np.array([float(f"{np.float32(score):.6g}") for _, _, score in scored])
    is_target = np.array([model == own[name] for model, name, _ in scored])
    return detection_metrics(scores[is_target], scores[~is_target])


def spectrum_of(key):
    """The vector of a stored recording."""
    samples, rate_hz = load_audio(key)
    return registry.load(SPECTRUM).embed([samples], rate_hz)[0].astype(np.float64)
