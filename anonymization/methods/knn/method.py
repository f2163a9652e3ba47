"""kNN-WORLD: each frame of speech becomes the mean of the nearest frames of a target speaker, on the WORLD vocoder.

A nearest-neighbour conversion as kNN-VC is (Baas, van Niekerk, Kamper: Voice conversion with just nearest neighbors,
Interspeech 2023), with WORLD's coded envelope in place of WavLM and its synthesis in place of HiFi-GAN: it needs no
training and no weights, and is not the published system. The energy contour stays the source's; F0 gets the target's
mean and spread. Conventions: samples are int16, mono, 16 kHz; frames of 5 ms as in `world_f0`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast, get_args

import numpy as np

from anonymization.methods.conforming import conform
from anonymization.methods.contract import (
    Item,
    Option,
    Options,
    Parameter,
    PseudoSpeaker,
    Samples,
    complete_options,
    validate_samples,
    validate_voice,
)
from anonymization.methods.errors import MethodError
from anonymization.methods.knn_world_frames import (
    FFT_SIZE,
    KeptAnalyses,
    Singles,
    WorldFrames,
    analyse,
    joined,
    padded_for_analysis,
)
from anonymization.methods.knn_world_matching import convert_frames
from anonymization.methods.target_pool import Target, TargetPool
from anonymization.methods.world_f0 import (
    FRAME_MS,
    FRAME_SAMPLES,
    MIN_VOICED_FRAMES,
    RATE_HZ,
    Estimator,
    Floats,
    move_f0,
)
from anonymization.methods.world_library import load_world, missing_world
from anonymization.methods.world_voice import Level, cut_at_pauses, mute_silence, set_level

_TITLE = "kNN-WORLD"
# Frames around a piece that are made too, so that a pulse before its edge rings into it.
_PAD_FRAMES = 8
_FADE_SAMPLES = 160
# Pauses of a target teach nothing: frames so far below its loud ones are no part of its pool.
_PAUSE_DB = 50.0
_LOUD_PERCENTILE = 95.0
_FRAMES_A_SECOND = 1000 / FRAME_MS

_OPTIONS = (
    Option(
        name="k", default=4.0, low=1.0, high=32.0,
        meaning="of how many frames of the target the mean is taken: more sounds smoother and duller",
    ),
    Option(
        name="pool_s", default=15.0, low=2.0, high=600.0, unit="s",
        meaning="how much speech of each target is used at most, pauses left out: more is clearer, and slower",
    ),
    Option(
        name="blend", default=0.0, low=0.0, high=1.0,
        meaning=(
            "how much of the speaker's own spectral envelope, moved to the target's mean and spread, is mixed in: "
            "more is clearer, and hides less"
        ),
    ),
    Option(
        name="f0", default="autocorrelation", choices=get_args(Estimator),
        meaning="how F0 is found, as for world-formant-f0",
    ),
    Option(
        name="level", default="kept", choices=get_args(Level),
        meaning="kept: the loudness (RMS) of the original; peak: the largest sample at full scale",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class KnnWorld:
    """Each frame of speech becomes the mean of the frames of a target speaker that are nearest to it in shape, voiced
    among voiced; the energy contour stays, F0 gets the target's mean and spread, and the WORLD vocoder makes speech of
    it. What stays of the speaker is the timing, the melody's shape and the loudness.

    pool: the targets, None before `prepare`; the other attributes are those of `TargetedAnonymizer`.
    """

    pool: TargetPool | None = field(default=None, repr=False)
    name: str = "knn-world"
    title: str = "kNN-WORLD (nearest frames of a target speaker)"
    version: str = "1"
    reference: str = (
        "Own design after M. Baas, B. van Niekerk, H. Kamper: Voice conversion with just nearest neighbors. "
        "Interspeech 2023; on WORLD: M. Morise, F. Yokomori, K. Ozawa, IEICE Transactions E99-D (7), 2016"
    )
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Option, ...] = _OPTIONS
    is_deterministic: bool = True
    needs_gpu: bool = False
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

    def anonymize(
        self,
        samples: Samples,
        rate: int,
        pseudo_speaker: PseudoSpeaker,
        *,
        options: Options | None = None,
        threads: int = 1,
    ) -> Samples:
        """As the protocol has it; frames, level and silence keep their place, so that the duration is the same."""
        if missing := self.missing():
            raise MethodError(missing)
        if self.pool is None:
            raise MethodError(
                f"{self.name} gives the voices of target speakers; found none. Name a folder of their recordings "
                "(--targets), or a data set."
            )
        if threads < 1:
            raise MethodError(f"At least one thread is needed; found threads={threads}.")
        settled = complete_options(self, options)
        validate_samples(_TITLE, samples, rate, low_hz=RATE_HZ, high_hz=RATE_HZ)
        validate_voice(self, pseudo_speaker)
        target = self.pool.find(pseudo_speaker.target)
        if not samples.any():
            return np.zeros_like(samples)
        pool_s, estimator = cast("float", settled["pool_s"]), cast("Estimator", settled["f0"])
        frames = self._sources.analyse(padded_for_analysis(samples), estimator)
        theirs = self._analysed(target, pool_s, estimator)
        k, blend = round(cast("float", settled["k"])), cast("float", settled["blend"])
        output = convert(frames, theirs, k=k, blend=blend)[: samples.size]
        mute_silence(output, samples)
        return set_level(output, samples, cast("Level", settled["level"]))

    def anonymize_batch(
        self, items: Sequence[Item], rate: int, *, options: Options | None = None, threads: int = 1
    ) -> list[Samples]:
        return [
            self.anonymize(item.samples, rate, item.pseudo_speaker, options=options, threads=threads) for item in items
        ]

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
            conformed = conform(*recording())
        except (OSError, ValueError) as error:
            raise MethodError(f"A recording of the target {target.name} cannot be read: {error}") from error
        found = _spoken(analyse(padded_for_analysis(conformed.samples), estimator))
        parts.append(found.keep(np.arange(found.f0.size) < left))
        left -= parts[-1].f0.size
        if left <= 0:
            break
    frames = joined(parts)
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
    output = np.zeros(source.f0.size * FRAME_SAMPLES, np.float32)
    for first, last in cut_at_pauses(source.voiced):
        _add_piece(output, source, moved, envelope, aperiodicity, first, last)
    return output


def _add_piece(
    output: Singles, source: WorldFrames, moved: Floats, envelope: Singles, aperiodicity: Singles, first: int, last: int
) -> None:
    """Synthesise the frames from first to last with the energies of the source, and fade them into the output."""
    world = load_world()
    n_frames = source.f0.size
    begin, end = max(0, first - _PAD_FRAMES), min(n_frames, last + _PAD_FRAMES)
    spectra = world.decode_spectral_envelope(envelope[begin:end].astype(np.float64), RATE_HZ, FFT_SIZE)
    energy = 10 ** (source.energy_db[begin:end].astype(np.float64) / 10)
    spectra *= (energy / spectra.mean(axis=1))[:, None]
    noise = world.decode_aperiodicity(aperiodicity[begin:end].astype(np.float64), RATE_HZ, FFT_SIZE)
    sound = world.synthesize(np.ascontiguousarray(moved[begin:end]), spectra, noise, RATE_HZ, FRAME_MS)
    low, high = begin * FRAME_SAMPLES, end * FRAME_SAMPLES
    # Noise of two pieces is independent: it keeps its power where the squares of the weights add up to one.
    fade = np.sin(math.pi / 2 * (np.arange(2 * _FADE_SAMPLES) + 0.5) / (2 * _FADE_SAMPLES))
    if first > 0:
        low = first * FRAME_SAMPLES - _FADE_SAMPLES
    if last < n_frames:
        high = last * FRAME_SAMPLES + _FADE_SAMPLES
    sound = sound[low - begin * FRAME_SAMPLES : high - begin * FRAME_SAMPLES]
    if first > 0:
        sound[: fade.size] *= fade
    if last < n_frames:
        sound[-fade.size :] *= fade[::-1]
    output[low:high] += sound


METHODS: tuple[KnnWorld, ...] = (KnnWorld(),)
