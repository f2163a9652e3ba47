"""The networks that make speaker vectors: published sizes, padding without effect, heads and their losses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from common.errors import InputError

torch = pytest.importorskip("torch", reason="the networks need torch, which is not installed here")

from evaluation.attackers.training.heads import CosineClassifier, aam_softmax_loss, margin_logits  # noqa: E402
from speech.encoders import networks  # noqa: E402 (needs torch)


def parameters_of(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def settled(network: torch.nn.Module) -> torch.nn.Module:
    """The network with statistics in its batch normalisations that are not those of the start."""
    torch.manual_seed(1)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_(std=0.3)
            module.running_var.uniform_(0.5, 2.0)
    return network.eval()


def small_ecapa() -> torch.nn.Module:
    return settled(networks.EcapaTdnn(channels=16, embedding=12, mel_bands=10))


@pytest.mark.parametrize(
    ("channels", "aggregated", "embedding", "parameters"),
    [
        (1024, 3072, 192, 20_767_552),  # SpAnE and SpeechBrain: 20.8 M
        (512, 1536, 192, 6_194_048),  # 2024 challenge: 6.2 M
    ],
)
def test_ecapa_has_the_published_sizes(channels: int, aggregated: int, embedding: int, parameters: int):
    with torch.device("meta"):  # shapes alone, no memory
        network = networks.EcapaTdnn(channels, aggregated, embedding)
    assert parameters_of(network) == parameters
    assert network.dimension == embedding


def published_ecapa_names() -> set[str]:
    """The names in SpeechBrain's file, less the counters of batches."""
    affine, norm = ("weight", "bias"), ("weight", "bias", "running_mean", "running_var")
    units = ["blocks.0", "mfa", "asp.tdnn"]
    plain = ["asp.conv.conv", "fc.conv"]
    for block in (1, 2, 3):
        units += [f"blocks.{block}.tdnn1", f"blocks.{block}.tdnn2"]
        units += [f"blocks.{block}.res2net_block.blocks.{part}" for part in range(7)]
        plain += [f"blocks.{block}.se_block.conv{number}.conv" for number in (1, 2)]
    names = {f"{unit}.conv.conv.{kind}" for unit in units for kind in affine}
    names |= {f"{unit}.norm.norm.{kind}" for unit in units for kind in norm}
    return names | {f"{layer}.{kind}" for layer in plain for kind in affine} | {f"asp_bn.norm.{kind}" for kind in norm}


def renamed(names: set[str], table: tuple[tuple[str, str], ...]) -> list[str]:
    return [next(re.sub(old, new, name) for old, new in table if re.search(old, name)) for name in sorted(names)]


def test_published_ecapa_names_become_ours_one_to_one():
    ours = {name for name in small_ecapa().state_dict() if not name.endswith("num_batches_tracked")}
    new = renamed(published_ecapa_names(), networks.ECAPA_SPEECHBRAIN_NAMES)
    assert sorted(new) == sorted(ours)


def test_the_xvector_networks_have_the_published_sizes():
    # Layers of 512 x (24 or 30) x 5, 512 x 512 x 3 twice, 512 x 512, 1500 x 512 and 512 x 3000, with biases and norms.
    network = networks.XvectorTdnn(networks.XvectorShape())
    assert parameters_of(network) == 4_211_604
    assert (
        parameters_of(networks.XvectorTdnn(networks.XvectorShape(bands=30, is_kaldi=True))) == 4_211_604 + 512 * 6 * 5
    )
    assert network.dimension == 512


def small_xvector(*, is_kaldi: bool) -> torch.nn.Module:
    return settled(networks.XvectorTdnn(networks.XvectorShape(10, (16, 16, 16, 16, 24), 12, is_kaldi=is_kaldi)))


NETWORKS = {
    "ecapa": small_ecapa,
    "xvector-kaldi": lambda: small_xvector(is_kaldi=True),
    "xvector-speechbrain": lambda: small_xvector(is_kaldi=False),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_batch_gives_the_vectors_of_its_utterances_alone(name: str):
    network = NETWORKS[name]()
    lengths = (40, 39, 38, 37, 36, 20, 15)  # some shorter than the batch by less than a layer's reach
    generator = torch.Generator().manual_seed(7)
    utterances = [torch.randn(frames, 10, generator=generator) for frames in lengths]
    batch = torch.full((len(lengths), max(lengths), 10), 1e3)  # padding that would be noticed
    for row, utterance in zip(batch, utterances, strict=True):
        row[: len(utterance)] = utterance
    with torch.inference_mode():
        together = network(batch, torch.tensor(lengths))
        alone = torch.cat([network(utterance[None]) for utterance in utterances])
    assert together.shape == (len(lengths), 12)
    apart = (alone - alone.mean(dim=0)).abs().max()
    assert (together - alone).abs().max() < 0.01 * apart


@pytest.mark.parametrize(("name", "shortest"), [("ecapa", 5), ("xvector-kaldi", 15), ("xvector-speechbrain", 5)])
def test_an_utterance_of_too_few_frames_is_refused(name: str, shortest: int):
    network = NETWORKS[name]()
    assert network(torch.randn(2, shortest, 10)).isfinite().all()
    with pytest.raises(InputError, match=f"{shortest} to 30 frames, found {shortest - 1} to 30"):
        network(torch.randn(2, 30, 10), torch.tensor([30, shortest - 1]))


def test_the_classifier_gives_cosines():
    head = CosineClassifier(6, 3)
    vectors = torch.randn(4, 6)
    weights = head.weight.detach().numpy()
    expected = [[np.dot(v, w) / np.linalg.norm(v) / np.linalg.norm(w) for w in weights] for v in vectors.numpy()]
    np.testing.assert_allclose(head(vectors).detach().numpy(), expected, atol=1e-6)


def test_the_margin_is_added_to_the_angle_of_the_true_class():
    angles = np.array([0.0, 0.3, 1.5, 2.9, 3.0])  # the last goes past π with the margin
    cosines = torch.tensor(np.cos(np.stack([angles, np.full(5, 1.0)], axis=1)), dtype=torch.float64)
    logits = margin_logits(cosines, torch.zeros(5, dtype=torch.int64), margin=0.2, scale=30).numpy()
    moved = [*np.cos(angles[:4] + 0.2), np.cos(3.0) - 0.2 * np.sin(0.2)]
    np.testing.assert_allclose(logits[:, 0], 30 * np.array(moved), atol=1e-3)
    np.testing.assert_allclose(logits[:, 1], 30 * np.cos(1.0))


def test_the_loss_stays_finite_at_the_ends_of_the_angle():
    cosines = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], requires_grad=True)
    aam_softmax_loss(cosines, torch.tensor([0, 0])).backward()
    assert cosines.grad is not None
    assert cosines.grad.isfinite().all()
