"""Voice conversion by nearest frames: each frame of speech becomes the mean of the frames of a target most like it.

Frames are compared by middle layers of Whisper's encoder, less what these layers say of the place in the window of 30 s
rather than of the sound; that is learnt from the target's own windows. The mel spectra of the chosen frames are
averaged, and HiFi-GAN makes the samples. The published system compares by layer 6 of WavLM-Large, averages its vectors
(k = 4), and has a vocoder trained on them.

Conventions: samples are int16, mono, 16 kHz, shape (n,); frames of features 20 ms, D = 1536 numbers; spectra and
their frames as in `hifigan` (22,050 Hz, 256 samples a frame, natural logarithm).

Source: M. Baas, B. van Niekerk, H. Kamper, "Voice conversion with just nearest neighbors", Interspeech 2023, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats32, Samples
from speech.audio.files import resample

if TYPE_CHECKING:
    from speech.features.whisper_layers import WhisperLayers

Places = NDArray[np.intp]

RATE_HZ = 16_000
MODELS = ("whisper-base", "hifigan-universal")
LAYERS = (3, 4, 5)
FRAME_SAMPLES = 320
WINDOW_FRAMES = 1500
VOCODER_HZ, HOP_SAMPLES = 22_050, 256
# A window of 30 s has so many frames of the vocoder, the last of them filled up.
_WINDOW_SPECTRA = -(-WINDOW_FRAMES * FRAME_SAMPLES * VOCODER_HZ // (RATE_HZ * HOP_SAMPLES))
# Directions of the table of places that are weaker than this part of the strongest are rounding.
_SMALLEST_DIRECTION = 1e-3
_SMALLEST_LENGTH = np.float32(1e-9)
# A few numbers of the deeper layers are huge in some frames, whatever the sound: they are beyond so many times the
# usual spread, and are left out.
_LARGEST_SPREAD = 5.0
# Similarities of so many pairs are held at once, and so many frames of spectra.
_PAIRS = 1 << 22
_SPECTRA_AT_ONCE = 2048
# More candidates than are wanted: which are nearest is then decided without the rounding of a matrix product, which
# may differ with the number of threads.
_SPARE = 8


@dataclass(frozen=True, eq=False)
class Normalization:
    """What is taken off the layers before frames are compared.

    Attributes:
        means: what the layers say of each place in a window, shape (3, 1500, 512).
        kept: whether a number is compared, shape (3, 1, 512).
    """

    means: Floats32
    kept: NDArray[np.bool_]

    def apply(self, layers: Floats32) -> Floats32:
        """Return features of frames that begin a window, each of length 1, shape (frames, D).

        Args:
            layers: shape (3, frames, 512), at most 1500 frames.
        """
        values = (layers - self.means[:, : layers.shape[1]]) * self.kept
        lengths = np.linalg.norm(values, axis=2, keepdims=True) * np.sqrt(np.float32(len(LAYERS)))
        features: Floats32 = np.concatenate(list(values / np.maximum(lengths, _SMALLEST_LENGTH)), axis=1)
        return features


@dataclass(frozen=True, eq=False)
class FramePool:
    """The frames of a target.

    Attributes:
        features: length 1 each, shape (frames, D).
        spectra: of the same sound, window after window, shape (spectral frames, 80).
        normalization: for whatever is compared with them.
    """

    features: Floats32
    spectra: Floats32
    normalization: Normalization

    @property
    def n_numbers(self) -> int:
        """Of all of it, for who keeps several."""
        return self.features.size + self.spectra.size


# The pool ------------------------------------------------------------------------------------------


def make_pool(samples: Samples, encoder: WhisperLayers) -> FramePool:
    """Return the pool of a target's speech, its recordings one after the other.

    Args:
        samples: n ≥ 1; from two windows of 30 s on, the means of places are learnt from it, the better the more.
    """
    from speech.vocoders.hifigan import log_mel

    step = WINDOW_FRAMES * FRAME_SAMPLES
    pieces = [samples[start : start + step] for start in range(0, samples.size, step)]
    # Halves of a float are enough to keep what is only compared, and frames are many.
    layers = [encoder.encode([piece], RATE_HZ, LAYERS)[0].astype(np.float16) for piece in pieces]
    spectra = [log_mel(_at_vocoder_rate(piece)) for piece in pieces]
    normalization = measure_normalization(layers, find_directions(encoder.positions))
    features = np.empty((-(-samples.size // FRAME_SAMPLES), layers[0][:, 0].size), np.float32)
    for number, each in enumerate(layers):
        start = number * WINDOW_FRAMES
        features[start : start + WINDOW_FRAMES] = normalization.apply(each.astype(np.float32))
    return FramePool(features, np.concatenate(spectra), normalization)


def find_directions(positions: Floats32) -> Floats32:
    """Orthonormal courses over a window along which places differ in the network's table, shape (1500, directions).

    Args:
        positions: what is added to the frames before the first block, shape (1500, 512).
    """
    courses, strengths, _ = np.linalg.svd(positions - positions.mean(axis=0), full_matrices=False)
    found: Floats32 = courses[:, strengths > _SMALLEST_DIRECTION * strengths[0]]
    return found


def measure_normalization(windows: list[NDArray[np.float16]], directions: Floats32) -> Normalization:
    """Return the means of places, and which numbers are of use, as the windows of a target show them.

    The means vary over a window along few directions only. Each direction counts by the part of its energy that is
    more than chance leaves in so many windows (a positive-part James–Stein estimate): few windows teach little.

    Args:
        windows: shape (3, frames, 512) each; those of 1500 frames teach the places.
        directions: shape (1500, directions).
    """
    count = sum(each.shape[1] for each in windows)
    mean = sum(each.sum(axis=1, keepdims=True, dtype=np.float64) for each in windows) / count
    squares = sum(np.square(each - mean).sum(axis=1, keepdims=True) for each in windows)
    spread = np.sqrt(squares / count)
    kept = spread <= _LARGEST_SPREAD * np.median(spread, axis=2, keepdims=True)
    means = np.repeat(mean, len(directions), axis=1)
    whole = [each for each in windows if each.shape[1] == len(directions)]
    if len(whole) > 1:
        parts = np.stack([directions.T @ (each.astype(np.float32) * kept) for each in whole])
        course = parts.mean(axis=0)
        chance = parts.var(axis=0, ddof=1).sum(axis=2, keepdims=True) / len(whole)
        energy = np.square(course).sum(axis=2, keepdims=True)
        means += directions @ (np.clip(1 - chance / np.maximum(energy, _SMALLEST_LENGTH), 0, None) * course)
    return Normalization(means.astype(np.float32), kept)


# Conversion ----------------------------------------------------------------------------------------


def convert_spectrum(samples: Samples, pool: FramePool, encoder: WhisperLayers, k: int) -> Floats32:
    """Return the spectrum of the speech in the target's voice, shape (spectral frames, 80).

    Args:
        samples: n ≥ 1.
        k: how many frames are averaged, at most those of the pool.
    """
    from speech.features.whisper_layers import cut_evenly

    chosen = []
    for piece in cut_evenly(samples):
        features = pool.normalization.apply(encoder.encode([piece], RATE_HZ, LAYERS)[0])
        step = max(1, _PAIRS // len(pool.features))
        blocks = (features[start : start + step] for start in range(0, len(features), step))
        chosen += [nearest(block, pool.features, k) for block in blocks]
    wanted = -(-samples.size * VOCODER_HZ // (RATE_HZ * HOP_SAMPLES))
    return average_spectra(np.concatenate(chosen), pool.spectra, wanted)


def average_spectra(chosen: Places, spectra: Floats32, count: int) -> Floats32:
    """Return the mean spectrum of the chosen frames at each frame of the vocoder, shape (count, 80).

    A frame of the vocoder lies somewhere within a frame of 20 ms: it takes the spectra at the same place within the
    chosen frames, interpolated.

    Args:
        chosen: frames of the pool for each frame of the source, shape (frames, k).
        spectra: of the pool, window after window, shape (spectral frames, 80).
    """
    found = np.empty((count, spectra.shape[1]), np.float32)
    for start in range(0, count, _SPECTRA_AT_ONCE):
        numbers = np.arange(start, min(start + _SPECTRA_AT_ONCE, count))
        place = (numbers + 0.5) * (HOP_SAMPLES / VOCODER_HZ) * (RATE_HZ / FRAME_SAMPLES)  # in frames of 20 ms
        frames = np.minimum(place.astype(np.intp), len(chosen) - 1)
        window, within = np.divmod(chosen[frames], WINDOW_FRAMES)
        time = within + (place - frames)[:, None]
        at = window * _WINDOW_SPECTRA + time * (FRAME_SAMPLES * VOCODER_HZ / (RATE_HZ * HOP_SAMPLES)) - 0.5
        at = np.clip(at, 0, len(spectra) - 1)
        before = at.astype(np.intp)
        share = (at - before).astype(np.float32)[:, :, None]
        after = np.minimum(before + 1, len(spectra) - 1)
        found[numbers] = ((1 - share) * spectra[before] + share * spectra[after]).mean(axis=1)
    return found


def nearest(points: Floats32, candidates: Floats32, k: int) -> Places:
    """Return places of the `k` nearest candidates of each point by Euclidean distance, the nearest first; shape
    (points, k).

    Of vectors of length 1 these are the most similar by cosine. Of candidates equally near the first comes first.

    Args:
        points: shape (points, dimensions). candidates: shape (candidates, dimensions), `k` of them at least.
    """
    n_spared = min(k + _SPARE, len(candidates))
    halves = 0.5 * np.einsum("ij,ij->i", candidates, candidates)
    rough = halves - points @ candidates.T
    if n_spared < len(candidates):
        spared = np.argpartition(rough, n_spared - 1, axis=1)[:, :n_spared]
    else:
        spared = np.tile(np.arange(n_spared), (len(points), 1))
    spared.sort(axis=1)
    differences = candidates[spared].astype(np.float64) - points[:, None, :]
    distances = np.einsum("ijk,ijk->ij", differences, differences)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(spared, order, axis=1)


def _at_vocoder_rate(samples: Samples) -> Floats32:
    return resample(samples, RATE_HZ, VOCODER_HZ).astype(np.float32) / np.float32(32768)
