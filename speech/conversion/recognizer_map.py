"""The speaker vector that a recogniser's features suggest: a linear map of their mean over a speaker's speech.

What a recogniser hands to its decoder is trained to tell words and not speakers; the mean of it over time still says
something of the voice. A map by ridge regression gives the vector of the speaker encoder that is to be expected. What
the features do not tell is drawn: the residual of one of the speakers of the training. So vectors are spread as real
ones are, and one feature has many voices.

Conventions: features are the last layer of Whisper base's encoder, 512 numbers a frame; vectors are those of GE2E, of
length 1, 256 numbers ≥ 0.

Source of the idea: system T18 of the VoicePrivacy challenge 2022, part (ii), whose speaker vectors are features of a
Transformer recogniser; its code is not published, and this is a design of our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats, Samples
from common.errors import InputError
from speech.model_files.checkpoints import read_state

if TYPE_CHECKING:
    from speech.features.whisper_layers import WhisperLayers


LAYER = 6
WIDTHS = {"features": (512,), "vectors": (256,), "weights": (512, 256), "residuals": (256,)}  # of a row
RATE_HZ, HOP_SAMPLES = 16_000, 320
# The quietest frames, as a part of all, tell of pauses and are left out.
_QUIET_SHARE = 0.3
# A piece, of which a training has a feature and a vector: enough for GE2E.
PIECE_FRAMES = 150


@dataclass(frozen=True, eq=False)
class RecognizerMap:
    """A map.

    features: mean of the features, shape (512,); weights: shape (512, 256); vectors: mean, shape (256,); residuals: by
    how much the mean vector of each speaker is off what was expected of their speech, shape (speakers, 256).
    """

    features: Floats
    weights: Floats
    vectors: Floats
    residuals: Floats

    def expect(self, feature: Floats) -> Floats:
        """Return the expected vector of mean features of shape (512,), of length 1."""
        return _unit(self.vectors + (feature - self.features) @ self.weights)

    def draw(self, feature: Floats, draw: np.random.Generator) -> Floats:
        """Return a vector that the features allow, of length 1: the residual of somebody is added."""
        residual = self.residuals[draw.integers(len(self.residuals))]
        return _unit(self.vectors + (feature - self.features) @ self.weights + residual)

    def tensors(self) -> Mapping[str, NDArray[np.float16]]:
        """Return what a file holds."""
        return {name: getattr(self, name).astype(np.float16) for name in WIDTHS}


def _unit(vector: Floats) -> Floats:
    """Without negative numbers, which GE2E never has, and of length 1."""
    found = np.maximum(vector, 0.0)
    return np.asarray(found / max(float(np.linalg.norm(found)), 1e-12))


def fit_map(features: Floats, vectors: Floats, speakers: Sequence[str], ridge: float) -> RecognizerMap:
    """Return the map of least squared error, the squared weights being added.

    Args:
        features: shape (n, 512). vectors: shape (n, 256). speakers: of each row.
        ridge: weight of the squared weights, in units of the mean variance of a feature times n.
    """
    mean_in, mean_out = features.mean(axis=0), vectors.mean(axis=0)
    centred = features - mean_in
    covariance = centred.T @ centred / len(features)
    loading = ridge * float(np.trace(covariance)) / len(covariance)
    weights = np.linalg.solve(
        covariance + loading * np.eye(len(covariance)), centred.T @ (vectors - mean_out) / len(features)
    )
    off = vectors - mean_out - centred @ weights
    names = np.array(speakers)
    return RecognizerMap(
        mean_in, weights, mean_out, np.stack([off[names == one].mean(axis=0) for one in sorted(set(speakers))])
    )


def mean_features(samples: Samples, encoder: WhisperLayers) -> dict[int, Floats]:
    """By its first sample, the mean over the louder frames of each piece of three seconds; of all where it is shorter.

    Args:
        samples: int16, 16 kHz, shape (n,), n ≥ 1. A piece that is silent has no mean.
    """
    [[frames]] = encoder.encode([samples], RATE_HZ, [LAYER])
    padded = np.pad(samples.astype(np.float64), (0, len(frames) * HOP_SAMPLES - samples.size))
    power = np.square(padded).reshape(len(frames), HOP_SAMPLES).mean(axis=1)
    is_loud = (power > 0) & (power >= np.quantile(power, _QUIET_SHARE))
    found = {}
    for start in range(0, max(1, len(frames) - PIECE_FRAMES + 1), PIECE_FRAMES):
        piece = slice(start, start + PIECE_FRAMES)
        if is_loud[piece].any():
            found[start * HOP_SAMPLES] = frames[piece][is_loud[piece]].mean(axis=0).astype(np.float64)
    return found


def load(path: Path) -> RecognizerMap:
    """Return the map of a file, in 16 or 32 bits.

    Raises:
        InputError: not such a file, or other names or shapes than declared.
    """
    state = {name: tensor.double().numpy() for name, tensor in read_state(path).items()}
    found = {name: array.shape[-len(WIDTHS.get(name, array.shape)) :] for name, array in state.items()}
    if found != WIDTHS:
        raise InputError(f"{path.name}: expected {WIDTHS}, found {found}.")
    return RecognizerMap(**state)
