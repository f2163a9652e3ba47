"""The gradient reversal and what it does to the recogniser's gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from common.errors import InputError
from evaluation.attackers.training.epochs import Batch, Trainer
from evaluation.attackers.training.heads import CosineClassifier, Heads, losses, reverse_gradient
from evaluation.attackers.training.recipe import PRESETS, with_variant

SMALL = PRESETS["small"]
SOURCES = torch.arange(12) % 4
TARGETS = torch.arange(12) % 3


class Linear(nn.Module):
    """An encoder without batch normalisation: pieces of a batch give the gradient of the whole."""

    def __init__(self, most_at_once: int = 1000) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 6)
        self.most_at_once, self.dimension = most_at_once, 6

    def forward(self, features: torch.Tensor, frames: torch.Tensor | None = None) -> torch.Tensor:  # noqa: ARG002
        if len(features) > self.most_at_once:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return torch.tanh(self.layer(features.mean(dim=1)))


def parts(variant: str, most_at_once: int = 1000) -> tuple[Linear, Heads, torch.Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        encoder, source, target = Linear(most_at_once), CosineClassifier(6, 4), CosineClassifier(6, 3)
        features = torch.randn(12, 7, 5)
    return encoder, Heads(source, None if variant == "none" else target), features


def encoder_gradient(variant: str, weight: float) -> torch.Tensor:
    encoder, heads, features = parts(variant)
    losses(heads, encoder(features), SOURCES, TARGETS, weight, with_variant(SMALL, variant)).total.backward()
    return encoder.layer.weight.grad


def test_reversal_hands_back_minus_w_times_the_gradient():
    weight = 0.25
    vectors = torch.randn(4, 3, requires_grad=True)
    (reverse_gradient(vectors, weight) ** 3).sum().backward()
    assert torch.allclose(vectors.grad, -weight * 3 * vectors.detach() ** 2)


@pytest.mark.parametrize("variant", ["literal", "stabilised"])
def test_reversed_loss_is_the_negated_loss_of_autograd(variant):
    encoder, heads, features = parts(variant)
    recipe = with_variant(SMALL, variant)
    vectors = encoder(features)
    plain = losses(Heads(heads.source, None), vectors, SOURCES, TARGETS, 0.0, recipe).total
    target = losses(heads, vectors, SOURCES, TARGETS, 0.0, recipe).target
    unreversed = losses(Heads(heads.source, heads.target), vectors.detach(), SOURCES, TARGETS, 0.0, recipe)
    assert torch.equal(target, unreversed.target)
    head_loss = _target_loss_of(heads, vectors, variant)
    (plain - 0.4 * head_loss / 2).backward()
    assert torch.allclose(encoder_gradient(variant, 0.4), encoder.layer.weight.grad, atol=1e-7)


def _target_loss_of(heads: Heads, vectors: torch.Tensor, variant: str) -> torch.Tensor:
    from evaluation.attackers.training.heads import target_loss

    return target_loss(heads.target, vectors, TARGETS, with_variant(SMALL, variant))


def test_weight_zero_leaves_the_encoders_gradient_to_the_last_bit():
    assert torch.equal(encoder_gradient("literal", 0.0), encoder_gradient("none", 0.0))
    assert not torch.equal(encoder_gradient("literal", 0.5), encoder_gradient("none", 0.0))


def test_weight_zero_stops_even_gradients_that_are_not_finite():
    vectors = torch.zeros(2, requires_grad=True)
    (reverse_gradient(vectors, 0.0).sqrt().sum() + vectors.sum()).backward()
    assert vectors.grad.tolist() == [1.0, 1.0]


def test_target_head_learns_at_full_weight_whatever_the_weight():
    gradients = []
    for weight in (0.0, 1.0):
        encoder, heads, features = parts("literal")
        losses(heads, encoder(features), SOURCES, TARGETS, weight, with_variant(SMALL, "literal")).total.backward()
        gradients.append(heads.target.weight.grad)
    assert torch.equal(*gradients)
    assert gradients[0].abs().sum() > 0


def stepped(variant: str, most_at_once: int) -> tuple[Trainer, nn.Module]:
    encoder, heads, features = parts(variant, most_at_once)
    trainer = Trainer(encoder, heads, with_variant(SMALL, variant).changed(batch=12), torch.device("cpu"))
    trainer.set_learning_rate(1e-2)
    for _ in range(3):
        trainer.step(lambda: Batch(features, None, SOURCES, TARGETS), 0.5)
    return trainer, encoder


def test_full_memory_halves_the_batch_and_keeps_the_update():
    whole, encoder = stepped("stabilised", 1000)
    halved, other = stepped("stabilised", 4)
    assert (whole.at_once, halved.at_once) == (12, 3)
    assert torch.allclose(encoder.layer.weight, other.layer.weight, atol=1e-5)


def test_full_memory_with_two_rows_is_said_in_a_sentence():
    with pytest.raises(InputError, match="Memory ran out even with 3 segments at a time"):
        stepped("none", 1)
