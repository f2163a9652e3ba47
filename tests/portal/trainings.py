"""Submissions to train attackers on, for tests: speech of the demo corpus, and rows as a training leaves them."""

import csv
import io
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import soundfile

from evaluation.app.attacks.stored_attackers import REPORT
from evaluation.app.models import EvaluationRun
from evaluation.attackers.training.recipe import PRESETS, with_variant
from portal.challenges.models import Corpus
from portal.core.storage import store_bytes
from portal.submissions.models import System
from tests.portal.factories import make_job

DEMO = Path(__file__).resolve().parents[2] / "demo" / "corpus"
# Learns nothing worth knowing, in a second.
TINY = PRESETS["small"].changed(
    width=8, aggregated=16, embedding=16, attention=8, epochs=2, batch=4, segment_s=1.0, crop_s=0.5, shortest_s=0.5
)
needs_torch = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("safetensors") is None,
    reason="torch and safetensors are missing; install them to train attackers.",
)


def tiny(variant="none", **changes):
    return with_variant(TINY.changed(**changes), variant)


def make_trained_on(*, speakers=3, utterances=2, name="b2-voices", targets=(), with_files=True):
    """A baseline whose corpus has a training set; its files are the recordings of the demo corpus themselves.

    `targets`: ids that the utterances have in turn, as an uploaded archive tells them.
    """
    corpus = Corpus.objects.create(name="voices", layout="manifest", source="demo", is_synthetic=True, is_shared=True)
    data_set = corpus.data_sets.create(name="voices_train", role="training")
    system = System.objects.create(name=name, title="B2 on voices", corpus=corpus, is_baseline=True)
    submission = system.submissions.create(version=1)
    with (DEMO / "utterances.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["utterance,target"]
    for number, speaker in enumerate(dict.fromkeys(row["speaker"] for row in rows)):
        if number == speakers:
            break
        of_speaker = [row for row in rows if row["speaker"] == speaker][:utterances]
        person = corpus.speakers.create(name=speaker, gender=of_speaker[0]["gender"].lower())
        for position, row in enumerate(of_speaker):
            utterance = _utterance(corpus, person, row)
            data_set.utterances.add(utterance)
            if with_files:
                submission.files.create(
                    data_set=data_set,
                    utterance=utterance,
                    audio=utterance.audio,
                    samples=utterance.samples,
                    rate_hz=utterance.rate_hz,
                )
            if targets:
                lines.append(f"{utterance.name},{targets[(number + position) % len(targets)]}")
    if targets:
        content = "\n".join([*lines, ""]).encode()
        key = store_bytes(content, ".document")
        submission.documents.create(path="targets.csv", kind="other", key=key, bytes=len(content))
    return submission


def _utterance(corpus, speaker, row):
    data = (DEMO / row["path"]).read_bytes()
    info = soundfile.info(io.BytesIO(data))
    return corpus.utterances.create(
        speaker=speaker,
        name=row["utterance_id"],
        duration_s=info.duration,
        audio=store_bytes(data, ".flac"),
        samples=info.frames,
        rate_hz=info.samplerate,
    )


def training_set(submission):
    return submission.system.corpus.data_sets.get(role="training")


def make_training(submission, *, recipe=None, variant="none", seeds=(1, 2), epochs=None, ended=(), state="running"):
    """A training as its job leaves it: each seed with so many epochs, those of `ended` with their report."""
    recipe = recipe or with_variant(PRESETS["small"], variant)
    job = make_job(state, kind="train-attacker", title="Train an attacker", **submission.system.place_of_work)
    run = EvaluationRun.objects.create(
        submission=submission,
        kind=EvaluationRun.Kind.TRAINING,
        recipe=recipe.name,
        recipe_version="1",
        code_version="1.2.3",
        job=job,
        parameters={
            "recipe": json.loads(recipe.to_json()),
            "variant": variant,
            "seeds": list(seeds),
            "data_sets": ["voices_train"],
            "device": "cpu",
        },
    )
    for seed, count in (epochs or {}).items():
        for epoch in range(1, count + 1):
            run.epochs.create(seed=seed, epoch=epoch, seconds=2.0, values=epoch_values(epoch, seed, recipe))
    for seed, final in dict(ended).items():
        last = run.epochs.filter(seed=seed).latest("epoch")
        last.values |= {REPORT: final}
        last.save()
    return run


def epoch_values(epoch, seed, recipe):
    with_target = recipe.target_head != "none"
    return {
        "loss": 8.0 - 0.4 * epoch,
        "source_loss": 8.0 - 0.4 * epoch,
        "source_error": 0.99 - 0.02 * epoch - 0.01 * seed,
        "source_chance": 0.995,
        "learning_rate": 0.001 / epoch,
        "target_weight": 0.0,
        "steps": 100,
        "target_loss": 3.0 - 0.1 * epoch if with_target else None,
        "target_error": 0.9 - 0.03 * epoch if with_target else None,
        "target_chance": 0.9 if with_target else None,
        "target_chance_known_gender": 0.8 if with_target else None,
    }


def final_values(source_error, target_error=None, probe=None):
    """What a seed reached, as the attacker's summary is stored."""
    probed = (
        None
        if probe is None
        else {"error": probe, "chance": 0.9, "n_train": 90, "n_test": 10, "classes": 10, "split": "segment"}
    )
    return {
        "source_error": source_error,
        "target_error": target_error,
        "source_chance": 0.995,
        "target_chance": None if target_error is None else 0.9,
        "target_chance_known_gender": None if target_error is None else 0.8,
        "training_segments": 6400,
        "held_out_segments": 231,
        "n_sources": 231,
        "n_targets": 0 if target_error is None else 10,
        "seconds": 20.0,
        "target_probe": probed,
        "target_probe_other_sources": probed,
        "source_probe": None,
    }
