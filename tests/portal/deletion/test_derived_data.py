"""Vectors and words of a recording go when nobody holds the recording any more."""

import pytest
from django.core.files.storage import default_storage
from django.db import transaction

from evaluation.app.models import Hypothesis, SpeakerVector
from portal.challenges.models import Utterance
from portal.deletion.derived_data import delete_orphans
from portal.deletion.rows import find_rows
from portal.deletion.services import delete_rows
from tests.portal.attack_runs import make_attack_run, make_recognition_run
from tests.portal.attack_submissions import make_unprotected_submission, store_samples
from tests.portal.factories import make_submission, make_team, make_team_system
from tests.portal.objective_runs import tones_edition

pytestmark = pytest.mark.django_db(transaction=True)

TRIALS = "tones_trials_f"


def make_heard():
    """Anonymised speech that differs from the original, with a vector and words of every recording."""
    submission = make_unprotected_submission(tones_edition(speakers=4))
    for place, file in enumerate(submission.files.order_by("pk")):
        submission.files.filter(pk=file.pk).update(audio=store_samples([place + 1] * 800))
    for holder in (Utterance.objects.all(), submission.files.all()):
        for audio in holder.order_by().values_list("audio", flat=True).distinct():
            SpeakerVector.objects.create(engine="one@1", audio=audio, vector=b"\0\0\0\0")
            Hypothesis.objects.create(engine="two@1", audio=audio, text="something")
    return submission


@pytest.fixture
def submission(once):
    return once(make_heard)


def results_of(*audio):
    return [model.objects.filter(audio__in=audio).count() for model in (SpeakerVector, Hypothesis)]


@transaction.atomic
def delete(*things):
    for thing in things:
        delete_rows(find_rows(type(thing).objects.filter(pk=thing.pk)))


def test_results_of_an_erased_utterance_go_and_those_of_others_stay(submission):
    file = submission.files.filter(data_set__name=TRIALS).select_related("utterance").first()
    every, audio = SpeakerVector.objects.count(), (file.audio, file.utterance.audio)
    delete(*file.utterance.submitted_files.all(), file.utterance)
    assert results_of(*audio) == [0, 0]
    assert SpeakerVector.objects.count() == Hypothesis.objects.count() == every - 2


def test_audio_that_somebody_else_holds_keeps_its_results(submission):
    file = submission.files.filter(data_set__name=TRIALS).first()
    other = make_submission(make_team_system(make_team(submission.system.edition, name="Another team")))
    other.files.create(data_set=file.data_set, utterance=file.utterance, audio=file.audio, samples=800, rate_hz=16000)
    delete(file)
    assert results_of(file.audio) == [1, 1]


def test_what_was_rolled_back_is_kept(submission):
    file = submission.files.filter(data_set__name=TRIALS).first()
    with transaction.atomic():
        delete(file)
        transaction.set_rollback(True)
    delete(submission.files.filter(data_set__name="tones_trials_m").first())
    assert results_of(file.audio) == [1, 1]


def test_results_of_replaced_audio_are_found_later(submission):
    """Another import brings other audio, or a job kept a vector after its utterance was deleted."""
    utterance = Utterance.objects.get(name="tones-s0-002")
    audio = utterance.audio
    Utterance.objects.filter(pk=utterance.pk).update(audio=store_samples([7] * 900))
    assert results_of(audio) == [1, 1]
    assert delete_orphans() == 2
    assert results_of(audio) == [0, 0]
    assert delete_orphans() == 0


def test_files_of_runs_go_with_their_submission(submission):
    run, heard = make_attack_run(submission), make_recognition_run(submission, sets=(TRIALS,))
    folders = [f"derived/attacks/{run.pk}", f"derived/figures/{run.pk}", f"derived/recognition/{heard.pk}"]
    assert all(map(default_storage.exists, folders))
    delete(submission)
    assert not any(map(default_storage.exists, folders))
