"""A training of the x-vector network: its encoder, its classifier, and going on after a stop."""

from __future__ import annotations

import pytest
import torch

from evaluation.attackers.training.heads import build_encoder, build_source_head, source_loss
from evaluation.attackers.training.recipe import PRESETS, with_variant
from evaluation.attackers.training.train import plan_training, train
from evaluation.attackers.training.trained_attacker import CHECKPOINT, MODEL
from speech.encoders.networks import XvectorClassifier, XvectorTdnn
from speech.model_files.checkpoints import read_state
from tests.evaluation.attackers.training.toys import TINY, TINY_XVECTOR, utterances


class StoppedError(Exception):
    pass


def same_weights(one, other) -> bool:
    states = [read_state(attacker.folder / MODEL) for attacker in (one, other)]
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0].keys() | states[1].keys())


def test_stopped_training_ends_as_one_that_was_not(tmp_path):
    variant = "stabilised"
    recipe = with_variant(TINY_XVECTOR, variant)

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "training" and done > total // 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(utterances(), recipe, 3, tmp_path / "stopped", stop)
    assert (tmp_path / "stopped" / CHECKPOINT).is_file()
    resumed = train(utterances(), recipe, 3, tmp_path / "stopped")
    whole = train(utterances(), recipe, 3, tmp_path / "whole")
    assert same_weights(resumed, whole)
    assert [one.values for one in resumed.epochs] == [one.values for one in whole.epochs]


def test_source_classifier_is_a_plain_softmax():
    torch.manual_seed(0)
    head = build_source_head(TINY_XVECTOR, 8, 5)
    assert isinstance(head, XvectorClassifier)
    vectors, labels = torch.randn(6, 8), torch.arange(6) % 5
    logits = head.layers[:-1](vectors)
    expected = torch.nn.functional.cross_entropy(logits, labels)
    assert torch.allclose(source_loss(head, vectors, labels, TINY_XVECTOR), expected)


def test_recipe_decides_the_network_and_its_cost():
    assert isinstance(build_encoder(TINY_XVECTOR), XvectorTdnn)
    assert not isinstance(build_encoder(TINY), XvectorTdnn)
    plan = plan_training([10.0] * 1000, PRESETS["x-vector"], 40)
    assert round(plan.parameters / 1e6, 1) == 4.2
    # Features of 24 bands, two bytes each, are part of it.
    longer = plan_training([20.0] * 1000, PRESETS["x-vector"], 40)
    assert longer.bytes_needed - plan.bytes_needed == 10_000 * 100 * 24 * 2
