"""kNN-WORLD: each frame of speech becomes the mean of the nearest frames of a target speaker, on the WORLD vocoder.

A nearest-neighbour conversion as kNN-VC is (Baas, van Niekerk, Kamper: Voice conversion with just nearest neighbors,
Interspeech 2023), with WORLD's coded envelope in place of WavLM and its synthesis in place of HiFi-GAN: it needs no
training and no weights, and is not the published system. The energy contour stays the source's; F0 gets the target's
mean and spread. Conventions: samples are int16, mono, 16 kHz; frames of 5 ms as in `world.f0`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from anonymization.methods.audio_conversion import convert_audio
from anonymization.methods.contract import (
    Described,
    Item,
    MethodError,
    OptionValue,
    Target,
    TargetPool,
    require_pool,
    validate_samples,
)
from anonymization.methods.method_files import read_methods
from anonymization.methods.world.f0 import FRAME_MS, MIN_VOICED_FRAMES, RATE_HZ, Estimator, load_world, move_f0
from anonymization.methods.world.method import (
    FFT_SIZE,
    Level,
    join_pieces,
    mute_silence,
    pad_for_analysis,
    set_level,
)
from benchmarks.experiments.knn_world.frames import (
    KeptAnalyses,
    Singles,
    WorldFrames,
    analyse,
    convert_frames,
    join_frames,
)
from common.arrays import Floats, Samples
from speech.vocoders.world_library import missing_world

_TITLE = "kNN-WORLD"
# Pauses of a target teach nothing: frames so far below its loud ones are no part of its pool.
_PAUSE_DB = 50.0
_LOUD_PERCENTILE = 95.0
_FRAMES_A_SECOND = 1000 / FRAME_MS


@dataclass(frozen=True)
class KnnWorld(Described):
    """Each frame of speech becomes the mean of the frames of a target speaker that are nearest to it in shape, voiced
    among voiced; the energy contour stays, F0 gets the target's mean and spread, and the WORLD vocoder makes speech of
    it. What stays of the speaker is the timing, the melody's shape and the loudness.

    pool: the targets, None before `prepare`; the other attributes are those of `TargetedAnonymizer`.
    """

    pool: TargetPool | None = field(default=None, repr=False, kw_only=True)
    # What was analysed of targets, and of sources lately.
    _targets: dict[tuple[str, float, str], WorldFrames] = field(default_factory=dict, repr=False, compare=False)
    _sources: KeptAnalyses = field(default_factory=KeptAnalyses, repr=False, compare=False)

    @property
    def has_targets(self) -> bool:
        return self.pool is not None

    def prepare(self, pool: TargetPool) -> KnnWorld:
        return replace(self, pool=pool, _targets={}, _sources=KeptAnalyses())

    def missing(self) -> str:
        return missing_world(_TITLE)

    def _anonymize(self, item: Item, rate: int, options: dict[str, OptionValue], threads: int) -> Samples:
        """Frames, level and silence keep their place, so that the duration is the same."""
        samples = item.samples
        pool = require_pool(self.name, self.pool)
        if threads < 1:
            raise MethodError(f"At least one thread is needed; found threads={threads}.")
        validate_samples(_TITLE, samples, rate, low_hz=RATE_HZ, high_hz=RATE_HZ)
        target = pool.find(item.pseudo_speaker.target)
        if not samples.any():
            return np.zeros_like(samples)
        pool_s, estimator = cast("float", options["pool_s"]), cast("Estimator", options["f0"])
        frames = self._sources.analyse(pad_for_analysis(samples), estimator)
        theirs = self._analysed(target, pool_s, estimator)
        k, blend = round(cast("float", options["k"])), cast("float", options["blend"])
        output = convert(frames, theirs, k=k, blend=blend)[: samples.size]
        mute_silence(output, samples)
        return set_level(output, samples, cast("Level", options["level"]))

    def _analysed(self, target: Target, pool_s: float, estimator: Estimator) -> WorldFrames:
        """The target's frames; two threads at worst analyse the same, to the same result."""
        key = target.name, pool_s, estimator
        if key not in self._targets:
            self._targets[key] = analyse_target(target, pool_s, estimator)
        return self._targets[key]


def analyse_target(target: Target, pool_s: float, estimator: Estimator) -> WorldFrames:
    """The frames that a target lends: recordings in their order up to so many seconds, without pauses.

    Raises:
        MethodError: hardly any voiced speech in them, or a recording that cannot be read.
    """
    parts: list[WorldFrames] = []
    left = round(pool_s * _FRAMES_A_SECOND)
    for recording in target.recordings:
        try:
            converted = convert_audio(*recording())
        except (OSError, ValueError) as error:
            raise MethodError(f"A recording of the target {target.name} cannot be read: {error}") from error
        found = _spoken(analyse(pad_for_analysis(converted.samples), estimator))
        parts.append(found.keep(np.arange(found.f0.size) < left))
        left -= parts[-1].f0.size
        if left <= 0:
            break
    frames = join_frames(parts)
    n_voiced = int(np.count_nonzero(frames.voiced))
    if n_voiced < MIN_VOICED_FRAMES:
        raise MethodError(
            f"The target {target.name} needs {MIN_VOICED_FRAMES * FRAME_MS / 1000:g} s of voiced speech; found "
            f"{n_voiced * FRAME_MS / 1000:g} s in {len(parts)} recording{'' if len(parts) == 1 else 's'}. "
            "Give it a longer one, or leave it out."
        )
    return frames


def _spoken(frames: WorldFrames) -> WorldFrames:
    """Without pauses."""
    limit = float(np.percentile(frames.energy_db, _LOUD_PERCENTILE)) - _PAUSE_DB
    return frames.keep(frames.voiced | (frames.energy_db > limit))


def convert(source: WorldFrames, target: WorldFrames, *, k: int, blend: float) -> Singles:
    """Sound of the source in the target's voice at a level of its own, shape (80 · frames,)."""
    envelope, aperiodicity = convert_frames(source, target, k, blend)
    statistics = target.f0_statistics
    moved = move_f0(source.f0, statistics.mean_hz, statistics.spread_semitones)

    def synthesize(begin: int, end: int) -> Floats:
        """The frames in between with the energies of the source."""
        world = load_world()
        spectra = world.decode_spectral_envelope(envelope[begin:end].astype(np.float64), RATE_HZ, FFT_SIZE)
        energy = 10 ** (source.energy_db[begin:end].astype(np.float64) / 10)
        spectra *= (energy / spectra.mean(axis=1))[:, None]
        noise = world.decode_aperiodicity(aperiodicity[begin:end].astype(np.float64), RATE_HZ, FFT_SIZE)
        sound: Floats = world.synthesize(np.ascontiguousarray(moved[begin:end]), spectra, noise, RATE_HZ, FRAME_MS)
        return sound

    return join_pieces(source.voiced, synthesize)


METHODS = tuple(KnnWorld(**about) for about in read_methods(__file__))
