"""Fit a phone recogniser to speech and its transcripts, epoch by epoch, with a state on disk after each.

What an epoch draws follows from seed and number of the epoch alone, and the state holds all that changes: a training
that was killed goes on to the same weights, with the same number of threads on the same machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from common.errors import InputError
from common.progress import Count, ignore_progress
from evaluation.metrics.word_errors import count_word_errors
from evaluation.recognizer_training.frames import SpokenText
from speech.model_files.devices import Device, multiplies_16_bits
from speech.model_files.training_states import load_state, save_state
from speech.recognizers.phone_network import PhoneNetwork, count_outputs
from speech.recognizers.phone_recipe import FEWEST, FRAMES_PER_S, PhoneRecipe

_AT_ONCE = 16  # batches whose utterances are sorted by length together


@dataclass(frozen=True)
class PhoneEpoch:
    """One epoch. loss: of a phone, mean. error_rate: of the utterances held out, a fraction; None where none are."""

    epoch: int
    loss: float
    error_rate: float | None


@dataclass(frozen=True)
class FittedPhones:
    """A trained network and its epochs."""

    network: PhoneNetwork
    epochs: tuple[PhoneEpoch, ...]


def train_phones(
    material: Sequence[SpokenText],
    recipe: PhoneRecipe,
    seed: int,
    checkpoint: Path | None = None,
    progress: Count = ignore_progress,
    device: Device = "cpu",
) -> FittedPhones:
    """Train, or go on from the state on disk.

    Args:
        material: utterances that CTC cannot align are left out.
        checkpoint: where the state is kept after each epoch; nothing is kept where None.
        progress: told of each epoch.

    Raises:
        InputError: fewer than 20 utterances to learn from, or a state of another training.
    """
    usable = [one for one in material if one.is_possible]
    if len(usable) < FEWEST:
        raise InputError(
            f"Training a phone recogniser needs at least {FEWEST} utterances with transcripts; found {len(usable)} of "
            f"{len(material)} that can be used. Hand in more training speech."
        )
    return _Training(usable, recipe, seed, checkpoint, device).run(progress)


class _Training:
    def __init__(
        self, material: Sequence[SpokenText], recipe: PhoneRecipe, seed: int, checkpoint: Path | None, device: Device
    ) -> None:
        self.recipe, self.seed, self.path, self.device = recipe, seed, checkpoint, device
        order = np.random.default_rng([seed, 0]).permutation(len(material))
        held = int(recipe.held_out * len(material))
        self.held_out = [material[place] for place in order[:held]]
        self.material = [material[place] for place in order[held:]]
        torch.manual_seed(seed)
        phones = sorted({phone for one in material for phone in one.phones.split()})
        self.network = PhoneNetwork(recipe, phones)
        self._set_statistics()
        self.network.to(device)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), recipe.learning_rate, weight_decay=0.01)
        self._key = self._make_key()
        self.steps_per_epoch = len(self._batches(1))
        self.n_epochs = max(1, round(recipe.steps / self.steps_per_epoch))
        self.epochs: list[PhoneEpoch] = []

    def run(self, progress: Count) -> FittedPhones:
        self._resume()
        for epoch in range(len(self.epochs) + 1, self.n_epochs + 1):
            progress(epoch - 1, self.n_epochs)
            loss = self._learn(epoch)
            rate = self._measure() if epoch == self.n_epochs or epoch % 5 == 0 else None
            self.epochs.append(PhoneEpoch(epoch, loss, rate))
            self._save()
        progress(self.n_epochs, self.n_epochs)
        return FittedPhones(self.network.cpu().eval(), tuple(self.epochs))

    def _learn(self, epoch: int) -> float:
        draw = np.random.default_rng([self.seed, epoch, 1])
        torch.manual_seed(int(draw.integers(2**62)))
        self.network.train()
        losses, phones = 0.0, 0
        for place, members in enumerate(self._batches(epoch)):
            for group in self.optimizer.param_groups:
                group["lr"] = self._learning_rate((epoch - 1) * self.steps_per_epoch + place)
            frames, lengths = self._pad(members, draw)
            texts = [self.network.number(one.phones) for one in members]
            sizes = torch.tensor([len(text) for text in texts])
            with torch.autocast(self.device, torch.bfloat16, enabled=multiplies_16_bits(self.device)):
                chances = self.network(frames, lengths)
            # The loss is computed on the processor: on a card it would differ from run to run.
            loss = functional.ctc_loss(
                chances.transpose(0, 1).float().cpu(),
                torch.tensor([number for text in texts for number in text]),
                count_outputs(lengths.cpu()),
                sizes,
                reduction="sum",
            )
            self.optimizer.zero_grad()
            (loss / sizes.sum()).backward()  # type: ignore[no-untyped-call, unused-ignore]
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step()
            losses, phones = losses + float(loss.detach()), phones + int(sizes.sum())
        return losses / phones

    def _learning_rate(self, step: int) -> float:
        total = self.n_epochs * self.steps_per_epoch
        rise = min(1.0, (step + 1) / max(1.0, total / 10))
        return self.recipe.learning_rate * rise * 0.5 * (1 + math.cos(math.pi * step / total))

    def _batches(self, epoch: int) -> list[list[SpokenText]]:
        """Return utterances of about one length together, in an order that is drawn for each epoch."""
        draw = np.random.default_rng([self.seed, epoch, 0])
        limit = self.recipe.batch_s * FRAMES_PER_S
        order = [self.material[place] for place in draw.permutation(len(self.material))]
        mean = sum(len(one.frames) for one in order) / len(order)
        several = max(1, round(_AT_ONCE * limit / mean))
        batches: list[list[SpokenText]] = []
        for first in range(0, len(order), several):
            batch: list[SpokenText] = []
            for one in sorted(order[first : first + several], key=lambda one: len(one.frames)):
                if batch and (len(batch) + 1) * len(one.frames) > limit:
                    batches.append(batch)
                    batch = []
                batch.append(one)
            batches.append(batch)
        return [batches[place] for place in draw.permutation(len(batches))]

    def _pad(self, members: Sequence[SpokenText], draw: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return the frames of a batch with stretches masked by the mean, and how many each has."""
        longest = max(len(one.frames) for one in members)
        frames = np.zeros((len(members), longest, members[0].frames.shape[1]), np.float32)
        mean = self.network.get_buffer("mean").cpu().numpy()
        most = int(self.recipe.masked_s * FRAMES_PER_S)
        for row, one in zip(frames, members, strict=True):
            row[: len(one.frames)] = one.frames
            for _ in range(2):
                first, length = int(draw.integers(len(one.frames))), int(draw.integers(most + 1))
                row[first : min(first + length, len(one.frames))] = mean
        lengths = torch.tensor([len(one.frames) for one in members])
        return torch.from_numpy(frames).to(self.device), lengths.to(self.device)

    def _measure(self) -> float | None:
        if not self.held_out:
            return None
        heard = self.network.recognise([one.frames for one in self.held_out])
        names = [one.name for one in self.held_out]
        wanted = dict(zip(names, (one.phones for one in self.held_out), strict=True))
        return count_word_errors(wanted, dict(zip(names, heard, strict=True))).honest.error_rate

    def _set_statistics(self) -> None:
        count = sum(len(one.frames) for one in self.material)
        mean = sum(one.frames.astype(np.float64).sum(axis=0) for one in self.material) / count
        squares = sum(np.square(one.frames.astype(np.float64) - mean).sum(axis=0) for one in self.material) / count
        self.network.get_buffer("mean").copy_(torch.from_numpy(mean))
        self.network.get_buffer("spread").copy_(torch.from_numpy(np.sqrt(squares) + 1e-3))

    # State -----------------------------------------------------------------------------------------

    def _make_key(self) -> str:
        digest = hashlib.sha256(f"{self.recipe.to_json()}|{self.seed}|".encode())
        for one in self.material:
            digest.update(f"{one.name}|{one.phones}|{one.frames.shape}\n".encode())
            digest.update(one.frames.tobytes())
        return digest.hexdigest()

    def _save(self) -> None:
        if self.path is None:
            return
        state = {
            "key": self._key,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs": [(one.epoch, one.loss, one.error_rate) for one in self.epochs],
        }
        save_state(self.path, state)

    def _resume(self) -> None:
        if self.path is None or (state := load_state(self.path, self._key)) is None:
            return
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epochs = [PhoneEpoch(*one) for one in state["epochs"]]
