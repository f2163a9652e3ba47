"""Runs of methods with a network that was trained in the portal: started, made, shown, refused, and what stays."""

import json

import pytest
from django.conf import settings
from django.core.files.storage import default_storage

from anonymization.app import networks
from anonymization.app.models import AnonymizationRun
from anonymization.app.networks import list_readers, make_method
from anonymization.app.selectors import find_method
from anonymization.app.services import start_anonymization
from anonymization.methods.content_decoder import method as content_decoder
from anonymization.methods.content_decoder import network_files
from anonymization.methods.contract import MethodError
from anonymization.methods.registry import get_method
from evaluation.app.attacker_training.services import _anonymize_like
from portal.core.models import AuditEvent
from portal.core.storage import content_key, store_bytes
from portal.deletion import services as deletion
from portal.deletion.erasure import erase_speech
from portal.jobs.models import JobState
from portal.jobs.runner import execute
from portal.jobs.services import NotPossible, request_cancel, run_again
from portal.submissions.models import SubmittedFile, System
from portal.submissions.services import create_baseline
from tests.anonymization.methods.test_retrained import train
from tests.evaluation.engines import require_model_file
from tests.pages import read_page
from tests.portal.factories import make_corpus, make_organizer
from tests.portal.network_trainings import CARD, LOSSES, make_material

pytestmark = pytest.mark.django_db
pytest.importorskip("safetensors.numpy", reason="networks are files of safetensors")
SHIPPED = network_files.SHIPPED.decoder.sha256
SHIPPED_FILES = set(network_files.SHA256)
FORM = "/systems/new/tones/"


@pytest.fixture(autouse=True)
def nothing_missing(monkeypatch):
    monkeypatch.setattr(content_decoder.PooledVoices, "missing", lambda _: "")


@pytest.fixture
def learnt(tmp_path):
    """The seed of a training that has ended, its files as `tests.anonymization.methods` makes them."""

    def make(corpus=None, recipe="content-decoder", names=("ann", "ben", "cat"), decoder=None, own=None):
        decoder = own.card["sha256"]["weights.safetensors"] if own else decoder
        folder = train(tmp_path / recipe, recipe, decoder=decoder, names=names)
        card = CARD | {"held_out": {}} | json.loads((folder / "card.json").read_text())
        files = {one.name: store_bytes(one.read_bytes(), one.suffix) for one in folder.iterdir()}
        corpus = corpus or make_material("speech").corpus
        training = corpus.network_trainings.create(
            data_sets=[f"{corpus.name}_train"], recipe=recipe, decoder=own, code_version="test"
        )
        return training.seeds.create(seed=1, card=card, files=files, losses=LOSSES)

    return make


@pytest.fixture
def copying(monkeypatch):
    """The network of a method is verified, and its output is the input, turned."""
    seen = []

    def anonymize(method, item, *_):
        files = (method.networks.decoder, method.networks.regressor)
        seen.extend(path for path in (file.verify() for file in files) if path not in SHIPPED_FILES)
        return -item.samples

    monkeypatch.setattr(content_decoder.ContentMethod, "_anonymize", anonymize)
    return seen


def start(network, corpus=None, name="tones_trials_f", method="asr-bn", **settings):
    corpus = corpus or make_corpus("tones", speakers=4)
    submission = create_baseline(corpus=corpus, name="b", title="B")
    data_sets = corpus.data_sets.filter(name=name)
    [run] = start_anonymization(
        submission=submission, data_sets=data_sets, method=method, seed=1, network=network, **settings
    )
    return AnonymizationRun.objects.get(pk=run.pk)


# Started and made ----------------------------------------------------------------------------------


def test_run_tells_training_and_hashes(learnt):
    network = learnt()
    run = start(network)
    hashes = {"decoder": network.card["sha256"]["weights.safetensors"]}
    hashes |= {"voices": network.card["sha256"]["voices.safetensors"]}
    assert (run.network, run.retrained) == (network, hashes)
    assert run.recipe_version.startswith(f"{get_method('asr-bn').version}+")
    assert find_method(run).version == run.recipe_version
    assert run.method_title == f"{get_method('asr-bn').title}, with training {network.training_id}, seed 1"
    [entry] = AuditEvent.objects.filter(action="anonymization.started")
    assert (entry.data["retrained"], entry.data["network"]) == (hashes, str(network))
    assert find_method(start_plain()).version == get_method("asr-bn").version


def start_plain():
    submission = create_baseline(corpus=make_corpus("plain", speakers=4), name="plain", title="B")
    data_sets = submission.system.corpus.data_sets.filter(name="plain_trials_f")
    [run] = start_anonymization(submission=submission, data_sets=data_sets, method="asr-bn", seed=1)
    assert (run.network, run.retrained) == (None, {})
    return run


