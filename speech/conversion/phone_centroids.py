"""Voice conversion by centroids of phones: each frame becomes the centroid of its phone, of a target, most like it.

The frames of a target are grouped by phone, and each group is reduced to a few centroids by k-means; a frame of the
source is replaced by the nearest centroid of the same phone. The fewer centroids, the fewer ways to say a phone are
left, and the less of how the source says it. A phone lasts as long as it does in the source, or as the target says it
on average, or something between.

The published system compares and replaces frames of WavLM (layer 6), and a network trained on one speaker predicts the
durations. Here frames are content as `content_decoder` makes it, and durations are the target's means.

Conventions: samples are int16, mono, 16 kHz; frames of content last 20 ms, shape (frames, dimensions); a phone is a
number from 1, 0 where none is heard.

Source: C. Franzreb, A. Das, T. Polzehl, S. Möller, "Private kNN-VC: Interpretable anonymization of converted speech",
Interspeech 2025.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats32, Samples
from speech.conversion.nearest_frames import LAYERS, RATE_HZ, nearest

if TYPE_CHECKING:
    from speech.conversion.content_decoder import Converter
    from speech.features.whisper_layers import WhisperLayers
    from speech.recognizers.phone_network import PhoneNetwork

Places = NDArray[np.intp]

_ROUNDS = 20  # of k-means


@dataclass(frozen=True, eq=False)
class PhonePool:
    """How a target says each phone.

    Attributes:
        centroids: by phone, shape (centroids, dimensions).
        durations: mean frames of a phone in a row, by phone.
    """

    centroids: Mapping[int, Floats32]
    durations: Mapping[int, float]

    def choose(self, content: Floats32, phones: Places) -> Floats32:
        """Return the nearest centroid of the same phone for each frame, shape (frames, dimensions).

        A phone that the target never says takes the nearest centroid of all.
        """
        chosen = np.empty_like(content)
        for phone in np.unique(phones).tolist():
            candidates = self.centroids.get(phone)
            if candidates is None:
                candidates = np.concatenate(list(self.centroids.values()))
            here = phones == phone
            chosen[here] = candidates[nearest(content[here], candidates, 1)[:, 0]]
        return chosen

    def place_frames(self, phones: Places, weight: float) -> Places:
        """Return the frame of the source that each frame of the output is made of, in rising order, shape (output
        frames,).

        A phone lasts `weight` times as long as the target says it on average, and (1 − `weight`) times as long as it
        does here, one frame at least; what is no phone keeps its length.

        Args:
            weight: from 0 to 1; 0 keeps all durations.
        """
        edges = np.flatnonzero(np.diff(phones, prepend=-1, append=-1))
        found = []
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            length = end - start
            mean = self.durations.get(int(phones[start]), length) if phones[start] else length
            wanted = max(1, round(weight * mean + (1 - weight) * length))
            found.append(start + (np.arange(wanted) * length) // wanted)
        return np.concatenate(found).astype(np.intp)


def read_speech(
    samples: Samples, encoder: WhisperLayers, converter: Converter, recognizer: PhoneNetwork
) -> tuple[Floats32, Places]:
    """Return content and phone of each frame, shapes (frames, dimensions) and (frames,).

    Args:
        samples: int16, 16 kHz, n ≥ 1; frames = n / 320, rounded up.
    """
    from speech.conversion.content_decoder import center_layers
    from speech.features.whisper_layers import cut_evenly

    content, phones = [], []
    for piece in cut_evenly(samples):
        *layers, heard = encoder.encode([piece], RATE_HZ, (*LAYERS, recognizer.recipe.layer))[0]
        content.append(converter.encode(center_layers(np.stack(layers))))
        phones.append(recognizer.label_frames(heard))
    return np.concatenate(content), np.concatenate(phones)


def make_pool(content: Floats32, phones: Places, n_centroids: int, seed: int = 0) -> PhonePool:
    """Return how a target says each phone, of its speech.

    Args:
        content, phones: of all of its frames, one at least.
        n_centroids: of each phone, as many as it has frames at most; 0 keeps all frames.
        seed: of the first centroids.
    """
    centroids = {phone: _reduce(content[phones == phone], n_centroids, seed) for phone in np.unique(phones).tolist()}
    edges = np.flatnonzero(np.diff(phones, prepend=-1, append=-1))
    firsts, lengths = phones[edges[:-1]], np.diff(edges)
    durations = {phone: float(lengths[firsts == phone].mean()) for phone in centroids}
    return PhonePool(centroids, durations)


def _reduce(frames: Floats32, n_centroids: int, seed: int) -> Floats32:
    if not 0 < n_centroids < len(frames):
        return frames
    from scipy.cluster.vq import kmeans2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty cluster keeps its centroid
        found, _ = kmeans2(frames.astype(np.float64), n_centroids, iter=_ROUNDS, minit="++", seed=seed)
    reduced: Floats32 = found.astype(np.float32)
    return reduced
