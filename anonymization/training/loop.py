"""Train a decoder: features, steps with a state on disk every so often, weights, voices of the speakers, a card.

Every step draws its pieces of speech from seed and number of the step alone, and the state on disk holds all that
changes: a training that was killed goes on to the same weights, with the same number of threads on the same machine.
Stages of progress: ``features``, ``training``.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from anonymization.training.features import SPEAKER_ENCODER, Features, read_features
from anonymization.training.recipe import DecoderRecipe
from common.arrays import unit_vectors
from common.atomic_write import write_atomically
from common.errors import MetricInputError
from common.progress import Progress, ignore_progress
from evaluation.attackers.training.corpus import TrainingUtterance
from speech.conversion.content_decoder import ContentDecoder, places_of_content

WEIGHTS, VOICES, CARD, CURVE = "weights.safetensors", "voices.safetensors", "card.json", "losses.csv"
CHECKPOINT = "checkpoint.pt"
_LOSSES = ("spectrum", "codes")


@dataclass(frozen=True)
class Batch:
    """Pieces of speech.

    layers: shape (batch, content frames, inputs). before, share: between which frames of content each frame of the
    spectrum lies, shape (batch, crop). spectra, intonation, speakers: what else goes in and is to come out.
    """

    layers: Tensor
    before: Tensor
    share: Tensor
    spectra: Tensor
    intonation: Tensor
    speakers: Tensor


def train(
    utterances: Sequence[TrainingUtterance],
    recipe: DecoderRecipe,
    seed: int,
    folder: Path,
    licence: str = "",
    progress: Progress = ignore_progress,
) -> Mapping[str, Any]:
    """Train, or go on from the state in the folder; its card.

    Args:
        folder: is made; holds features, state, weights, voices, losses and card.
        licence: of the speech and who has to be named, for the card.

    Raises:
        MetricInputError: speech that cannot be used, or a folder with another training.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = _key(utterances, recipe, seed)
    if (folder / CARD).is_file():
        card: dict[str, Any] = json.loads((folder / CARD).read_text())
        if card["key"] != key:
            raise _other_training(folder)
        return card
    features = read_features(utterances, folder / "features", recipe.variants, partial(progress, "features"))
    training = _Training(features, recipe, seed, folder / CHECKPOINT, key)
    training.run(partial(progress, "training"))
    return _keep(training, utterances, features, licence, folder)