def test_job_makes_files_by_the_network_and_leaves_none_of_it(learnt, copying):
    run = start(learnt(), level="utterance")
    assert run.voices == {}
    ended = execute(run.job.pk)
    assert (ended.state, ended.failure) == (JobState.SUCCEEDED, "")
    run.refresh_from_db()
    files = SubmittedFile.objects.filter(submission=run.submission)
    assert files.count() == run.data_set.utterances.count() == 4
    assert len(run.voices) == 4  # of all speakers, or all utterances
    assert {name for voice in run.voices.values() for name in voice["mixture"]} <= {"ann", "ben", "cat"}
    assert {path.parents[2].name for path in copying} == {networks.FOLDER}
    assert not any(path.exists() for path in copying)
    assert list((settings.DATA_DIR / networks.FOLDER).iterdir()) == []


def test_second_network_takes_the_decoder_along_that_it_was_trained_for(learnt, copying):
    pytest.importorskip("torch", reason="torch is not installed here")
    decoder = learnt()
    network = learnt(recipe="f0-regressor", own=decoder, corpus=make_material("more").corpus)
    run = start(network, method="t40")
    of_decoder, of_network = decoder.card["sha256"], network.card["sha256"]
    assert run.networks == [network, decoder]
    assert run.retrained == {
        "decoder": of_decoder["weights.safetensors"],
        "voices": of_decoder["voices.safetensors"],
        "regressor": of_network["weights.safetensors"],
    }
    [entry] = AuditEvent.objects.filter(action="anonymization.started")
    told = {name: entry.data[name] for name in ("network", "decoder", "retrained")}
    assert told == {"network": str(network), "decoder": str(decoder), "retrained": run.retrained}
    ended = execute(run.job.pk)
    assert (ended.state, ended.failure) == (JobState.SUCCEEDED, "")
    run.refresh_from_db()
    assert {name for voice in run.voices.values() for name in voice["mixture"]} <= {"ann", "ben", "cat"}
    assert {path.parent.name for path in copying} == {network.file_name, decoder.file_name}
    assert list((settings.DATA_DIR / networks.FOLDER).iterdir()) == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_speech_is_made_by_the_network(learnt, monkeypatch):
    monkeypatch.undo()
    for name in ("whisper-base", "hifigan-universal"):
        require_model_file(name)
    run = start(learnt(names=[f"s{number}" for number in range(60)]))
    ended = execute(run.job.pk)
    assert (ended.state, ended.failure) == (JobState.SUCCEEDED, "")


def test_training_set_of_the_same_system_gets_the_same_network(learnt):
    corpus = make_material().corpus
    run = start(learnt(), corpus)
    [more] = _anonymize_like(run, corpus.data_sets.get(name="tones_train"), None)
    assert (more.network, more.retrained, more.recipe_version) == (run.network, run.retrained, run.recipe_version)
    run.network = None
    with pytest.raises(MethodError, match="no longer in this portal"):
        _anonymize_like(run, corpus.data_sets.get(name="tones_train"), None)


# Refused -------------------------------------------------------------------------------------------


def test_networks_that_do_not_fit_are_refused_with_a_sentence(learnt):
    decoder, other = learnt(), learnt(recipe="f0-regressor", decoder="f" * 64, corpus=make_material("more").corpus)
    with pytest.raises(MethodError, match="t40 also needs the f0-regressor of"):
        make_method("t40", decoder)
    with pytest.raises(MethodError, match="asr-bn reads no f0-regressor"):
        start(other)
    assert not AnonymizationRun.objects.exists()
    fitting = learnt(recipe="f0-regressor", decoder=SHIPPED, corpus=make_material("third").corpus)
    assert make_method("t40", fitting).retrained == {"regressor": fitting.card["sha256"]["weights.safetensors"]}


def test_weights_that_are_lost_end_the_job_with_a_sentence(learnt, copying):
    network = learnt()
    run = start(network)
    network.files |= {"weights.safetensors": content_key("0" * 64, ".x")}
    network.save()
    ended = execute(run.job.pk)
    assert (ended.state, ended.failure_actor) == (JobState.FAILED, "operator")
    assert "is not in the portal’s storage" in ended.failure
    assert not copying
    assert list((settings.DATA_DIR / networks.FOLDER).iterdir()) == []


# What stays ----------------------------------------------------------------------------------------


def test_training_and_its_corpus_stay_while_a_system_was_made_with_them(learnt):
    network = learnt()
    run = start(network)
    training = network.training
    for thing, word in ((training, "training"), (training.corpus, "corpus")):
        assert deletion.find_problems(thing) == [
            f"Needed by the submission “b version 1”. Delete it first, or let it do without this {word}."
        ]
    delete_system(run)
    assert deletion.find_problems(training) == deletion.find_problems(training.corpus) == []


