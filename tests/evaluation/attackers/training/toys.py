"""Small trainings for tests: noise with a tone, and a world of features where sources and targets are planes.

Each source and each target has a plane of its own in the space of features, and every frame of an utterance moves at
random in both and a little elsewhere. With a biased selection each training source always gets one target, so a
recogniser may learn the targets in place of the sources; evaluation draws targets at random and finds out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

from evaluation.attackers.training.corpus import RATE_HZ, Segments, TrainingUtterance
from evaluation.attackers.training.epochs import fit
from evaluation.attackers.training.features import KeptFeatures
from evaluation.attackers.training.recipe import PRESETS, TrainingRecipe, with_variant
from evaluation.attackers.training.train import measure_finished
from evaluation.attackers.training.trained_attacker import FinalValues
from evaluation.metrics.detection import kaldi_eer

BANDS, FRAMES = 24, 24
TARGETS = 8
TARGET_STRENGTH, NOISE = 1.5, 0.8
SOURCES, UTTERANCES, HELD_OUT = 48, 16, 4
TESTED, ENROLLED, TRIALS = 30, 5, 10
EPOCHS, ZERO_EPOCHS = 40, 12

TINY = PRESETS["small"].changed(
    width=8, aggregated=24, embedding=8, attention=8, epochs=3, batch=8, segment_s=0.5, crop_s=0.4, shortest_s=0.4
)

TINY_XVECTOR = PRESETS["x-vector"].changed(
    width=8,
    aggregated=12,
    embedding=8,
    epochs=2,
    batch=8,
    segment_s=0.5,
    crop_s=0.5,
    shortest_s=0.3,
    validation="last segment",
)

RESUMED = with_variant(TINY, "stabilised").changed(zero_epochs=1)


def utterances(sources: int = 3, each: int = 4, seconds: float = 1.1, seed: int = 0) -> list[TrainingUtterance]:
    """Noise with a resonance of each source; targets take turns, genders alternate."""
    random = np.random.default_rng(seed)
    found = []
    for source in range(sources):
        for number in range(each):
            noise = random.normal(size=round(seconds * RATE_HZ))
            tone = np.sin(2 * np.pi * (300 + 500 * source) * np.arange(noise.size) / RATE_HZ)
            samples = (3000 * (0.3 * noise + tone)).clip(-32768, 32767).astype(np.int16)
            found.append(
                TrainingUtterance(
                    f"s{source}-{number}", f"s{source}", partial(_say, samples), f"t{number % 2}", "fm"[source % 2]
                )
            )
    return found


def _say(samples: np.ndarray) -> tuple[np.ndarray, int]:
    return samples, RATE_HZ


class TinyTdnn(nn.Module):
    """Two layers over frames and statistics of them."""

    def __init__(self, dimension: int = 32, channels: int = 48) -> None:
        super().__init__()
        self.dimension = dimension
        layers: list[nn.Module] = []
        for inputs in (BANDS, channels):
            layers += [nn.Conv1d(inputs, channels, 3, padding=1), nn.ReLU(), nn.BatchNorm1d(channels)]
        self.layers = nn.Sequential(*layers)
        self.embedding = nn.Linear(2 * channels, dimension)

    def forward(self, features: torch.Tensor, frames: torch.Tensor | None = None) -> torch.Tensor:  # noqa: ARG002
        values = self.layers(features.transpose(1, 2))
        return self.embedding(torch.cat([values.mean(dim=2), values.std(dim=2)], dim=1))


@dataclass(frozen=True)
class Outcome:
    final: FinalValues
    eer: float


class World:
    """Draws sources and utterances; the same seed gives the same world."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._targets = self._random.normal(size=(TARGETS, 2, BANDS))

    def biased_training(self) -> tuple[Segments, KeptFeatures]:
        """Each source with one target for all of its utterances."""
        own = self._random.integers(0, TARGETS, SOURCES)
        source = np.repeat(np.arange(SOURCES), UTTERANCES)
        planes = self._sources(SOURCES)
        features = np.concatenate([self._utterance(planes[one], own[one]) for one in source])
        count, nothing = source.size, np.zeros(source.size, dtype=np.int64)
        segments = Segments(
            sources=tuple(f"s{one}" for one in range(SOURCES)),
            targets=tuple(f"t{one}" for one in range(TARGETS)),
            piece_utterance=nothing,
            piece_start=nothing,
            piece_length=nothing,
            row_piece=np.arange(count),
            row_start=nothing,
            source=source,
            target=own[source],
            gender=np.full(count, ""),
            held_out=np.tile(np.arange(UTTERANCES) >= UTTERANCES - HELD_OUT, SOURCES),
            fingerprint="toy",
        )
        return segments, KeptFeatures(torch.from_numpy(features), np.cumsum(np.full(count, FRAMES)))

    def eer(self, encoder: nn.Module) -> float:
        """Of new sources with targets at random, cosine with the mean of the enrolment vectors."""
        planes = self._sources(TESTED)
        enrolled = self._embedded(encoder, planes, ENROLLED).mean(axis=1)
        models = enrolled / np.linalg.norm(enrolled, axis=1, keepdims=True)
        scores = np.einsum("md,nkd->mnk", models, self._embedded(encoder, planes, TRIALS))
        same = np.eye(TESTED, dtype=bool)
        return kaldi_eer(scores[same].ravel(), scores[~same].ravel())

    def _sources(self, count: int) -> np.ndarray:
        return self._random.normal(size=(count, 2, BANDS))

    def _utterance(self, source: np.ndarray, target: int) -> np.ndarray:
        moves = self._random.normal(size=(2, FRAMES, 2))
        noise = NOISE * self._random.normal(size=(FRAMES, BANDS))
        return (moves[0] @ source + TARGET_STRENGTH * moves[1] @ self._targets[target] + noise).astype(np.float32)

    def _embedded(self, encoder: nn.Module, planes: np.ndarray, each: int) -> np.ndarray:
        """Unit vectors, shape (sources, each, d)."""
        features = np.stack(
            [self._utterance(plane, self._random.integers(0, TARGETS)) for plane in planes for _ in range(each)]
        )
        centred = torch.from_numpy(features - features.mean(axis=1, keepdims=True))
        with torch.no_grad():
            vectors = nn.functional.normalize(encoder(centred), dim=1)
        return vectors.numpy().reshape(len(planes), each, -1)


def train_in_world(variant: str, seed: int) -> Outcome:
    """Train a variant under the biased selection, measure it, and attack new speakers."""
    recipe = with_variant(
        PRESETS["small"].changed(
            epochs=EPOCHS, peak_learning_rate=3e-3, segment_s=0.23, crop_s=0.23, shortest_s=0.2, crop="grid"
        ),
        variant,
    )
    world = World(seed)
    segments, store = world.biased_training()
    fitted = fit(TinyTdnn, store, segments, _toy_strength(recipe, variant), seed, None)
    final, _ = measure_finished(fitted, store, segments, recipe, seed)
    return Outcome(final, world.eer(fitted.encoder))


def _toy_strength(recipe: TrainingRecipe, variant: str) -> TrainingRecipe:
    """A stronger and earlier adversary than at full size, as the toy needs it."""
    if variant == "stabilised":
        return recipe.changed(zero_epochs=ZERO_EPOCHS, largest_weight=0.8, adversary_steps=5)
    return recipe.changed(zero_epochs=ZERO_EPOCHS)
