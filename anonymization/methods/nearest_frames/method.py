"""kNN-VC lite: each frame of speech becomes the mean of the frames of a target speaker that sound most like it.

A nearest-neighbour conversion as kNN-VC is (Baas, van Niekerk, Kamper: Voice conversion with just nearest neighbors,
Interspeech 2023), by Whisper base in place of WavLM and the universal HiFi-GAN in place of one of its own: nothing is
trained, and it is not the published system. Timing and loudness stay the source's; F0 is that of the chosen frames.
Conventions: samples are int16, mono, 16 kHz.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from anonymization.methods.audio_conversion import convert_audio
from anonymization.methods.contract import (
    Described,
    Item,
    MethodError,
    OptionValue,
    Samples,
    Target,
    TargetPool,
    read_methods,
    require_pool,
    validate_samples,
)
from anonymization.methods.spectra import layers_encoder, missing, speak
from anonymization.methods.world.method import Level
from common.errors import MetricInputError
from speech.conversion.nearest_frames import MODELS, RATE_HZ, FramePool, convert_spectrum, make_pool
from speech.model_files.devices import use_torch_threads

_TITLE = "kNN-VC lite"
# Less speech of a target holds hardly any of the sounds.
_SHORTEST_S = 1.0
# Frames of targets that are kept, 50 minutes of them: nearly a gigabyte.
_MOST_KEPT_FRAMES = 150_000


@dataclass(frozen=True)
class NearestFrames(Described):
    """Each frame of speech becomes the mean of the frames of a target speaker that sound most like it by Whisper's
    encoder, and HiFi-GAN makes speech of it. What stays of the speaker is the timing and the loudness.

    pool: the targets, None before `prepare`; the other attributes are those of `TargetedAnonymizer`.
    """

    pool: TargetPool | None = field(default=None, repr=False, kw_only=True)
    _kept: dict[tuple[str, float], FramePool] = field(default_factory=dict, repr=False, compare=False)

    @property
    def has_targets(self) -> bool:
        return self.pool is not None

    def prepare(self, pool: TargetPool) -> NearestFrames:
        return replace(self, pool=pool, _kept={})

    def missing(self) -> str:
        return missing(_TITLE, *MODELS)

    def _anonymize(self, item: Item, rate: int, options: dict[str, OptionValue], threads: int) -> Samples:
        """Digital silence keeps its place, and the duration is the same."""
        samples = item.samples
        pool = require_pool(self.name, self.pool)
        if threads < 1:
            raise MethodError(f"At least one thread is needed; found threads={threads}.")
        validate_samples(_TITLE, samples, rate, low_hz=RATE_HZ, high_hz=RATE_HZ)
        target = pool.find(item.pseudo_speaker.target)
        if not samples.any():
            return np.zeros_like(samples)
        try:
            # One thread, so that a process may fork afterwards, and no rounding depends on how many there are.
            with use_torch_threads(1):
                frames = self._frames(target, cast("float", options["pool_s"]))
                spectrum = convert_spectrum(samples, frames, layers_encoder(), round(cast("float", options["k"])))
                return speak(spectrum, samples, cast("Level", options["level"]))
        except MetricInputError as error:
            raise MethodError(str(error)) from error

    def _frames(self, target: Target, pool_s: float) -> FramePool:
        """The target's frames; two threads at worst make the same twice, to the same result."""
        key = target.name, pool_s
        found = self._kept.get(key)
        if found is None:
            found = make_pool(join_recordings(target, pool_s), layers_encoder())
            for oldest in list(self._kept):
                if sum(len(each.features) for each in [found, *self._kept.values()]) <= _MOST_KEPT_FRAMES:
                    break
                self._kept.pop(oldest, None)
            self._kept[key] = found
        return found


def join_recordings(target: Target, pool_s: float) -> Samples:
    """What a target lends: recordings in their order, one after the other, up to so many seconds.

    Raises:
        MethodError: hardly any speech, or a recording that cannot be read.
    """
    parts: list[Samples] = []
    left = round(pool_s * RATE_HZ)
    for recording in _readable(target):
        parts.append(recording[:left])
        left -= parts[-1].size
        if left <= 0:
            break
    joined = np.concatenate(parts)
    if joined.size < _SHORTEST_S * RATE_HZ:
        raise MethodError(
            f"The target {target.name} needs {_SHORTEST_S:g} s of speech; found {joined.size / RATE_HZ:.2g} s in "
            f"{len(parts)} recording{'' if len(parts) == 1 else 's'}. Give it a longer one, or leave it out."
        )
    return joined


def _readable(target: Target) -> Iterator[Samples]:
    for recording in target.recordings:
        try:
            yield convert_audio(*recording()).samples
        except (OSError, ValueError) as error:
            raise MethodError(f"A recording of the target {target.name} cannot be read: {error}") from error


METHODS = tuple(NearestFrames(**about) for about in read_methods(__file__))