def delete_system(run):
    run.job.state = JobState.SUCCEEDED
    run.job.save()
    deletion.delete(thing=System.objects.get(name="b"), by=None)


def mix_voice(run):
    """Of two speakers whom the networks heard."""
    mixture = {"speech_train-1": 0.5, "speech_train-2": 0.5}
    run.voices = {"tones-s0": {"key": "k", "parameters": {}, "mixture": mixture}}
    run.save()


def test_network_that_was_erased_with_a_speaker_is_told(learnt, client):
    network = learnt(names=("speech_train-0", "speech_train-1", "speech_train-2"))
    run = start(network)
    mix_voice(run)
    speaker = network.training.corpus.speakers.get(name="speech_train-1")
    with pytest.raises(NotPossible, match="works with a network that learnt from it"):
        erase_speech(speaker)
    request_cancel(run.job, by=None)
    erase_speech(speaker)
    run.refresh_from_db()
    assert (run.network, set(run.retrained)) == (None, {"decoder", "voices"})
    assert run.voices["tones-s0"]["mixture"] == {"speech_train-2": 0.5}
    run_again(run.job, by=None)
    assert not default_storage.exists(network.files["voices.safetensors"])
    assert find_method(run) is None
    ended = execute(run.job.pk)
    assert (ended.state, ended.failure_actor) == (JobState.FAILED, "organizer")
    assert "no longer in this portal" in ended.failure
    client.force_login(make_organizer())
    for address in ("/systems/b/", "/systems/b/runs/tones_trials_f/"):
        assert run.retrained["decoder"] in read_page(client.get(address))


# Pages ---------------------------------------------------------------------------------------------


@pytest.fixture
def organizer(client):
    client.force_login(make_organizer())
    return client


def asked(corpus, **changes):
    sets = [data_set.pk for data_set in corpus.data_sets.exclude(role="training")]
    return {"method": "asr-bn", "seed": 7, "data_sets": sets, "name": "mine"} | changes


def test_decoder_of_hidden_speech_is_named_without_a_link_and_runs_for_nobody_else(learnt, organizer):
    decoder = learnt(make_material("hidden", is_shared=False).corpus)
    network = learnt(make_material().corpus, recipe="f0-regressor", own=decoder)
    page = read_page(organizer.get(network.training.get_absolute_url()))
    assert f"<dt>Decoder</dt><dd>{decoder}</dd>" in page
    assert decoder.training.get_absolute_url() not in page
    assert "Run a method" not in page
    assert organizer.get(f"{FORM}?network={network.pk}").status_code == 404


def test_form_warns_of_speakers_whom_a_network_or_its_decoder_heard(learnt, organizer):
    corpus, other = make_material().corpus, make_material("speech").corpus
    network = learnt(corpus, recipe="f0-regressor", own=learnt(other))
    address = f"{FORM}?network={network.pk}"
    assert "heard speakers of the evaluation" not in read_page(organizer.get(address))
    corpus.data_sets.get(name="tones_train").utterances.add(corpus.utterances.get(name="tones-s0-000"))
    for speaker in corpus.speakers.filter(name__startswith="tones-s"):
        one = other.utterances.filter(speaker__name="speech_train-0").first()
        one.pk, one.name = None, f"{speaker}-elsewhere"
        one.speaker = other.speakers.create(name=speaker.name, gender=speaker.gender)
        one.save()
        other.data_sets.get(name="speech_train").utterances.add(one)
    response = organizer.get(address)
    own, of_decoder = response.context["form"].warnings()
    assert own.startswith(f"Training {network.training_id} learnt from one speaker who is enrolled or tried here. A m")
    number = network.training.decoder.training_id
    assert of_decoder.startswith(
        f"Training {number} learnt from 2 speakers who are enrolled or tried here, to judge by names. A method"
    )
    page = read_page(response)
    assert page.count("<strong>The network heard speakers of the evaluation</strong>") == 2
    assert organizer.get(FORM).context["form"].warnings() == []


def test_networks_that_no_method_reads_or_one_may_not_see_are_not_found(learnt, organizer, client):
    corpus = make_material().corpus
    hidden = learnt(make_material("hidden", is_shared=False).corpus)
    unread = learnt(corpus, recipe="f0-regressor", decoder=SHIPPED)
    unread.training.recipe = "phone-recognizer"
    unread.training.save()
    assert list_readers(unread) == ({}, {})
    assert "Run a method" not in read_page(client.get(unread.training.get_absolute_url()))
    unfinished = corpus.network_trainings.create(recipe="content-decoder").seeds.create(seed=1)
    for pk in (hidden.pk, unread.pk, unfinished.pk, 0, "x", "", "9" * 40):
        assert client.get(f"{FORM}?network={pk}").status_code == 404
        assert client.post(f"{FORM}?network={pk}", asked(corpus)).status_code == 404
    assert not System.objects.exists()
