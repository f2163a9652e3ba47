"""Corpora with speech to train networks on, and trainings of them that have ended."""

from portal.challenges.models import Role
from portal.core.storage import store_bytes
from tests.portal.factories import make_corpus, make_job

CARD = {
    "key": "k" * 64,
    "recipe": {"name": "f0-regressor", "title": "Regressor", "steps": 4},
    "seed": 1,
    "data": {"utterances": 12, "speakers": 3, "seconds": 61.5, "licence": "CC BY 4.0, the readers"},
    "training_seconds": 2.5,
    "losses": {"f0": 0.5, "voicing": 0.25},
    "held_out": {
        "utterances": 4,
        "rmse_semitones": 3.5,
        "null_rmse_semitones": 4.25,
        "correlation": None,
        "voicing_error": 0.125,
    },
    "device": "cpu",
    "threads": 2,
    "torch": "2.13.0",
    "speaker_encoder": "ge2e",
    "sha256": {"weights.safetensors": "a" * 64},
}
LOSSES = [["step", "f0", "voicing"], [2, 0.75, 0.5], [4, 0.5, 0.25]]


def add_training_set(corpus, *, name="tones_train", speakers=3, utterances=4, audio=True):
    """A training set of speakers who are in no other."""
    data_set = corpus.data_sets.create(name=name, role=Role.TRAINING)
    heard = corpus.utterances.first()
    for number in range(speakers):
        speaker = corpus.speakers.create(name=f"{name}-{number}", gender="fm"[number % 2])
        for sentence in range(utterances):
            one = corpus.utterances.create(
                speaker=speaker,
                name=f"{speaker.name}-{sentence}",
                duration_s=1.5,
                audio=heard.audio if audio else "",
                samples=heard.samples,
                rate_hz=heard.rate_hz,
            )
            data_set.utterances.add(one)
    return data_set


def make_material(name="tones", **fields):
    """A corpus with a training set."""
    return add_training_set(make_corpus(name, **fields), name=f"{name}_train")


def make_network_training(corpus=None, *, seeds=(1,), state="succeeded", **fields):
    """A training whose seeds are all in one state, with card and files where they have succeeded."""
    corpus = corpus or make_material().corpus
    defaults = {"data_sets": [f"{corpus.name}_train"], "recipe": "f0-regressor", "code_version": "test"}
    training = corpus.network_trainings.create(**defaults | fields)
    for seed in seeds:
        parameters = {"training": training.pk, "seed": seed}
        job = make_job(kind="train-network", state=state, corpus=corpus.name, parameters=parameters)
        ended = state == "succeeded"
        files = {
            "weights.safetensors": store_bytes(f"weights {training.pk} {seed}".encode(), ".safetensors"),
            "losses.csv": store_bytes(b"step,f0,voicing\n2,0.75,0.5\n4,0.5,0.25\n", ".csv"),
            "card.json": store_bytes(f'{{"training": {training.pk}, "seed": {seed}}}\n'.encode(), ".json"),
        }
        training.seeds.create(
            seed=seed,
            job=job,
            losses=LOSSES if ended else [],
            card=CARD | {"seed": seed} if ended else {},
            files=files if ended else {},
        )
    return training
