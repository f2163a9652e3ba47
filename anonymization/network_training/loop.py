"""The steps of a training, with a state on disk every so often.

Every step draws its pieces of speech from seed and number of the step alone, and the state on disk holds all that
changes: a training that was killed goes on to the same weights, with the same number of threads on the same machine.
"""

from __future__ import annotations

import csv
import io
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anonymization.methods.content_decoder.network_files import NetworkFile
from anonymization.network_training.features import Features
from anonymization.network_training.recipe import NetworkRecipe
from common.atomic_write import write_atomically
from common.progress import Count
from evaluation.attackers.training.corpus import TrainingUtterance
from speech.conversion.content_decoder import places_of_content
from speech.model_files.devices import Device, multiplies_16_bits
from speech.model_files.training_states import load_state, save_state

CURVE = "losses.csv"
R = TypeVar("R", bound=NetworkRecipe)
N = TypeVar("N", bound=nn.Module)


@dataclass(frozen=True)
class TrainingSpeech:
    """What there is to learn from.

    features: of the utterances. decoder: whose content is read, where one is. texts: words by identifier of the
    utterance.
    """

    utterances: Sequence[TrainingUtterance]
    features: Sequence[Features]
    decoder: NetworkFile
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SpeechBatch:
    """Pieces of speech.

    layers: shape (batch, content frames, inputs). before, share: between which frames of content each frame of the
    spectrum lies, shape (batch, crop). spectra, intonation, speakers: what else goes in and is to come out. inside:
    whether a frame is of the utterance, and not of what a shorter one was filled up with, shape (batch, crop). origin:
    number of the utterance and first frame of each piece, shape (batch, 2).
    """

    layers: Tensor
    before: Tensor
    share: Tensor
    spectra: Tensor
    intonation: Tensor
    speakers: Tensor
    inside: Tensor
    origin: Tensor

    def at_spectra(self, content: Tensor) -> Tensor:
        """Return content at the frames of the spectra, shape (batch, crop, bottleneck), of that at its own frames."""
        wide = (-1, -1, content.shape[2])
        there = content.gather(1, self.before[:, :, None].expand(wide))
        after = content.gather(1, (self.before + 1).clamp_max(content.shape[1] - 1)[:, :, None].expand(wide))
        return there + self.share[:, :, None] * (after - there)