class _Training:
    """Network, optimiser and codes at a step."""

    def __init__(
        self, features: Sequence[Features], recipe: DecoderRecipe, seed: int, checkpoint: Path, key: str
    ) -> None:
        torch.manual_seed(seed)
        self.features, self.recipe, self.seed, self._path, self.key = features, recipe, seed, checkpoint, key
        self.network = ContentDecoder(recipe.shape)
        self._set_statistics()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), recipe.learning_rate, betas=(0.9, 0.98))
        shape = recipe.shape
        self.counts = torch.ones(shape.stages, shape.codes)
        self.sums = torch.zeros(shape.stages, shape.codes, shape.bottleneck)
        self.step, self.seconds = 0, 0.0
        self.losses: list[tuple[int, float, float]] = []
        # Longer utterances are drawn more often; shorter ones than a piece are filled up.
        lengths = np.array([len(each.spectrum) for each in features], np.float64)
        self._chances = lengths / lengths.sum()
        self._resume()

    def run(self, progress: Any) -> None:
        """All steps that are left."""
        recent: list[tuple[float, float]] = []
        begun, before = time.monotonic(), self.seconds
        while self.step < self.recipe.steps:
            progress(self.step, self.recipe.steps)
            recent.append(self._update())
            self.step += 1
            if self.step % self.recipe.checkpoint_every == 0 or self.step == self.recipe.steps:
                self.seconds = before + time.monotonic() - begun
                self.losses.append((self.step, *np.mean(recent, axis=0).round(5).tolist()))
                recent = []
                self._save()
        progress(self.step, self.recipe.steps)

    def _update(self) -> tuple[float, float]:
        recipe, draw = self.recipe, np.random.default_rng([self.seed, self.step])
        batch = self._draw_batch(draw)
        with_codes = self.step >= recipe.warm_up
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        self.network.train()
        # Multiplied in 16 bits, which is twice as fast where the processor knows them.
        with torch.autocast("cpu", torch.bfloat16):
            content = self.network.encode(batch.layers)
        content = content.float()
        distance = torch.zeros(())
        if self.step == recipe.warm_up:
            self._found_codes(content.detach(), draw)
        if with_codes:
            sums, numbers = self.network.quantize(content.detach(), recipe.shape.stages)
            self._move_codes(content.detach(), sums, numbers, draw)
            # Each piece is described by a number of stages that is drawn for it, 0 for none at all.
            stages = torch.from_numpy(draw.integers(0, recipe.shape.stages + 1, recipe.batch))
            chosen = sums[(stages - 1).clamp_min(0), torch.arange(recipe.batch)]
            coded = (stages > 0)[:, None, None]
            distance = (torch.where(coded, content - chosen, torch.zeros(()))).square().mean()
            content = torch.where(coded, content + (chosen - content).detach(), content)
        there = content.gather(1, batch.before[:, :, None].expand(-1, -1, content.shape[2]))
        after = content.gather(
            1, (batch.before + 1).clamp_max(content.shape[1] - 1)[:, :, None].expand(-1, -1, content.shape[2])
        )
        content = there + batch.share[:, :, None] * (after - there)
        with torch.autocast("cpu", torch.bfloat16):
            spectra = self.network.decode(content, batch.intonation, batch.speakers)
        difference = functional.l1_loss(spectra.float(), batch.spectra)
        loss = difference + recipe.commitment * distance
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        return float(difference.detach()), float(distance.detach())

    def _learning_rate(self) -> float:
        recipe = self.recipe
        rise = min(1.0, (self.step + 1) / max(1, recipe.warm_up))
        return recipe.learning_rate * rise * 0.5 * (1 + math.cos(math.pi * self.step / recipe.steps))

    def _draw_batch(self, draw: np.random.Generator) -> Batch:
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
            parts.append((layers, before - begin, (places - before).astype(np.float32), spectrum, tune, one.vector))
        return Batch(*(torch.from_numpy(np.stack(each)) for each in zip(*parts, strict=True)))

    def _set_statistics(self) -> None:
        """Mean and spread of each number of the layers over the original speech."""
        count = sum(each.layers.shape[1] for each in self.features)
        mean = sum(each.layers[0].astype(np.float64).sum(axis=0) for each in self.features) / count
        squares = sum(np.square(each.layers[0].astype(np.float64) - mean).sum(axis=0) for each in self.features) / count
        self.network.get_buffer("mean").copy_(torch.from_numpy(mean))
        self.network.get_buffer("spread").copy_(torch.from_numpy(np.sqrt(squares) + 1e-3))

    # Codes ----------------------------------------------------------------------------------------

    def _found_codes(self, content: Tensor, draw: np.random.Generator) -> None:
        """The codes of each stage: frames of what the stages before it leave, drawn."""
        rest = content.reshape(-1, content.shape[2])
        books = self.network.get_buffer("codebooks")
        for number, book in enumerate(books):
            chosen = draw.choice(len(rest), len(book), replace=len(rest) < len(book))
            book.copy_(rest[torch.from_numpy(chosen)])
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
                drawn = torch.from_numpy(draw.choice(len(rest), int(rare.sum())))
                self.counts[stage][rare] = len(rest) / len(book)
                self.sums[stage][rare] = rest[drawn] * self.counts[stage][rare][:, None]
            book.copy_(self.sums[stage] / self.counts[stage].clamp_min(1e-6)[:, None])

    # State ----------------------------------------------------------------------------------------

    def _save(self) -> None:
        content = io.BytesIO()
        state = {name: getattr(self, name) for name in ("key", "step", "seconds", "counts", "sums", "losses")}
        state |= {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, content)
        write_atomically(self._path, content.getvalue())

    def _resume(self) -> None:
        if not self._path.is_file():
            return
        try:
            state = torch.load(self._path, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises whatever a broken file leads to
            raise MetricInputError(
                f"{self._path}: expected the state of a training, found a damaged file. Delete it to start again."
            ) from error
        if state["key"] != self.key:
            raise _other_training(self._path.parent)
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in ("step", "seconds", "counts", "sums", "losses"):
            setattr(self, name, state[name])


# What stays ---------------------------------------------------------------------------------------


def _keep(
    training: _Training,
    utterances: Sequence[TrainingUtterance],
    features: Sequence[Features],
    licence: str,
    folder: Path,
) -> dict[str, Any]:
    from safetensors.torch import save

    weights = save({name: tensor.half().contiguous() for name, tensor in training.network.state_dict().items()})
    write_atomically(folder / WEIGHTS, weights)
    voices = _voices(utterances, features)
    write_atomically(folder / VOICES, voices)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("step", *_LOSSES))
    writer.writerows(training.losses)
    write_atomically(folder / CURVE, text.getvalue().encode())
    card: dict[str, Any] = {
        "key": training.key,
        "recipe": training.recipe.as_dict(),
        "seed": training.seed,
        "data": {
            "utterances": len(utterances),
            "speakers": len({one.source for one in utterances}),
            "seconds": round(sum(len(each.spectrum) for each in features) * 256 / 22_050, 1),
            "licence": licence,
        },
        "training_seconds": round(training.seconds, 1),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "losses": dict(zip(_LOSSES, training.losses[-1][1:], strict=True)),
        "speaker_encoder": SPEAKER_ENCODER,
        "sha256": {WEIGHTS: hashlib.sha256(weights).hexdigest(), VOICES: hashlib.sha256(voices).hexdigest()},
    }
    write_atomically(folder / CARD, (json.dumps(card, indent=2) + "\n").encode())
    return card


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


def _key(utterances: Sequence[TrainingUtterance], recipe: DecoderRecipe, seed: int) -> str:
    named = [(one.identifier, one.source) for one in utterances]
    return hashlib.sha256(json.dumps([recipe.as_dict(), seed, named], sort_keys=True).encode()).hexdigest()


def _other_training(folder: Path) -> MetricInputError:
    return MetricInputError(
        f"{folder}: expected no training, or this one; found one of another recipe, seed or speech. Choose another "
        "folder."
    )
