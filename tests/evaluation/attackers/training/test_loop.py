"""A whole training: its files, its values, going on after a kill, and what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from common.errors import InputError
from common.progress import ignore_progress
from evaluation.attackers.training import features
from evaluation.attackers.training.corpus import TrainingUtterance, cut
from evaluation.attackers.training.recipe import PRESETS, with_variant
from evaluation.attackers.training.train import _own_eer, plan_training, train
from evaluation.attackers.training.trained_attacker import (
    CHECKPOINT,
    DESCRIPTION,
    MODEL,
    VALUES,
    EpochRecord,
    attacking_encoder,
    load_trained,
)
from speech.model_files.checkpoints import read_state
from tests.evaluation.attackers.training.toys import RESUMED, TINY, utterances

ROOT = Path(__file__).resolve().parents[4]


class StoppedError(Exception):
    pass


def test_attacking_encoder_is_centred_where_the_recipe_says_so(tmp_path):
    attacker = train(utterances(), TINY.changed(epochs=1, centre=True), 1, tmp_path)
    sounds = [one.read()[0] for one in utterances()[:2]]
    expected = attacker.embed(sounds, 16_000) - attacker.training_mean
    assert np.array_equal(attacking_encoder(attacker).embed(sounds, 16_000), expected)


@pytest.mark.slow  # two processes with PyTorch
def test_killed_training_ends_as_one_that_was_not(tmp_path):
    command = [sys.executable, "-m", "tests.evaluation.attackers.training.interrupted", str(tmp_path / "killed")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "standing still\n"
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert (tmp_path / "killed" / CHECKPOINT).is_file()
    told: list[EpochRecord] = []
    resumed = train(utterances(), RESUMED, 7, tmp_path / "killed", on_epoch=told.append)
    whole = train(utterances(), RESUMED, 7, tmp_path / "whole")
    assert [one.epoch for one in told] == [1, 2, 3]
    assert [one.values for one in resumed.epochs] == [one.values for one in whole.epochs]
    states = [read_state(folder / MODEL) for folder in (resumed.folder, whole.folder)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])
    assert np.array_equal(resumed.training_mean, whole.training_mean)


def test_finished_training_is_not_done_again(tmp_path):
    first = train(utterances(), TINY.changed(epochs=1), 1, tmp_path)
    told: list[EpochRecord] = []

    def stop(stage: str, done: int, total: int) -> None:
        assert stage == "reading"

    again = train(utterances(), TINY.changed(epochs=1), 1, tmp_path, stop, on_epoch=told.append)
    assert again.description.model_sha256 == first.description.model_sha256
    assert tuple(told) == first.epochs
    with pytest.raises(InputError, match="found one of another recipe, seed or speech"):
        train(utterances(), TINY.changed(epochs=2), 1, tmp_path)


def test_checkpoint_of_another_training_or_a_damaged_one_is_refused(tmp_path):
    def stop(stage: str, done: int, total: int) -> None:
        if stage == "training" and done == total // 3 + 1:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(utterances(), TINY, 2, tmp_path, stop)
    with pytest.raises(InputError, match="found one of another recipe, seed or speech"):
        train(utterances(), TINY, 3, tmp_path)
    kept = (tmp_path / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(kept[: len(kept) // 2])
    with pytest.raises(InputError, match=r"found a damaged file\. Delete it to start again"):
        train(utterances(), TINY, 2, tmp_path)


def test_every_rule_of_cropping_and_validation_trains(tmp_path):
    recipe = TINY.changed(
        epochs=1,
        crop="utterance",
        crop_s=0.5,
        shortest_s=0.5,
        validation="tenth of all",
        drop_last=False,
        quietest_amplitude=5e-4,
    )
    attacker = train(utterances(sources=2, each=10), recipe, 1, tmp_path)
    assert attacker.summary.held_out_segments > 0
    assert 0 <= attacker.summary.source_error <= 1
    assert attacker.description.targets == ()


def test_best_epoch_is_kept(tmp_path):
    recipe = with_variant(TINY.changed(epochs=4, checkpoint="best"), "stabilised")
    attacker = train(utterances(), recipe, 1, tmp_path)
    errors = [one.values["source_error"] for one in attacker.epochs]
    assert attacker.description.kept_epoch == errors.index(min(errors)) + 1
    assert attacker.summary.source_error == min(errors)


def test_without_held_out_segments_there_is_no_validation_error(tmp_path):
    attacker = train(utterances(), TINY.changed(epochs=1, validation="tenth of each speaker"), 1, tmp_path)
    assert (attacker.summary.source_error, attacker.summary.held_out_segments) == (None, 0)
    probe = attacker.summary.source_probe
    assert (probe.n_test, probe.split) == (4, "training segment")  # a fifth of them


def test_features_that_do_not_fit_are_computed_for_each_batch(monkeypatch):
    recipe = TINY.changed(crop="utterance", crop_s=0.5, validation="tenth of all")
    data = utterances(sources=2, each=2)
    segments = cut(data, recipe, 1)
    device = torch.device("cpu")
    kept = features.make_store(data, segments, device, ignore_progress)
    read = features.make_store(data, segments, device, ignore_progress, limit_bytes=0)
    assert isinstance(read, features.ReadFeatures)
    pieces, starts = np.array([0, 3, 2]), np.array([0, 40, 80])
    for frames in (20, 51):
        (ours, ours_valid), (theirs, theirs_valid) = (one.batch(pieces, starts, frames) for one in (kept, read))
        # Windows of kept features know the whole utterance at their edges; and they are float16.
        assert torch.allclose(ours[:, 2:-2], theirs[:, 2:-2], atol=1.5)
        assert (ours_valid is None) == (theirs_valid is None)
        if ours_valid is not None:
            assert ours_valid.tolist() == theirs_valid.tolist()


def test_corpora_without_anything_to_learn_are_refused(tmp_path):
    data = utterances()
    one_speaker = [replace(one, source="s0") for one in data]
    with pytest.raises(InputError, match="at least 2 source speakers, found 1 in 12 utterances"):
        train(one_speaker, TINY, 1, tmp_path)
    with pytest.raises(InputError, match="at least 2 utterances to train on, found 1"):
        train(data[:1], TINY, 1, tmp_path)
    with pytest.raises(InputError, match="at least 2 utterances to train on, found 0"):
        train([], TINY, 1, tmp_path)
    with pytest.raises(InputError, match=r"speech of 0\.4 s or more to learn from, found 0 in 0 segments"):
        train(utterances(seconds=0.3), TINY, 1, tmp_path)
    untargeted = [replace(one, target=None) for one in data]
    with pytest.raises(InputError, match="found 12 of 12 without, such as s0-0"):
        train(untargeted, with_variant(TINY, "literal"), 1, tmp_path)
    with pytest.raises(InputError, match="found only t1"):
        train([replace(one, target="t1") for one in data], with_variant(TINY, "literal"), 1, tmp_path)
    slow = TrainingUtterance("slow", "s9", lambda: (np.zeros(16_000, dtype=np.int16), 8_000))
    with pytest.raises(InputError, match="slow: expected one channel at 16000 Hz, found"):
        train([*data, slow], TINY, 1, tmp_path)
    with pytest.raises(InputError, match="s0-0 more than once"):
        train([*data, data[0]], TINY, 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_damaged_attackers_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"found no recipe\.json"):
        load_trained(tmp_path)
    train(utterances(), TINY.changed(epochs=1), 1, tmp_path)
    weights, description = (tmp_path / MODEL).read_bytes(), (tmp_path / DESCRIPTION).read_text()
    (tmp_path / MODEL).write_bytes(weights[:-8])
    with pytest.raises(InputError, match="found other bytes"):
        load_trained(tmp_path)
    (tmp_path / MODEL).write_bytes(weights)
    (tmp_path / DESCRIPTION).write_text(description[:-9])
    with pytest.raises(InputError, match="found a damaged file"):
        load_trained(tmp_path)
    (tmp_path / DESCRIPTION).write_text(json.dumps(json.loads(description) | {"format": 99}))
    with pytest.raises(InputError, match="expected format 1, found 99"):
        load_trained(tmp_path)
    (tmp_path / DESCRIPTION).write_text(description)
    (tmp_path / VALUES).write_text("epoch\none\n")
    with pytest.raises(InputError, match="expected the values of the epochs"):
        load_trained(tmp_path)
    (tmp_path / MODEL).unlink()
    with pytest.raises(InputError, match=r"expected model\.safetensors beside recipe\.json"):
        load_trained(tmp_path)


def test_plan_counts_what_a_training_does():
    plan = plan_training([1.1] * 12, TINY, 3)
    segments = cut(utterances(), TINY, 1)
    assert plan.segments == segments.source.size
    assert (plan.steps_per_epoch, plan.steps) == (2, 6)
    spane = plan_training([10.0] * 1000, PRESETS["spane"], 40)
    assert round(spane.parameters / 1e6, 1) == 20.8
    assert spane.bytes_needed > 16 * spane.parameters


def test_own_eer_of_vectors_that_are_all_alike_is_open():
    segments = SimpleNamespace(
        source=np.array([0, 0, 1, 1]), training_rows=np.array([0, 2]), validation_rows=np.array([1, 3])
    )
    alike = np.ones((2, 4), np.float32)
    found = _own_eer(alike, alike, segments)
    assert found == {"own_eer_open": "equal scores leave the EER anywhere from 0.0 to 100.0 %"}
    apart = np.array([[1, 0], [0, 1]], np.float32)
    assert _own_eer(apart, apart, segments) == {"own_eer": 0.0}
