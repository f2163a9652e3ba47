"""The training of the joint generator: samples from content, F0 and speaker vector, judged by discriminators.

What is to come out is the recording at the one loudness, at the rate of the generator.

Source: J. Kong, J. Kim, J. Bae, "HiFi-GAN", NeurIPS 2020, equations 1 to 6; here spectra alone are compared at first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from anonymization.training.discriminators import Discriminators, Judgement, loss_of_discriminators, losses_of_generator
from anonymization.training.features import Features
from anonymization.training.loop import Batch, Training
from anonymization.training.recipe import GeneratorRecipe
from evaluation.attackers.training.corpus import TrainingUtterance, read_checked
from speech.conversion.content_decoder import ContentDecoder, log_f0, wave_at_loudness
from speech.conversion.joint_generator import JointGenerator
from speech.model_files.devices import Device
from speech.vocoders.hifigan import HOP_SAMPLES, log_mels


class GeneratorTraining(Training[GeneratorRecipe, JointGenerator]):
    """Generator and discriminators at a step.

    decoder: whose content is read. waves: the samples of the utterances, as `read_waves` gives them.
    """

    loss_names: ClassVar = ("spectrum", "adversarial", "features", "discriminators")
    betas: ClassVar = (0.8, 0.99)

    def __init__(
        self,
        features: Sequence[Features],
        recipe: GeneratorRecipe,
        seed: int,
        checkpoint: Path,
        key: str,
        *,
        decoder: ContentDecoder,
        waves: Sequence[NDArray[np.float32]],
        device: Device = "cpu",
    ) -> None:
        self._decoder, self._waves = decoder.to(device).eval(), waves
        super().__init__(features, recipe, seed, checkpoint, key, device=device)

    def make_network(self) -> JointGenerator:
        """And the discriminators."""
        recipe = self.recipe
        self._discriminators = Discriminators(recipe.narrower).to(self.device)
        self._their_optimizer = torch.optim.AdamW(
            self._discriminators.parameters(), recipe.learning_rate, betas=self.betas
        )
        return JointGenerator(recipe.shape)

    def parts(self) -> dict[str, Any]:
        """Of the discriminators, too."""
        others = {"discriminators": self._discriminators, "their_optimizer": self._their_optimizer}
        return {**super().parts(), **others}

    def update(self, batch: Batch, draw: np.random.Generator) -> tuple[float, ...]:
        """Difference of mel spectra, and from some step on the losses of HiFi-GAN."""
        recipe, recorded = self.recipe, self._cut_waves(batch)
        with torch.no_grad():
            content = batch.at_spectra(self._decoder.encode(batch.layers))
        noise = torch.Generator(self.device).manual_seed(int(draw.integers(2**31)))
        start = torch.from_numpy(draw.random(recipe.batch)).to(self.device)
        hz = torch.where(batch.intonation[:, :, 1] > 0, log_f0(batch.intonation).exp(), 0.0)
        source = self.network.source(hz, noise, start)
        with self.in_16_bits():
            made = self.network(content, batch.intonation, batch.speakers, source)
        made = torch.where(batch.inside.repeat_interleave(HOP_SAMPLES, dim=1), made.float(), 0.0)
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

    def _cut_waves(self, batch: Batch) -> Tensor:
        """What is to come out, shape (batch, 256 × crop)."""
        wide = self.recipe.crop * HOP_SAMPLES
        pieces = np.zeros((len(batch.origin), wide), np.float32)
        for row, (number, first) in zip(pieces, batch.origin.tolist(), strict=True):
            piece = self._waves[number][first * HOP_SAMPLES :][:wide]
            row[: piece.size] = piece
        return torch.from_numpy(pieces).to(self.device)

    def _judge(self, recorded: Tensor, made: Tensor) -> tuple[list[Judgement], list[Judgement]]:
        """What the discriminators make of recorded and of synthetic speech, both at once."""
        count = len(recorded)
        both = self._discriminators(torch.cat([recorded, made])[:, None])
        real = [(judgement[:count], [layer[:count] for layer in layers]) for judgement, layers in both]
        return real, [(judgement[count:], [layer[count:] for layer in layers]) for judgement, layers in both]


def read_waves(utterances: Sequence[TrainingUtterance]) -> list[NDArray[np.float32]]:
    """The samples of utterances at the one loudness, at 22,050 Hz."""
    return [wave_at_loudness(read_checked(utterance)) for utterance in utterances]
