"""The trainings of networks that make samples.

The joint generator, and decoder and HiFi-GAN as one network, make them of content, F0 and speaker vector and are judged
by discriminators; the source-filter vocoder makes them of the spectra of recordings, with discriminators or without.
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
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from anonymization.methods.content_decoder.network_files import load_decoder
from anonymization.network_training.discriminators import (
    Discriminators,
    Judgement,
    loss_of_discriminators,
    losses_of_generator,
)
from anonymization.network_training.features import Features
from anonymization.network_training.loop import SpeechBatch, Training, TrainingSpeech
from anonymization.network_training.recipe import (
    AdversarialRecipe,
    GeneratorRecipe,
    HifiGanRecipe,
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
A = TypeVar("A", bound=AdversarialRecipe)
N = TypeVar("N", bound=nn.Module)


class WaveTraining(Training[A, N]):
    """A network that makes samples, and discriminators where the recipe has them, at a step.

    waves: those of the utterances, as `read_waves` gives them.
    """

    loss_names: tuple[str, ...] = ("spectrum", "adversarial", "features", "discriminators")
    betas = (0.8, 0.99)

    def __init__(
        self,
        features: Sequence[Features],
        recipe: A,
        seed: int,
        checkpoint: Path,
        key: str,
        *,
        waves: Sequence[NDArray[np.float32]],
        device: Device = "cpu",
    ) -> None:
        self._waves = waves
        super().__init__(features, recipe, seed, checkpoint, key, device=device)

    @classmethod
    def begin(cls, speech: TrainingSpeech, recipe: A, seed: int, checkpoint: Path, key: str, device: Device) -> Self:
        waves = read_waves(speech.utterances)
        return cls(speech.features, recipe, seed, checkpoint, key, waves=waves, device=device)

    @property
    def is_judged(self) -> bool:
        """Return whether there are discriminators."""
        return True

    def make_network(self) -> N:
        """And the discriminators."""
        recipe = self.recipe
        if not self.is_judged:
            return self.make_generator()
        self._discriminators = Discriminators(recipe.narrower).to(self.device)
        self._their_optimizer = torch.optim.AdamW(
            self._discriminators.parameters(), recipe.learning_rate, betas=self.betas
        )
        return self.make_generator()

    @abstractmethod
    def make_generator(self) -> N:
        """Return the network before the first step."""

    @abstractmethod
    def make_samples(self, batch: SpeechBatch, draw: np.random.Generator) -> Tensor:
        """Return what the network makes of a batch, shape (batch, 256 × crop)."""

    def parts(self) -> dict[str, Any]:
        """Of the discriminators, too."""
        if not self.is_judged:
            return super().parts()
        others = {"discriminators": self._discriminators, "their_optimizer": self._their_optimizer}
        return {**super().parts(), **others}

    def update(self, batch: SpeechBatch, draw: np.random.Generator) -> tuple[float, ...]:
        """Difference of mel spectra, and from some step on the losses of HiFi-GAN."""
        recorded = self.cut_waves(batch)
        made = self.keep_inside(self.make_samples(batch, draw), batch)
        difference = functional.l1_loss(log_mels(made), log_mels(recorded))
        found = self.learn(self.recipe.spectrum * difference, made, recorded)
        return float(difference.detach()), *found

    def learn(self, loss: Tensor, made: Tensor, recorded: Tensor) -> tuple[float, float, float]:
        """Return a step of the network by a loss and by what discriminators say, and one of theirs; the losses of
        HiFi-GAN.

        Before they judge, these are 0.
        """
        recipe = self.recipe
        if not self.is_judged or self.step < recipe.adversarial_from:
            self.descend(loss)
            return 0.0, 0.0, 0.0
        with self.in_16_bits():
            theirs = loss_of_discriminators(*self._judge(recorded, made.detach()))
        self._their_optimizer.zero_grad()
        theirs.backward()  # type: ignore[no-untyped-call, unused-ignore]
        self._their_optimizer.step()
        self._discriminators.requires_grad_(False)
        with self.in_16_bits():
            adversarial, features = losses_of_generator(*self._judge(recorded, made))
        self.descend(loss + adversarial + recipe.features * features)
        self._discriminators.requires_grad_(True)
        return float(adversarial.detach()), float(features.detach()), float(theirs.detach())

    def _judge(self, recorded: Tensor, made: Tensor) -> tuple[list[Judgement], list[Judgement]]:
        """Return what the discriminators make of recorded and of synthetic speech, both at once."""
        count = len(recorded)
        both = self._discriminators(torch.cat([recorded, made])[:, None])
        real = [(judgement[:count], [layer[:count] for layer in layers]) for judgement, layers in both]
        return real, [(judgement[count:], [layer[count:] for layer in layers]) for judgement, layers in both]

    def make_source(self, of: Source, batch: SpeechBatch, draw: np.random.Generator) -> tuple[Tensor, torch.Generator]:
        """Return the harmonics of the pieces, from phases that are drawn, and the chance that made their noise."""
        noise = torch.Generator(self.device).manual_seed(int(draw.integers(2**31)))
        start = torch.from_numpy(draw.random(self.recipe.batch)).to(self.device)
        hz = torch.where(batch.intonation[:, :, 1] > 0, log_f0(batch.intonation).exp(), 0.0)
        return of(hz, noise, start), noise

    def keep_inside(self, made: Tensor, batch: SpeechBatch) -> Tensor:
        """Return samples, 0 where the utterance has ended."""
        return torch.where(batch.inside.repeat_interleave(HOP_SAMPLES, dim=1), made.float(), 0.0)

    def cut_waves(self, batch: SpeechBatch) -> Tensor:
        """Return what is to come out, shape (batch, 256 × crop)."""
        wide = self.recipe.crop * HOP_SAMPLES
        pieces = np.zeros((len(batch.origin), wide), np.float32)
        for row, (number, first) in zip(pieces, batch.origin.tolist(), strict=True):
            piece = self._waves[number][first * HOP_SAMPLES :][:wide]
            row[: piece.size] = piece
        return torch.from_numpy(pieces).to(self.device)


class VocoderTraining(WaveTraining[VocoderRecipe, SourceFilter]):
    """The source-filter vocoder at a step, with discriminators or without."""

    def __init__(self, features: Sequence[Features], recipe: VocoderRecipe, *args: Any, **others: Any) -> None:
        self.loss_names = ("mel spectrum", "power spectra")
        if recipe.discriminators:
            self.loss_names += WaveTraining.loss_names[1:]
        else:
            self.betas = Training.betas
        super().__init__(features, recipe, *args, **others)

    @property
    def is_judged(self) -> bool:
        return bool(self.recipe.discriminators)

    def make_generator(self) -> SourceFilter:
        return SourceFilter(self.recipe.shape)

    def make_samples(self, batch: SpeechBatch, draw: np.random.Generator) -> Tensor:
        source, chance = self.make_source(self.network.source, batch, draw)
        noise = make_noise(tuple(source.shape), chance)
        with self.in_16_bits():
            samples: Tensor = self.network(batch.spectra, batch.intonation, batch.speakers, source, noise)
        return samples

    def update(self, batch: SpeechBatch, draw: np.random.Generator) -> tuple[float, ...]:
        """Return mean absolute difference of mel spectra, distance of log power spectra, and the losses of HiFi-GAN."""
        recorded = self.cut_waves(batch)
        made = self.keep_inside(self.make_samples(batch, draw), batch)
        difference, distance = functional.l1_loss(log_mels(made), log_mels(recorded)), compare_spectra(made, recorded)
        judged = self.learn(self.recipe.spectrum * difference + distance, made, recorded)
        return float(difference.detach()), float(distance.detach()), *(judged if self.is_judged else ())


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


class ContentTraining(WaveTraining[A, N]):
    """A network that makes samples of content, at a step. decoder: whose content is read."""

    def __init__(self, *args: Any, decoder: ContentDecoder, device: Device = "cpu", **others: Any) -> None:
        self.decoder = decoder.to(device).eval()
        super().__init__(*args, device=device, **others)

    @classmethod
    def begin(cls, speech: TrainingSpeech, recipe: A, seed: int, checkpoint: Path, key: str, device: Device) -> Self:
        waves, decoder = read_waves(speech.utterances), load_decoder(speech.decoder)
        recipe = recipe.fit(decoder.shape)
        return cls(speech.features, recipe, seed, checkpoint, key, decoder=decoder, waves=waves, device=device)

    def read_content(self, batch: SpeechBatch) -> Tensor:
        """Return content at the frames of the spectra, shape (batch, crop, bottleneck)."""
        with torch.no_grad():
            return batch.at_spectra(self.decoder.encode(batch.layers))


class GeneratorTraining(ContentTraining[GeneratorRecipe, JointGenerator]):
    """A generator with a source, from nothing."""

    def make_generator(self) -> JointGenerator:
        return JointGenerator(self.recipe.shape)

    def make_samples(self, batch: SpeechBatch, draw: np.random.Generator) -> Tensor:
        content = self.read_content(batch)
        source, _ = self.make_source(self.network.source, batch, draw)
        with self.in_16_bits():
            samples: Tensor = self.network(content, batch.intonation, batch.speakers, source)
        return samples


class HifiGanTraining(ContentTraining[HifiGanRecipe, JointHifiGan]):
    """A decoder and HiFi-GAN, which go on learning as one network."""

    def make_generator(self) -> JointHifiGan:
        return JointHifiGan(deepcopy(self.decoder), load_generator(find(WEIGHTS)), self.recipe.shape)

    def make_samples(self, batch: SpeechBatch, draw: np.random.Generator) -> Tensor:  # noqa: ARG002 - of others
        content = self.read_content(batch)
        with self.in_16_bits():
            samples: Tensor = self.network(content, batch.intonation, batch.speakers)
        return samples

    def learnt(self) -> Mapping[str, Tensor]:
        return self.network.learnt()


def read_waves(utterances: Sequence[TrainingUtterance]) -> list[NDArray[np.float32]]:
    """Return the samples of utterances at the one loudness, at 22,050 Hz."""
    return [wave_at_loudness(read_checked(utterance)) for utterance in utterances]
