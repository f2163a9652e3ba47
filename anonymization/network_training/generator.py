"""The trainings of networks that make samples.

The joint generator, and decoder and HiFi-GAN as one network, make them of content, F0 and speaker vector and are judged
by discriminators; the source-filter vocoder makes them of the spectra of recordings and is compared by spectra alone.
What is to come out is the recording at the one loudness, at the rate of the network.

Sources: J. Kong, J. Kim, J. Bae, "HiFi-GAN", NeurIPS 2020, equations 1 to 6; here spectra alone are compared at first.
X. Wang, S. Takaki, J. Yamagishi, "Neural source-filter waveform models for statistical parametric speech synthesis",
TASLP 2020, equation 1 and section III-D (distance of log power spectra of three resolutions).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from anonymization.methods.content_decoder.method import load_decoder
from anonymization.network_training.discriminators import (
    Discriminators,
    Judgement,
    loss_of_discriminators,
    losses_of_generator,
)
from anonymization.network_training.features import Features
from anonymization.network_training.loop import Batch, Speech, Training
from anonymization.network_training.recipe import (
    AdversarialRecipe,
    GeneratorRecipe,
    HifiGanRecipe,
    NetworkRecipe,
    VocoderRecipe,
)
from evaluation.attackers.training.corpus import TrainingUtterance, read_checked
from speech.conversion.content_decoder import ContentDecoder, log_f0, wave_at_loudness
from speech.conversion.joint_generator import JointGenerator, JointHifiGan
from speech.conversion.source_filter import SourceFilter, make_noise
from speech.model_files.devices import Device
from speech.model_files.store import find
from speech.vocoders.harmonic_source import Source
from speech.vocoders.hifigan import HOP_SAMPLES, WEIGHTS, load_generator, log_mels

# Step, window and points of the spectra that are compared: 5, 2.5 and 40 ms of 20, 5 and 120 ms.
_RESOLUTIONS = ((110, 441, 512), (55, 110, 128), (882, 2646, 4096))
_FLOOR = 1e-5
R = TypeVar("R", bound=NetworkRecipe)
A = TypeVar("A", bound=AdversarialRecipe)
N = TypeVar("N", bound=nn.Module)


class WaveTraining(Training[R, N]):
    """A network that makes samples, at a step.

    decoder: whose content is read, where one is. waves: those of the utterances, as `read_waves` gives them.
    """

    def __init__(
        self,
        features: Sequence[Features],
        recipe: R,
        seed: int,
        checkpoint: Path,
        key: str,
        *,
        decoder: ContentDecoder,
        waves: Sequence[NDArray[np.float32]],
        device: Device = "cpu",
    ) -> None:
        self.decoder, self._waves = decoder.to(device).eval(), waves
        super().__init__(features, recipe, seed, checkpoint, key, device=device)

    @classmethod
    def begin(cls, speech: Speech, recipe: R, seed: int, checkpoint: Path, key: str, device: Device) -> Self:
        waves, decoder = read_waves(speech.utterances), load_decoder(speech.decoder)
        recipe = recipe.fit(decoder.shape)
        return cls(speech.features, recipe, seed, checkpoint, key, decoder=decoder, waves=waves, device=device)

    def read_content(self, batch: Batch) -> Tensor:
        """Content at the frames of the spectra, shape (batch, crop, bottleneck)."""
        with torch.no_grad():
            return batch.at_spectra(self.decoder.encode(batch.layers))

    def make_source(self, of: Source, batch: Batch, draw: np.random.Generator) -> tuple[Tensor, torch.Generator]:
        """The harmonics of the pieces, from phases that are drawn, and the chance that made their noise."""
        noise = torch.Generator(self.device).manual_seed(int(draw.integers(2**31)))
        start = torch.from_numpy(draw.random(self.recipe.batch)).to(self.device)
        hz = torch.where(batch.intonation[:, :, 1] > 0, log_f0(batch.intonation).exp(), 0.0)
        return of(hz, noise, start), noise

    def keep_inside(self, made: Tensor, batch: Batch) -> Tensor:
        """Samples, 0 where the utterance has ended."""
        return torch.where(batch.inside.repeat_interleave(HOP_SAMPLES, dim=1), made.float(), 0.0)

    def cut_waves(self, batch: Batch) -> Tensor:
        """What is to come out, shape (batch, 256 × crop)."""
        wide = self.recipe.crop * HOP_SAMPLES
        pieces = np.zeros((len(batch.origin), wide), np.float32)
        for row, (number, first) in zip(pieces, batch.origin.tolist(), strict=True):
            piece = self._waves[number][first * HOP_SAMPLES :][:wide]
            row[: piece.size] = piece
        return torch.from_numpy(pieces).to(self.device)


class VocoderTraining(WaveTraining[VocoderRecipe, SourceFilter]):
    """The source-filter vocoder at a step."""

    loss_names: ClassVar = ("mel spectrum", "power spectra")

    def make_network(self) -> SourceFilter:
        return SourceFilter(self.recipe.shape)

    def update(self, batch: Batch, draw: np.random.Generator) -> tuple[float, ...]:
        """Mean absolute difference of mel spectra, and distance of log power spectra."""
        recorded = self.cut_waves(batch)
        source, chance = self.make_source(self.network.source, batch, draw)
        noise = make_noise(tuple(source.shape), chance)
        with self.in_16_bits():
            made = self.network(batch.spectra, batch.intonation, batch.speakers, source, noise)
        made = self.keep_inside(made, batch)
        difference, distance = functional.l1_loss(log_mels(made), log_mels(recorded)), compare_spectra(made, recorded)
        self.descend(self.recipe.mel * difference + distance)
        return float(difference.detach()), float(distance.detach())


def compare_spectra(made: Tensor, recorded: Tensor) -> Tensor:
    """Half the mean squared difference of natural logarithms of power spectra, the mean of three resolutions.

    Args:
        made, recorded: shape (batch, samples), more than 2,048 samples each.
    """
    differences = []
    for step, wide, points in _RESOLUTIONS:
        window = torch.hann_window(wide, device=made.device)
        both = torch.stft(torch.cat([made, recorded]), points, step, wide, window, return_complex=True)
        one, other = (both.real.square() + both.imag.square() + _FLOOR).log().chunk(2)
        differences.append(0.5 * (one - other).square().mean())
    return torch.stack(differences).mean()


class AdversarialTraining(WaveTraining[A, N]):
    """Generator and discriminators at a step."""

    loss_names: ClassVar = ("spectrum", "adversarial", "features", "discriminators")
    betas: ClassVar = (0.8, 0.99)

    def make_network(self) -> N:
        """And the discriminators."""
        recipe = self.recipe
        self._discriminators = Discriminators(recipe.narrower).to(self.device)
        self._their_optimizer = torch.optim.AdamW(
            self._discriminators.parameters(), recipe.learning_rate, betas=self.betas
        )
        return self.make_generator()

    @abstractmethod
    def make_generator(self) -> N:
        """The network before the first step."""

    @abstractmethod
    def make_samples(self, content: Tensor, batch: Batch, draw: np.random.Generator) -> Tensor:
        """What the network makes of a batch, shape (batch, 256 × crop)."""

    def parts(self) -> dict[str, Any]:
        """Of the discriminators, too."""
        others = {"discriminators": self._discriminators, "their_optimizer": self._their_optimizer}
        return {**super().parts(), **others}

    def update(self, batch: Batch, draw: np.random.Generator) -> tuple[float, ...]:
        """Difference of mel spectra, and from some step on the losses of HiFi-GAN."""
        recipe, recorded, content = self.recipe, self.cut_waves(batch), self.read_content(batch)
        made = self.keep_inside(self.make_samples(content, batch, draw), batch)
        difference = functional.l1_loss(log_mels(made), log_mels(recorded))
        if self.step < recipe.adversarial_from:
            self.descend(recipe.spectrum * difference)
            return float(difference.detach()), 0.0, 0.0, 0.0
        with self.in_16_bits():
            theirs = loss_of_discriminators(*self._judge(recorded, made.detach()))
        self._their_optimizer.zero_grad()
        theirs.backward()  # type: ignore[no-untyped-call, unused-ignore]
        self._their_optimizer.step()
        self._discriminators.requires_grad_(False)
        with self.in_16_bits():
            adversarial, features = losses_of_generator(*self._judge(recorded, made))
        self.descend(recipe.spectrum * difference + adversarial + recipe.features * features)
        self._discriminators.requires_grad_(True)
        return tuple(float(each.detach()) for each in (difference, adversarial, features, theirs))

    def _judge(self, recorded: Tensor, made: Tensor) -> tuple[list[Judgement], list[Judgement]]:
        """What the discriminators make of recorded and of synthetic speech, both at once."""
        count = len(recorded)
        both = self._discriminators(torch.cat([recorded, made])[:, None])
        real = [(judgement[:count], [layer[:count] for layer in layers]) for judgement, layers in both]
        return real, [(judgement[count:], [layer[count:] for layer in layers]) for judgement, layers in both]


class GeneratorTraining(AdversarialTraining[GeneratorRecipe, JointGenerator]):
    """A generator with a source, from nothing."""

    def make_generator(self) -> JointGenerator:
        return JointGenerator(self.recipe.shape)

    def make_samples(self, content: Tensor, batch: Batch, draw: np.random.Generator) -> Tensor:
        source, _ = self.make_source(self.network.source, batch, draw)
        with self.in_16_bits():
            samples: Tensor = self.network(content, batch.intonation, batch.speakers, source)
        return samples


class HifiGanTraining(AdversarialTraining[HifiGanRecipe, JointHifiGan]):
    """A decoder and HiFi-GAN, which go on learning as one network."""

    def make_generator(self) -> JointHifiGan:
        return JointHifiGan(deepcopy(self.decoder), load_generator(find(WEIGHTS)), self.recipe.shape)

    def make_samples(self, content: Tensor, batch: Batch, draw: np.random.Generator) -> Tensor:  # noqa: ARG002 - of others
        with self.in_16_bits():
            samples: Tensor = self.network(content, batch.intonation, batch.speakers)
        return samples

    def learnt(self) -> Mapping[str, Tensor]:
        return self.network.learnt()


def read_waves(utterances: Sequence[TrainingUtterance]) -> list[NDArray[np.float32]]:
    """The samples of utterances at the one loudness, at 22,050 Hz."""
    return [wave_at_loudness(read_checked(utterance)) for utterance in utterances]
