"""Recognisers that are trained again: their jobs, numbers, pages and the leaderboard's columns."""

import numpy as np
import pytest
from django.utils import timezone

from evaluation.app.models import EvaluationRun
from evaluation.app.recognizer_training import handlers
from evaluation.app.recognizer_training.selectors import list_retrained
from evaluation.app.recognizer_training.services import find_problem, start_retraining
from evaluation.app.runs.selectors import list_jobs
from evaluation.formats.results import Speech
from evaluation.recognizer_training import frames
from portal.core.models import Heartbeat
from portal.jobs.models import Job, JobState
from portal.jobs.runner import execute
from portal.jobs.services import NotPossible
from portal.jobs.workers import KIND
from speech.recognizers import phones
from speech.recognizers.phone_recipe import INPUTS, PhoneRecipe
from tests.portal.attack_submissions import run_chain
from tests.portal.factories import make_organizer, make_submission, make_team, make_team_system, make_user
from tests.portal.objective_runs import add_audio, tones_edition

pytestmark = pytest.mark.django_db(transaction=True)
pytest.importorskip("torch", reason="training needs torch, which is not installed here")
RECIPE = PhoneRecipe(width=16, blocks=1, steps=30, batch_s=30, learning_rate=0.01, held_out=0.1)
BRIEF = RECIPE.changed(steps=1)  # where nobody asks what was learned
WORDS = ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX")


@pytest.fixture
def team():
    return {"organizer": make_organizer(), "owner": make_user(), "stranger": make_user()}


@pytest.fixture
def submission(team):
    """An evaluated submission of an edition whose corpus has thirty utterances to learn from."""
    edition = tones_edition(speakers=4, organizers=[team["organizer"]])
    submission = add_audio(
        make_submission(make_team_system(make_team(edition, owner=team["owner"])), state="evaluated")
    )
    corpus, draw = edition.corpus, np.random.default_rng(3)
    training = corpus.data_sets.create(name="tones_train", role="training")
    speaker, file = corpus.speakers.first(), submission.files.first()
    for number in range(30):
        one = corpus.utterances.create(
            speaker=speaker,
            name=f"train-{number:02}",
            transcript=" ".join(draw.choice(WORDS, 6)),
            audio=file.audio,
            samples=16000,
            rate_hz=16000,
            duration_s=1.0,
        )
        training.utterances.add(one)
        submission.files.create(data_set=training, utterance=one, audio=file.audio, samples=16000, rate_hz=16000)
    return submission


@pytest.fixture(autouse=True)
def letters(monkeypatch):
    """A phone is a letter, and a recording has the frames of its transcript's letters; nothing is missing here."""
    monkeypatch.setattr(frames, "missing", lambda: "")
    monkeypatch.setattr("evaluation.app.recognizer_training.services.missing", lambda: "")
    monkeypatch.setattr(phones, "spell_phones", lambda text: " ".join(text.replace(" ", "").lower()))
    vectors = np.random.default_rng(0).standard_normal((128, INPUTS))
    texts = {}
    before = frames.read_spoken_texts

    def read(utterances, transcripts, *args, **kwargs):
        texts.update(transcripts)
        return before(utterances, transcripts, *args, **kwargs)

    def read_frames(utterance, *_):
        spoken = texts[utterance.identifier].replace(" ", "").lower()
        is_anonymised = utterance.read.args[0].startswith(str(Speech.ANONYMISED))
        places = [ord(letter) % 128 for letter in spoken]
        found = vectors[places] * (-1 if is_anonymised else 1)  # a form of speech of its own
        return np.repeat(found, 4, axis=0).astype(np.float16)

    monkeypatch.setattr(frames, "read_spoken_texts", read)
    monkeypatch.setattr(frames, "_read_frames", read_frames)


def train(submission, recipe):
    run = start_retraining(submission=submission, recipe=recipe)
    run_chain(run)
    return run


def test_recogniser_of_originals_is_taken_from_an_earlier_run(submission):
    first = train(submission, BRIEF)
    second = train(submission, BRIEF)
    original = list_jobs(second)[0]
    assert original.result == list_jobs(first)[0].result
    assert [one.run.pk for one in list_retrained(submission)] == [second.pk]
    submission.system.corpus.utterances.filter(name="train-00").update(transcript="SIX SIX")
    third = execute(list_jobs(start_retraining(submission=submission, recipe=BRIEF))[0].pk)
    assert third.result["key"] != original.result["key"]


def test_each_reason_why_none_can_be_trained_is_a_sentence(submission, monkeypatch):
    corpus = submission.system.corpus
    training = corpus.data_sets.get(name="tones_train")
    assert find_problem(submission) == ""
    submission.files.filter(data_set=training, utterance__name__gte="train-05").delete()
    assert "has 5 anonymised utterances of tones_train with transcripts; a recogniser learns from 20" in find_problem(
        submission
    )
    training.utterances.update(transcript="")
    assert "has no utterance with original audio and transcript" in find_problem(submission)
    training.role = "other"
    training.save()
    assert find_problem(submission).startswith("The corpus has no training set.")
    submission.state = "withdrawn"
    assert "is withdrawn" in find_problem(submission)
    monkeypatch.setattr("evaluation.app.recognizer_training.services.missing", lambda: "Whisper is missing.")
    assert find_problem(submission) == "Whisper is missing."
    with pytest.raises(NotPossible, match=r"Whisper is missing\."):
        start_retraining(submission=submission)


def test_a_worker_that_has_what_this_machine_lacks_trains_and_recognises(submission, monkeypatch):
    monkeypatch.setattr("evaluation.app.recognizer_training.services.missing", lambda: "Whisper is missing.")
    capacity = {"queues": ["cpu"], "cores": 4, "engines": ["phones"]}
    Heartbeat.objects.create(kind=KIND, name="large", details=capacity, at=timezone.now())
    run = start_retraining(submission=submission, recipe=RECIPE)
    assert [job.engine for job in list_jobs(run)] == ["phones"] * 3
    assert handlers.find_phone_training() == ["phones"]
    monkeypatch.setattr(frames, "missing", lambda: "Whisper is missing.")
    assert handlers.find_phone_training() == []


# Pages ---------------------------------------------------------------------------------------------


def address(submission, end=""):
    return f"/systems/{submission.system.name}/recognition/{end}"


def test_organizer_starts_it_from_the_page_once(client, submission, team):
    client.force_login(team["organizer"])
    answer = client.post(address(submission, "retrain"))
    assert answer.status_code == 302
    assert answer["Location"].endswith("#retrained")
    [run] = EvaluationRun.objects.filter(kind="retrained")
    assert [job.kind for job in list_jobs(run)] == ["phone-training", "phone-training", "retrained-recognition"]
    again = client.post(address(submission, "retrain"), follow=True).content.decode()
    assert "is under way already" in again
    assert "Retrained phone recogniser" in client.get(address(submission, "retraining-progress")).content.decode()
    action = f"/systems/{submission.system.name}/engine-runs/{run.pk}/cancel"
    assert client.post(action)["Location"].endswith("/recognition/")
    assert not Job.objects.filter(parameters__run=run.pk, state=JobState.WAITING).exists()
