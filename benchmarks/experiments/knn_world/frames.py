"""Speech as kNN-WORLD sees it, and the frames of a target in place of those of a source.

Every 5 ms: coded spectral envelope, aperiodicity, F0 and energy, and their statistics over a recording. Matching takes
the nearest frames of the target, averaged, as kNN-VC does it in the space of a self-supervised model (Baas, van
Niekerk, Kamper: Voice conversion with just nearest neighbors, Interspeech 2023), here in that of WORLD's envelope.

Conventions: samples are int16, mono, 16 kHz; frames as in `world.f0`; the envelope is coded as WORLD codes it, by 40
coefficients of the log spectrum on a mel axis, the first of which is its mean; energies in dB of the envelope's power,
relative. Long recordings are analysed in pieces, so that memory beside the result stays that of one piece.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from anonymization.methods.world.f0 import RATE_HZ, Estimator, F0Statistics, load_world, measure_f0, n_frames, track_f0
from anonymization.methods.world.method import analyse_frames, cut_at_pauses
from common.arrays import Floats, Samples
from speech.conversion.nearest_frames import nearest

Singles = npt.NDArray[np.float32]

N_COEFFICIENTS = 40
# Frames so far below the loud ones say more about the room than about the voice.
_LOUDER_DB = 30.0
_LOUD_PERCENTILE = 95.0
_SILENT_DB = -200.0
# A coefficient that hardly moves, as in a constant or in noise of one step, is not blown up.
_LEAST_SPREAD = 1e-3
# Matching space: coefficients 1 to 20, and their slopes over 20 ms, which count for less.
_MATCHED = slice(1, 21)
_DELTA_FRAMES = 2
_DELTA_WEIGHT = 0.7
# So many frames of analysed sources are kept, for the same utterance in several voices: five minutes.
_MOST_KEPT_FRAMES = 60_000
# Distances of so many pairs are held at once.
_PAIRS = 1 << 21
# The weights of the three taps that smooth over time.
_SIDE, _CENTRE = 0.25, 0.5


@dataclass(frozen=True, eq=False)
class WorldFrames:
    """An analysed recording, or several of a speaker one after the other.

    Attributes:
        f0: hertz, shape (frames,), 0 where unvoiced.
        envelope: coded, shape (frames, 40).
        aperiodicity: coded, dB, shape (frames, bands).
        energy_db: shape (frames,).
    """

    f0: Floats
    envelope: Singles
    aperiodicity: Singles
    energy_db: Singles

    @property
    def voiced(self) -> npt.NDArray[np.bool_]:
        return self.f0 > 0

    @cached_property
    def louder(self) -> npt.NDArray[np.bool_]:
        """Frames within 30 dB of the loud ones (the 95th percentile); all where nothing is louder than silence."""
        limit = float(np.percentile(self.energy_db, _LOUD_PERCENTILE)) - _LOUDER_DB
        loud: npt.NDArray[np.bool_] = self.energy_db >= max(limit, _SILENT_DB + 1)
        return loud if loud.any() else np.ones_like(loud)

    @cached_property
    def mean(self) -> Singles:
        """Of the envelope over the louder frames, shape (40,)."""
        mean: Singles = self.envelope[self.louder].mean(axis=0, dtype=np.float64).astype(np.float32)
        return mean

    @cached_property
    def spread(self) -> Singles:
        """Standard deviation of the envelope over the louder frames, shape (40,), above zero."""
        return _spread(self.envelope[self.louder])

    @cached_property
    def f0_statistics(self) -> F0Statistics:
        return measure_f0(self.f0)

    @cached_property
    def features(self) -> Singles:
        """Places in matching space, shape (frames, 40): what differs between sounds, not between speakers.

        Coefficients 1 to 20 less their mean over their spread, then 0.7 times their slopes over their own spread.
        """
        shape = (self.envelope[:, _MATCHED] - self.mean[_MATCHED]) / self.spread[_MATCHED]
        padded = np.pad(shape, ((_DELTA_FRAMES, _DELTA_FRAMES), (0, 0)), mode="edge")
        slopes = padded[2 * _DELTA_FRAMES :] - padded[: -2 * _DELTA_FRAMES]
        slopes /= _spread(slopes[self.louder])
        features: Singles = np.concatenate([shape, np.float32(_DELTA_WEIGHT) * slopes], axis=1)
        return features

    def keep(self, chosen: npt.NDArray[np.bool_]) -> WorldFrames:
        """Some of the frames, shape (frames,)."""
        return WorldFrames(self.f0[chosen], self.envelope[chosen], self.aperiodicity[chosen], self.energy_db[chosen])


def _spread(values: Singles) -> Singles:
    spread: Singles = values.std(axis=0, dtype=np.float64).astype(np.float32)
    return np.maximum(spread, np.float32(_LEAST_SPREAD))


def join_frames(parts: list[WorldFrames]) -> WorldFrames:
    """Recordings of one speaker one after the other."""
    columns = ("f0", "envelope", "aperiodicity", "energy_db")
    return WorldFrames(*(np.concatenate([getattr(part, column) for part in parts]) for column in columns))


def analyse(samples: Samples, estimator: Estimator) -> WorldFrames:
    """All frames of a recording.

    Args:
        samples: int16, shape (n,), 16 kHz, at least 0.1 s (`pad_for_analysis`).
        estimator: of F0, as `track_f0` has it.

    Raises:
        MethodError: pyworld is absent.
    """
    contour = track_f0(samples, estimator)
    frames = n_frames(samples.size)
    envelope = np.empty((frames, N_COEFFICIENTS), np.float32)
    aperiodicity = np.empty((frames, load_world().get_num_aperiodicities(RATE_HZ)), np.float32)
    energy_db = np.empty(frames, np.float32)
    for first, last in cut_at_pauses(contour > 0):
        place = slice(first, last)
        envelope[place], aperiodicity[place], energy_db[place] = _analyse_piece(samples, contour, first, last)
    return WorldFrames(contour, envelope, aperiodicity, energy_db)


def _analyse_piece(samples: Samples, contour: Floats, first: int, last: int) -> tuple[Floats, Floats, Floats]:
    """Envelope, aperiodicity and energy of the frames from first to last."""
    world = load_world()
    spectra, noise = analyse_frames(samples, np.ascontiguousarray(contour[first:last]), first)
    energy = 10 * np.log10(np.maximum(spectra.mean(axis=1), 10 ** (_SILENT_DB / 10)))
    coded = world.code_spectral_envelope(spectra, RATE_HZ, N_COEFFICIENTS)
    return coded, world.code_aperiodicity(noise, RATE_HZ), energy


class KeptAnalyses:
    """The newest analyses by content, as one utterance often gets several voices; what it keeps changes no output."""

    def __init__(self, most_frames: int = _MOST_KEPT_FRAMES) -> None:
        self._most_frames = most_frames
        self._kept: OrderedDict[tuple[str, str], WorldFrames] = OrderedDict()

    def analyse(self, samples: Samples, estimator: Estimator) -> WorldFrames:
        """As `analyse`, which is left out where the same samples were analysed before."""
        key = hashlib.sha256(np.ascontiguousarray(samples).data).hexdigest(), estimator
        made = self._kept.get(key)
        if made is None:
            # Without a lock, which a forked worker could inherit held: two threads at worst analyse the same.
            made = self._kept[key] = analyse(samples, estimator)
            for oldest in list(self._kept):
                if sum(each.f0.size for each in list(self._kept.values())) <= self._most_frames:
                    break
                self._kept.pop(oldest, None)
        return made


def convert_frames(source: WorldFrames, target: WorldFrames, k: int, blend: float) -> tuple[Singles, Singles]:
    """Envelope, shape (frames, 40), and aperiodicity, shape (frames, bands), of the source in the target's voice.

    Each frame becomes the mean of its `k` nearest of the target, voiced among voiced; envelopes are then smoothed over
    three frames. A part `blend` of the envelope is the source's own with the target's mean and spread instead.
    """
    envelope = np.empty_like(source.envelope)
    aperiodicity = np.empty_like(source.aperiodicity)
    for kind in (True, False):
        own, candidates = np.flatnonzero(source.voiced == kind), np.flatnonzero(target.voiced == kind)
        if candidates.size < k:
            candidates = np.arange(target.f0.size)
        per_block = max(1, _PAIRS // candidates.size)
        for start in range(0, own.size, per_block):
            frames = own[start : start + per_block]
            chosen = candidates[nearest(source.features[frames], target.features[candidates], k)]
            envelope[frames] = target.envelope[chosen].mean(axis=1)
            aperiodicity[frames] = target.aperiodicity[chosen].mean(axis=1)
    if blend:
        moved = (source.envelope - source.mean) / source.spread * target.spread + target.mean
        envelope += np.float32(blend) * (moved - envelope)
    return smooth(envelope), aperiodicity


def smooth(frames: Singles) -> Singles:
    """Over time by weights of a quarter, a half and a quarter; the ends keep their own on the open side."""
    padded = np.pad(frames, ((1, 1), (0, 0)), mode="edge")
    smoothed: Singles = np.float32(_CENTRE) * frames + np.float32(_SIDE) * (padded[:-2] + padded[2:])
    return smoothed
