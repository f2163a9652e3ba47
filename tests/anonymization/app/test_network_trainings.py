"""Trainings of networks as jobs: who is refused what, real trainings, kill and continuation, and deletion."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from django.core.files.storage import default_storage

from anonymization.app.models import NetworkSeed, NetworkTraining
from anonymization.app.network_training import handlers, services
from anonymization.app.network_training.selectors import list_jobs, list_material
from anonymization.app.network_training.services import start_training
from anonymization.app.networks import make_method
from portal.challenges.models import Role
from portal.core.storage import content_key
from portal.deletion import files
from portal.deletion import services as deletion
from portal.jobs.models import JobEvent
from portal.jobs.runner import JobContext, execute
from portal.jobs.services import NotPossible, release_job
from tests.evaluation.engines import require_model_file
from tests.portal.factories import make_corpus
from tests.portal.network_trainings import add_training_set, make_material, make_network_training

pytestmark = pytest.mark.django_db(transaction=True)
pytest.importorskip("torch", reason="training needs torch, which is not installed here")
FEW = {"steps": "6", "batch": "4", "crop": "20", "warm_up": "1", "checkpoint_every": "2"}


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """What a training needs is here, and no folder of others."""
    monkeypatch.setattr(services, "find_missing", lambda **_: "")
    monkeypatch.setattr(handlers, "find_missing", lambda **_: "")
    yield
    shutil.rmtree(Path(settings.DATA_DIR) / handlers.FOLDER, ignore_errors=True)


@pytest.fixture
def read(monkeypatch):
    """What is read of speech is drawn by the name of the utterance; how often each was read."""
    from anonymization.network_training import features

    counts = {}

    class Reader:
        def __init__(self, folder, *_, **__):
            self.folder = folder

        def read(self, utterance):
            utterance.read()
            kept = self.folder / utterance.identifier
            counts[utterance.identifier] = counts.get(utterance.identifier, 0) + (not kept.exists())
            kept.touch()
            draw = np.random.default_rng(list(utterance.identifier.encode()))
            spectra = draw.standard_normal((52, 80)).astype(np.float16)
            tune = np.stack([draw.standard_normal(52), np.ones(52)], axis=1).astype(np.float32)
            vector = draw.standard_normal(256).astype(np.float32)
            layers = draw.standard_normal((1, 30, 1536)).astype(np.float16)
            return features.Features(layers, spectra, tune, np.full(52, 120, np.float32), vector)

    monkeypatch.setattr(features, "FeatureReader", Reader)
    return counts


def start(data_set, seeds=(1,), recipe="f0-regressor", **given):
    given = {"changes": FEW, "licence": "CC0"} | given
    return start_training(corpus=data_set.corpus, data_sets=[data_set], recipe=recipe, seeds=seeds, **given)


def work(training):
    for job in list_jobs(training):
        execute(job.pk)
    return NetworkTraining.objects.get(pk=training.pk)


def weights(seed):
    with default_storage.open(seed.files["weights.safetensors"]) as file:
        return file.read()


def test_network_is_trained_for_a_decoder_that_was_trained_here(read):
    [decoder] = work(start(make_material("speech"), recipe="content-decoder")).seeds.all()
    data_set = make_material()
    training = work(start(data_set, decoder=decoder))
    [network] = training.seeds.all()
    [plain] = work(start(data_set)).seeds.all()
    assert network.card["decoder_sha256"] == decoder.card["sha256"]["weights.safetensors"]
    assert weights(network) != weights(plain)
    assert list(make_method("t40", network).retrained) == ["decoder", "voices", "regressor"]
    assert list((Path(settings.DATA_DIR) / handlers.FOLDER).iterdir()) == []
    for wrong, said in ((network, "Expected a decoder that has ended its training"), (decoder, "reads no decoder")):
        with pytest.raises(NotPossible, match=said):
            start(data_set, decoder=wrong, recipe="recognizer-map", changes={})
    decoder.files |= {"weights.safetensors": content_key("0" * 64, ".x")}
    decoder.save()
    [job] = list_jobs(work(start(data_set, decoder=decoder)))
    assert (job.state, job.failure_actor) == ("failed", "operator")
    assert f"weights.safetensors of {decoder} is not in the portal’s storage" in job.failure
    assert not list((Path(settings.DATA_DIR) / handlers.FOLDER).glob("*/decoder"))


def test_killed_training_goes_on_to_the_same_weights(read, monkeypatch):
    data_set = make_material()
    [whole] = work(start(data_set)).seeds.all()
    training = start(data_set)
    [job] = list_jobs(training)
    before = JobContext.progress

    def kill(context, stage, done, total):
        before(context, stage, done, total)
        if (stage, done) == ("Training", 5):
            raise KeyboardInterrupt

    monkeypatch.setattr(JobContext, "progress", kill)
    with pytest.raises(KeyboardInterrupt):
        execute(job.pk)
    monkeypatch.setattr(JobContext, "progress", before)
    assert len(NetworkSeed.objects.get(training=training).losses) == 3  # head and two states, for the page
    job.refresh_from_db()
    release_job(job, "Its worker died.")
    read.clear()
    [again] = work(training).seeds.all()
    assert JobEvent.objects.filter(job=job, text="Continues after step 4 of 6.").exists()
    assert weights(again) == weights(whole)
    assert again.losses == whole.losses
    assert set(read.values()) == {0}


def test_what_cannot_be_learned_from_is_said_at_once():
    corpus = make_corpus()
    trials = corpus.data_sets.filter(role=Role.TRIAL).first()
    silent = add_training_set(corpus, name="silent", audio=False)
    sets = add_training_set(corpus)
    for given, said in (
        ({"data_set": trials}, "is for evaluation only"),
        ({"data_set": silent}, "silent has no audio"),
        ({"data_set": add_training_set(make_corpus("other"), name="other_train"), "corpus": corpus}, "it has these:"),
        ({"seeds": ()}, "Give 1 to 5 different seeds"),
        ({"seeds": (1, 1)}, "found 1, 1"),
        ({"seeds": range(6)}, "found 0, 1, 2, 3, 4, 5"),
        ({"recipe": "huge"}, "Expected a recipe"),
        ({"recipe": "phone-recognizer"}, "no utterance of tones_train has a transcript"),
        ({"recipe": "content-decoder", "changes": {"phones": "0.3"}}, "no utterance of tones_train has a transcript"),
        ({"changes": {"steps": "many", "depth": "3"}}, "found “many”. Expected a value of the recipe"),
    ):
        asked = {"data_set": sets, "corpus": corpus, "seeds": (1,), "recipe": "f0-regressor"} | given
        with pytest.raises(NotPossible, match=said):
            start_training(data_sets=[asked.pop("data_set")], **asked)
    assert not NetworkTraining.objects.exists()


def test_speakers_of_evaluation_are_warned_of():
    data_set = make_material()
    assert list_material(data_set.corpus)[0].warning == ""
    data_set.utterances.add(data_set.corpus.data_sets.get(name="tones_enrolls").utterances.first())
    assert list_material(data_set.corpus)[0].warning.startswith("One of its speakers is also enrolled or tried.")


@pytest.mark.parametrize(
    ("recipe", "actor", "said"),
    [
        ("joint-nsf-hifigan", "operator", "needs a graphics card"),
        ("f0-regressor", "organizer", "expected at least 1 s of speech, found 0.6 s"),
    ],
)
def test_training_that_cannot_be_ends_with_a_sentence(recipe, actor, said):
    if recipe == "f0-regressor":
        require_model_file("whisper-base")
        require_model_file("ge2e")
    training = start(make_material(), recipe=recipe, changes={})
    [job] = list_jobs(work(training))
    assert (job.state, job.failure_actor) == ("failed", actor)
    assert said in job.failure
    assert job.failure_remedy


def test_files_go_with_a_training(monkeypatch):
    training = make_network_training(make_material().corpus)
    other = make_network_training(make_material("other").corpus)
    keys = list(training.seeds.get().files.values())
    monkeypatch.setattr(files, "SECONDS_KEPT", -1.0)
    assert deletion.preview(training)["files"] >= len(keys)
    deletion.delete(thing=training, by=None)
    assert [default_storage.exists(key) for key in keys] == [False, True, False]  # equal losses are one file
    assert list(NetworkTraining.objects.all()) == [other]
    assert all(default_storage.exists(key) for key in other.seeds.get().files.values())
