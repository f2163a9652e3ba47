"""A worker that is killed while it makes speaker vectors loses those under way; another makes each of the rest once."""

from collections import Counter

import pytest

from evaluation.app.attacks.selectors import list_attacks
from evaluation.app.attacks.services import start_attack
from evaluation.app.models import SpeakerVector
from evaluation.app.runs.selectors import list_jobs
from evaluation.formats.results import AttackModel
from portal.jobs.models import JobState
from speech.encoders import registry
from tests.portal.attack_submissions import SPECTRUM, make_unprotected_submission
from tests.portal.objective_runs import tones_edition
from tests.portal.processes.held import Held
from tests.portal.processes.programs import wait_for_end, wait_until

TRIALS = "tones_trials_f"


# What it works on is noted by content.
HELD = """
from hashlib import sha256

from speech.encoders.long_term_spectrum import LongTermSpectrum

whole = LongTermSpectrum.embed

def embed(self, utterances, rate_hz):
    wait(len(utterances))
    vectors = whole(self, utterances, rate_hz)
    for samples in utterances:
        note(sha256(samples.tobytes()).hexdigest())
    return vectors

LongTermSpectrum.embed = embed
"""


@pytest.mark.slow  # two workers with PyTorch
def test_vectors_are_made_once_although_their_worker_is_killed(alone, tmp_path):
    held = Held(tmp_path / "held", HELD)
    submission = make_unprotected_submission(tones_edition(speakers=8, utterances=2))
    held.let(11)  # three alone and a batch of eight, of the sixteen enrolment utterances
    first = alone.start_worker(**held.environment)
    alone.start_scheduler(**held.environment)
    run = start_attack(submission=submission, engine=SPECTRUM, data_sets=[TRIALS])
    vectors = SpeakerVector.objects.filter(engine=registry.find_engine(SPECTRUM).key)
    wait_until(lambda: vectors.count() == 11, "eleven speaker vectors")
    first.kill()
    before = dict(vectors.values_list("audio", "pk"))
    held.let(10**6)
    alone.start_worker(**held.environment)
    ended = wait_for_end(run.job)
    assert ended.state == JobState.SUCCEEDED, ended.failure
    assert [(job.kind, job.attempt) for job in list_jobs(run)] == [("vectors", 2), ("vectors", 1), ("attack", 1)]
    after = dict(vectors.values_list("audio", "pk"))
    assert before.items() <= after.items()
    assert len(after) == 16 + 8  # every enrolment utterance, and the trials of the women
    worked_on = Counter(held.done())
    assert len(worked_on) == len(after)
    assert set(worked_on.values()) == {1}
    [found] = list_attacks(submission)
    assert found.values.number("eer", "kaldi", data_set=TRIALS, attack_model=AttackModel.IGNORANT) is not None
