"""The trainings of decoders: spectra from content, F0 and speaker vector.

Content is a bottleneck, with and without codes, that is learnt with the spectra; or soft units: what a network gives
that was taught to name the unit of each frame, from copies in other voices, too.

Source of soft units: B. van Niekerk, M.-A. Carbonneau, J. Zaïdi, M. Baas, H. Seuté, H. Kamper, "A comparison of
discrete and soft speech units for improved voice conversion", ICASSP 2022, section 2; here of layers of Whisper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from anonymization.network_training.features import Features
from anonymization.network_training.loop import Batch, Training
from anonymization.network_training.recipe import DecoderRecipe, NetworkRecipe, SoftUnitsRecipe
from common.arrays import unit_vectors
from evaluation.attackers.training.corpus import TrainingUtterance
from speech.conversion.content_decoder import ContentDecoder, SoftUnitsDecoder, places_of_content
from speech.model_files.devices import Device

VOICES = "voices.safetensors"


_FRAMES_OF_UNITS, _ROUNDS, _AT_ONCE = 40_000, 30, 8192
R = TypeVar("R", bound=NetworkRecipe)


N = TypeVar("N", bound=ContentDecoder)


class SpectraTraining(Training[R, N]):
    """A decoder at a step."""

    def make_files(self, utterances: Sequence[TrainingUtterance]) -> Mapping[str, bytes]:
        """The voices of the speakers."""
        return {VOICES: _voices(utterances, self.features)}

    def normalize_layers(self, network: N) -> N:
        """The network with mean and spread of each number of the layers over the original speech."""
        count = sum(each.layers.shape[1] for each in self.features)
        mean = sum(each.layers[0].astype(np.float64).sum(axis=0) for each in self.features) / count
        squares = sum(np.square(each.layers[0].astype(np.float64) - mean).sum(axis=0) for each in self.features) / count
        network.get_buffer("mean").copy_(torch.from_numpy(mean))
        network.get_buffer("spread").copy_(torch.from_numpy(np.sqrt(squares) + 1e-3))
        return network


class SoftUnitsTraining(SpectraTraining[SoftUnitsRecipe, SoftUnitsDecoder]):
    """Decoder and soft units at a step.

    What a frame is called follows from the original alone: its nearest of some means of frames (k-means). Content is
    learnt from that alone, so that the voice helps no spectrum by way of it.
    """

    loss_names = ("spectrum", "units")

    def make_network(self) -> SoftUnitsDecoder:
        """And the units."""
        network = self.normalize_layers(SoftUnitsDecoder(self.recipe.shape))
        draw = np.random.default_rng(self.seed)
        whole = np.concatenate([each.layers[0][:: self._every()] for each in self.features])
        with torch.inference_mode():
            frames = network.normalize(torch.from_numpy(whole.astype(np.float32)))
            means = frames[torch.from_numpy(draw.choice(len(frames), self.recipe.shape.units, replace=False))]
            for _ in range(_ROUNDS):
                chosen = _nearest(frames, means)
                counts = torch.bincount(chosen, minlength=len(means))
                sums = torch.zeros_like(means).index_add_(0, chosen, frames)
                means = torch.where(counts[:, None] > 0, sums / counts.clamp_min(1)[:, None], means)
            layers = (torch.from_numpy(each.layers[0].astype(np.float32)) for each in self.features)
            self._units = [_nearest(network.normalize(each), means).numpy() for each in layers]
        return network

    def update(self, batch: Batch, draw: np.random.Generator) -> tuple[float, ...]:  # noqa: ARG002 - of others
        """Mean absolute difference of spectra, and cross-entropy of the units."""
        with self.in_16_bits():
            content = self.network.encode(batch.layers)
            scores = self.network.name_units(content)
            spectra = self.network.decode(batch.at_spectra(content.detach()), batch.intonation, batch.speakers)
        named = functional.cross_entropy(scores.float().flatten(0, 1), self._cut_units(batch).flatten())
        difference = functional.l1_loss(spectra.float(), batch.spectra)
        self.descend(difference + named)
        return float(difference.detach()), float(named.detach())

    def _every(self) -> int:
        """Of so many frames one takes part in finding the units."""
        return max(1, sum(each.layers.shape[1] for each in self.features) // _FRAMES_OF_UNITS)

    def _cut_units(self, batch: Batch) -> Tensor:
        """The units of the frames of content of a batch, shape (batch, content frames)."""
        wide = batch.layers.shape[1]
        pieces = np.zeros((len(batch.origin), wide), np.int64)
        for row, (number, first) in zip(pieces, batch.origin.tolist(), strict=True):
            units = self._units[number]
            begin = int(np.clip(places_of_content(first + 1)[first], 0, len(units) - 1))
            piece = units[begin : begin + wide]
            row[:] = np.pad(piece, (0, wide - len(piece)), mode="edge")
        return torch.from_numpy(pieces).to(self.device)


def _nearest(frames: Tensor, means: Tensor) -> Tensor:
    """The number of the nearest mean of each frame, shape (frames,)."""
    squares = means.square().sum(dim=1)
    return torch.cat([(squares - 2 * part @ means.T).argmin(dim=1) for part in frames.split(_AT_ONCE)])


class DecoderTraining(SpectraTraining[DecoderRecipe, ContentDecoder]):
    """Decoder and codes at a step."""

    loss_names = ("spectrum", "codes")
    state: ClassVar = ("counts", "sums")

    def __init__(
        self,
        features: Sequence[Features],
        recipe: DecoderRecipe,
        seed: int,
        checkpoint: Path,
        key: str,
        *,
        device: Device = "cpu",
    ) -> None:
        shape = recipe.shape
        self.counts = torch.ones(shape.stages, shape.codes, device=device)
        self.sums = torch.zeros(shape.stages, shape.codes, shape.bottleneck, device=device)
        super().__init__(features, recipe, seed, checkpoint, key, device=device)

    def make_network(self) -> ContentDecoder:
        """With mean and spread of the layers."""
        return self.normalize_layers(ContentDecoder(self.recipe.shape))

    def update(self, batch: Batch, draw: np.random.Generator) -> tuple[float, ...]:
        """Mean absolute difference of spectra, and squared distance between bottleneck and codes."""
        recipe = self.recipe
        with_codes = self.step >= recipe.warm_up
        with self.in_16_bits():
            content = self.network.encode(batch.layers)
        content = content.float()
        distance = torch.zeros((), device=self.device)
        if self.step == recipe.warm_up:
            self._find_codes(content.detach(), draw)
        if with_codes:
            sums, numbers = self.network.quantize(content.detach(), recipe.shape.stages)
            self._move_codes(content.detach(), sums, numbers, draw)
            # Each piece is described by a number of stages that is drawn for it, 0 for none at all.
            stages = torch.from_numpy(draw.integers(0, recipe.shape.stages + 1, recipe.batch)).to(self.device)
            chosen = sums[(stages - 1).clamp_min(0), torch.arange(recipe.batch, device=self.device)]
            coded = (stages > 0)[:, None, None]
            distance = (torch.where(coded, content - chosen, torch.zeros((), device=self.device))).square().mean()
            content = torch.where(coded, content + (chosen - content).detach(), content)
        with self.in_16_bits():
            spectra = self.network.decode(batch.at_spectra(content), batch.intonation, batch.speakers)
        difference = functional.l1_loss(spectra.float(), batch.spectra)
        self.descend(difference + recipe.commitment * distance)
        return float(difference.detach()), float(distance.detach())

    def _find_codes(self, content: Tensor, draw: np.random.Generator) -> None:
        """The codes of each stage: frames of what the stages before it leave, drawn."""
        rest = content.reshape(-1, content.shape[2])
        books = self.network.get_buffer("codebooks")
        for number, book in enumerate(books):
            chosen = draw.choice(len(rest), len(book), replace=len(rest) < len(book))
            book.copy_(rest[torch.from_numpy(chosen).to(self.device)])
            self.sums[number] = book
            nearest = (book.square().sum(dim=1) - 2 * rest @ book.T).argmin(dim=1)
            rest = rest - book[nearest]

    def _move_codes(self, content: Tensor, sums: Tensor, numbers: Tensor, draw: np.random.Generator) -> None:
        """Each code goes towards the mean of what it stands for; one that stands for hardly anything is drawn anew."""
        decay, books = self.recipe.decay, self.network.get_buffer("codebooks")
        whole = content.reshape(-1, content.shape[2])
        before = torch.cat([torch.zeros_like(sums[:1]), sums[:-1]])
        for stage, book in enumerate(books):
            rest = whole - before[stage].reshape(whole.shape)
            chosen = numbers[stage].reshape(-1)
            here = torch.bincount(chosen, minlength=len(book)).float()
            total = torch.zeros_like(book).index_add_(0, chosen, rest)
            self.counts[stage].mul_(decay).add_((1 - decay) * here)
            self.sums[stage].mul_(decay).add_((1 - decay) * total)
            rare = self.counts[stage] < 0.05 * len(rest) / len(book)
            if self.step % 50 == 0 and rare.any():
                drawn = torch.from_numpy(draw.choice(len(rest), int(rare.sum()))).to(self.device)
                self.counts[stage][rare] = len(rest) / len(book)
                self.sums[stage][rare] = rest[drawn] * self.counts[stage][rare][:, None]
            book.copy_(self.sums[stage] / self.counts[stage].clamp_min(1e-6)[:, None])


def _voices(utterances: Sequence[TrainingUtterance], features: Sequence[Features]) -> bytes:
    """Vector, mean and spread of the logarithm of F0 of each speaker, with names and genders in the header."""
    from safetensors.numpy import save

    by_speaker: dict[str, list[Features]] = defaultdict(list)
    for utterance, one in zip(utterances, features, strict=True):
        by_speaker[utterance.source].append(one)
    names = sorted(by_speaker)
    vectors = np.stack([np.mean([each.vector for each in by_speaker[name]], axis=0) for name in names])
    logs = [np.log(np.concatenate([each.hz for each in by_speaker[name]]).astype(np.float64)) for name in names]
    contours = [(float(each.mean()), float(each.std())) if each.size else (0.0, 0.0) for each in logs]
    genders = {one.source: one.gender for one in utterances}
    header = {"names": " ".join(names), "genders": " ".join(genders[name] or "-" for name in names)}
    tensors: dict[str, NDArray[Any]] = {
        "vectors": unit_vectors(vectors, "vectors of speakers").astype(np.float16),
        "f0": np.array(contours, np.float32),
    }
    return save(tensors, metadata=header)