class Training(ABC, Generic[R, N]):
    """Network and optimiser at a step, and what else changes (`state`).

    device: that computes. On a card a training that was killed goes on from its state, but not to the same digits.
    """

    # Of a step, as `update` gives them, and the attributes beside network and optimiser that a state holds.
    loss_names: tuple[str, ...]
    state: ClassVar[tuple[str, ...]] = ()
    betas = (0.9, 0.98)

    def __init__(
        self,
        features: Sequence[Features],
        recipe: R,
        seed: int,
        checkpoint: Path,
        key: str,
        *,
        device: Device = "cpu",
    ) -> None:
        torch.manual_seed(seed)
        self.features, self.recipe, self.seed, self._path, self.key = features, recipe, seed, checkpoint, key
        self.device: Device = device
        self.network: N = self.make_network().to(device)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), recipe.learning_rate, betas=self.betas)
        self.step, self.seconds = 0, 0.0
        self.losses: list[tuple[float, ...]] = []
        # Longer utterances are drawn more often; shorter ones than a piece are filled up.
        lengths = np.array([len(each.spectrum) for each in features], np.float64)
        self._chances = lengths / lengths.sum()
        self._resume()

    @classmethod
    def begin(cls, speech: TrainingSpeech, recipe: R, seed: int, checkpoint: Path, key: str, device: Device) -> Self:
        """Return a training on speech, or where its state says it was."""
        return cls(speech.features, recipe, seed, checkpoint, key, device=device)

    @abstractmethod
    def make_network(self) -> N:
        """Return the network before the first step, with the statistics of the features."""

    @abstractmethod
    def update(self, batch: SpeechBatch, draw: np.random.Generator) -> tuple[float, ...]:
        """Return one step of the optimiser; its losses."""

    def learnt(self) -> Mapping[str, Tensor]:
        """Return the tensors that are kept of the network, by name."""
        tensors: dict[str, Tensor] = self.network.state_dict()
        return tensors

    def make_files(self, utterances: Sequence[TrainingUtterance]) -> Mapping[str, bytes]:  # noqa: ARG002 - of others
        """Return what is kept beside weights, losses and card, by name; the utterances are those of the features."""
        return {}

    def tell(self) -> Mapping[str, Any]:
        """Return what the card says of this kind of training."""
        return {}

    def run(self, progress: Count) -> None:
        """All steps that are left."""
        recent: list[tuple[float, ...]] = []
        begun, before = time.monotonic(), self.seconds
        while self.step < self.recipe.steps:
            progress(self.step, self.recipe.steps)
            draw = np.random.default_rng([self.seed, self.step])
            batch = self._draw_batch(draw)
            for name, part in self.parts().items():
                if name.endswith("optimizer"):
                    for group in part.param_groups:
                        group["lr"] = self._learning_rate()
            self.network.train()
            recent.append(self.update(batch, draw))
            self.step += 1
            if self.step % self.recipe.checkpoint_every == 0 or self.step == self.recipe.steps:
                self.seconds = before + time.monotonic() - begun
                self.losses.append((self.step, *np.mean(recent, axis=0).round(5).tolist()))
                recent = []
                self._save()
        progress(self.step, self.recipe.steps)

    def parts(self) -> dict[str, Any]:
        """Return networks and optimisers (their names end so), whose state is kept."""
        return {"network": self.network, "optimizer": self.optimizer}

    def in_16_bits(self) -> torch.autocast:
        """Where the device multiplies numbers of 16 bits by itself, it does so here."""
        return torch.autocast(self.device, torch.bfloat16, enabled=multiplies_16_bits(self.device))

    def descend(self, loss: Tensor) -> None:
        """Move the weights against the gradient of the loss, of length 1 at most."""
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()

    def _learning_rate(self) -> float:
        recipe = self.recipe
        rise = min(1.0, (self.step + 1) / max(1, recipe.warm_up))
        return recipe.learning_rate * rise * 0.5 * (1 + math.cos(math.pi * self.step / recipe.steps))

    def _draw_batch(self, draw: np.random.Generator) -> SpeechBatch:
        recipe = self.recipe
        wide = math.ceil(places_of_content(recipe.crop + 1)[-1]) + 3
        parts: list[tuple[NDArray[Any], ...]] = []
        for number in draw.choice(len(self.features), recipe.batch, p=self._chances):
            one = self.features[number]
            copy = draw.integers(len(one.layers))
            first = int(draw.integers(max(0, len(one.spectrum) - recipe.crop) + 1))
            places = np.clip(places_of_content(first + recipe.crop)[first:], 0, one.layers.shape[1] - 1)
            begin = int(places[0])
            layers = one.layers[copy, begin : begin + wide].astype(np.float32)
            layers = np.pad(layers, ((0, wide - len(layers)), (0, 0)), mode="edge")
            piece = slice(first, first + recipe.crop)
            missing = ((0, recipe.crop - len(one.spectrum[piece])), (0, 0))
            spectrum = np.pad(one.spectrum[piece].astype(np.float32), missing, mode="edge")
            tune = np.pad(one.intonation[piece], missing)
            before = places.astype(np.int64)
            share, inside = (places - before).astype(np.float32), np.arange(recipe.crop) < len(one.spectrum) - first
            parts.append((layers, before - begin, share, spectrum, tune, one.vector, inside, np.array([number, first])))
        return SpeechBatch(*(torch.from_numpy(np.stack(each)).to(self.device) for each in zip(*parts, strict=True)))

    def _save(self) -> None:
        state = {name: getattr(self, name) for name in ("key", "step", "seconds", "losses", *self.state)}
        state |= {name: part.state_dict() for name, part in self.parts().items()}
        save_state(self._path, state)
        self.keep_curve()

    def keep_curve(self) -> None:
        """Write the losses so far beside the state."""
        write_curve(self._path.parent, ("step", *self.loss_names), self.losses)

    def _resume(self) -> None:
        if (state := load_state(self._path, self.key, self.device)) is None:
            return
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        for name in ("step", "seconds", "losses", *self.state):
            setattr(self, name, state[name])


def write_curve(folder: Path, header: Sequence[str], rows: Sequence[Sequence[float | None]]) -> None:
    """Write the losses of a training as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_atomically(folder / CURVE, text.getvalue().encode())
