"""Content, F0 and a speaker vector through one network: speech by residual codes, or in the voice of a pool.

`asr-bn` describes what is said by codes and gives the voice of one speaker of the pool (after baselines B5 and B6 of
the VoicePrivacy 2024 challenge); `b1-lite` takes the bottleneck as it is and gives the mean of speakers who are far
from the own voice (after baseline B1 of 2020 and 2022). `b1a` does so with a source-filter vocoder and `b1b` with one
network to samples, as B1.a and B1.b of 2022 have them; `joint-hifigan` has a decoder and a vocoder that learnt as one
network; `ssl-content` has soft units in place of the bottleneck. The networks and the pool are trained by `python -m
anonymization train`. Timing stays; F0 keeps its course and takes mean and spread of the voice, but that of `t40` (after
system T40 of 2022) is estimated from codes and voice by the network of `f0-regressor`. `t18-noise` moves the own
vector, and `t18-asr` expects one from features of a recogniser, by the map of `recognizer-map` (parts (i) and (ii) of
system T18 of 2022). Conventions: samples are int16, mono, 16 kHz.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
import numpy.typing as npt

from anonymization.methods.audio_conversion import convert_audio
from anonymization.methods.content_decoder import network_files as files
from anonymization.methods.content_decoder.contours import find_contour, limit_contour, move_contour
from anonymization.methods.content_decoder.network_files import SHIPPED, Networks, Speaker, SpeakerPool, read_pool
from anonymization.methods.content_decoder.noise import add_noise
from anonymization.methods.content_decoder.reflections import fit_reflections
from anonymization.methods.contract import (
    OptionValue,
    PseudoSpeaker,
    Recording,
    TargetPool,
    VoiceRequest,
    complete_options,
)
from anonymization.methods.method_files import read_methods
from anonymization.methods.spectra import (
    RATE_HZ,
    SpectrumMethod,
    fit_to_original,
    layers_encoder,
    missing,
    vocoder,
)
from anonymization.methods.voices.gender import guess_gender
from anonymization.methods.voices.vectors import read_vector, write_vector
from anonymization.methods.world.method import Level, join_pieces
from common.arrays import Floats, Floats32, Samples
from common.packages import missing_packages
from speech.conversion import recognizer_map
from speech.conversion.nearest_frames import VOCODER_HZ
from speech.encoders import registry as encoders
from speech.model_files.devices import use_one_thread_for_products, use_torch_threads
from speech.vocoders.world_library import missing_world
from speech.vocoders.world_parameters import STEP_MS, contour_at_steps, synthesize

if TYPE_CHECKING:
    from speech.conversion.content_decoder import Converter
    from speech.encoders.contract import SpeakerEncoder

_MODELS = ("whisper-base", "hifigan-universal")
_SPEAKER_ENCODER = "ge2e"
# So much of a speaker is enough for their vector.
_HEARD_S = 60.0
# A vector goes so many times as far from the mean voice where the network would make it too much alike.
_FARTHER = np.float32(2)
# So many speakers of the pool tell the F0 of a vector.
_NEAREST = 5


@dataclass(frozen=True)
class ContentMethod(SpectrumMethod[Speaker], ABC):
    """What is said is taken from the middle of a recogniser, and spoken anew in the voice of other speakers by a
    network and a vocoder. Timing, pauses and the course of the melody stay.
    """

    # networks: its files; trained_by: the recipes of `anonymization.network_training` whose files it reads.
    # _stages: how many codes describe a frame where no option says it; 0 takes the bottleneck as it is.
    # _rate_hz: samples per second of what is synthesised.
    networks: Networks = field(default=SHIPPED, repr=False, kw_only=True)
    trained_by: ClassVar[tuple[str, ...]] = ("content-decoder",)
    _stages: ClassVar[int] = 0
    _rate_hz: ClassVar[int] = VOCODER_HZ

    @property
    def retrained(self) -> dict[str, str]:
        """Of its files that do not ship the SHA-256, for the record of a run."""
        files = ((each.name, getattr(self.networks, each.name)) for each in fields(self.networks))
        return {name: file.sha256 for name, file in files if not file.is_shipped}

    def plan_voices(
        self,
        requests: Sequence[VoiceRequest],
        pool: TargetPool | None = None,  # noqa: ARG002 - of the protocol; the pool is the method's own
    ) -> list[PseudoSpeaker]:
        """Return each voice by its key and, where the distance counts, by the vector of the speaker's recordings."""
        with use_one_thread_for_products():
            return [self._plan(request) for request in requests]

    @abstractmethod
    def _plan(self, request: VoiceRequest) -> PseudoSpeaker:
        """Return the voice of one request."""

    def _convert(self, samples: Samples, voice: Speaker, options: dict[str, OptionValue]) -> Samples:
        from speech.conversion.content_decoder import content_layers

        layers = content_layers(samples, layers_encoder())
        hz = self._find_f0(samples, layers, voice, options)
        stages = round(float(cast("float", options.get("stages", self._stages))))
        sound = self._synthesize(layers, hz, voice[0], stages)
        return fit_to_original(sound, samples, cast("Level", options["level"]), self._rate_hz)

    def _pool(self) -> SpeakerPool:
        return read_pool(self.networks.voices)

    def _converter(self) -> Converter:
        return files.load_converter(self.networks.decoder)

    def _synthesize(self, layers: Floats32, hz: Floats, speaker: Floats32, stages: int) -> Floats32:
        """Return samples of the frames of F0, 11.6 ms each."""
        [sound] = vocoder().synthesize([self._converter().convert(layers, hz, speaker, stages)])
        return sound

    def _find_f0(
        self,
        samples: Samples,
        layers: Floats32,  # noqa: ARG002 - of others
        speaker: Speaker,
        options: dict[str, OptionValue],
    ) -> Floats:
        """Return F0 of the output at the frames of its spectrum, 0 where unvoiced; that of the original, moved."""
        return move_contour(find_contour(samples, str(options["f0"])), *speaker[1:])


@dataclass(frozen=True)
class PooledVoices(ContentMethod):
    __doc__ = ContentMethod.__doc__

    # farthest: speakers are drawn of so large a part of the pool, those farthest from the own voice (1: of all, and the
    # own voice is not looked at); n_mixed: how many make a voice; same_gender: whether they are of the own gender.
    farthest: float = field(kw_only=True)
    n_mixed: int = field(kw_only=True)
    same_gender: bool = field(kw_only=True)
    _models: ClassVar[tuple[str, ...]] = _MODELS

    def missing(self) -> str:
        models = (*self._models, _SPEAKER_ENCODER) if self.farthest < 1 else self._models
        return missing_packages(self.title, "safetensors") or missing(self.title, *models)

    def _plan(self, request: VoiceRequest) -> PseudoSpeaker:
        pool, draw = self._pool(), _draw(request.key, "pool")
        rows = _rows_of_gender(pool, request) if self.same_gender else np.arange(len(pool.names))
        if self.farthest < 1 and (vector := _own_vector(request.recordings)) is not None:
            nearness = pool.vectors[rows] @ vector
            kept = max(self.n_mixed, round(self.farthest * len(rows)))
            rows = rows[np.argsort(nearness, kind="stable")[:kept]]
        chosen = draw.choice(rows, min(self.n_mixed, len(rows)), replace=False)
        share = round(1 / len(chosen), 4)
        return PseudoSpeaker(request.key, {}, mixture={pool.names[row]: share for row in sorted(chosen)})

    def _read_voice(self, voice: PseudoSpeaker) -> Speaker:
        return self._pool().voice(voice.mixture)


@dataclass(frozen=True)
class JointVoices(PooledVoices):
    """What is said is taken from the middle of a recogniser, and spoken anew in the voice of other speakers by one
    network that makes samples of content, F0 and voice. Timing, pauses and the course of the melody stay.
    """

    trained_by: ClassVar[tuple[str, ...]] = ("content-decoder", "joint-nsf-hifigan")
    _models: ClassVar[tuple[str, ...]] = ("whisper-base",)

    def _synthesize(self, layers: Floats32, hz: Floats, speaker: Floats32, stages: int) -> Floats32:
        content = self._converter().find_content(layers, hz.size, stages)
        return files.load_generator(self.networks.generator).synthesize(content, hz, speaker)


@dataclass(frozen=True)
class JointHifiGanVoices(PooledVoices):
    """What is said is taken from the middle of a recogniser, and spoken anew in the voice of other speakers by a
    network and a vocoder that learnt together from samples. Timing, pauses and the course of the melody stay.
    """

    trained_by: ClassVar[tuple[str, ...]] = ("content-decoder", "joint-hifigan")

    def _synthesize(self, layers: Floats32, hz: Floats, speaker: Floats32, stages: int) -> Floats32:
        converter, gan = files.load_hifigan(self.networks.decoder, self.networks.joint_hifigan)
        [sound] = gan.synthesize([converter.convert(layers, hz, speaker, stages)])
        return sound


@dataclass(frozen=True)
class FilteredSource(PooledVoices):
    """What is said is taken from the middle of a recogniser, and spoken anew in the voice of other speakers by a
    network and a vocoder that filters harmonics of F0 and noise. Timing, pauses and the course of the melody stay.
    """

    trained_by: ClassVar[tuple[str, ...]] = ("content-decoder", "hn-sinc-nsf")
    _models: ClassVar[tuple[str, ...]] = ("whisper-base",)

    def _synthesize(self, layers: Floats32, hz: Floats, speaker: Floats32, stages: int) -> Floats32:
        spectrum = self._converter().convert(layers, hz, speaker, stages)
        return files.load_source_filter(self.networks.source_filter).synthesize(spectrum, hz, speaker)


@dataclass(frozen=True)
class WorldVoices(PooledVoices):
    """What is said is taken from the middle of a recogniser, and spoken anew in the voice of other speakers by a
    network and the vocoder WORLD, which no network follows. Timing, pauses and the course of the melody stay.
    """

    trained_by: ClassVar[tuple[str, ...]] = ("content-decoder", "world-decoder")
    _models: ClassVar[tuple[str, ...]] = ("whisper-base",)
    _rate_hz: ClassVar[int] = RATE_HZ

    def missing(self) -> str:
        return super().missing() or missing_world(self.title)

    def _read_voice(self, voice: PseudoSpeaker) -> Speaker:
        """Return the mixture, with its vector farther from the mean of the gender: the network makes voices that are
        too much alike."""
        vector, *f0 = super()._read_voice(voice)
        mean = self._pool().mean_like(vector)
        moved = mean + _FARTHER * (vector - mean)
        return moved / np.linalg.norm(moved), *f0

    def _synthesize(self, layers: Floats32, hz: Floats, speaker: Floats32, stages: int) -> Floats32:
        from speech.conversion.content_decoder import FRAME_S

        content = self._converter().find_content(layers, hz.size, stages)
        parameters = files.load_world_decoder(self.networks.world_decoder).speak(content, hz, speaker)
        contour = contour_at_steps(hz, FRAME_S, math.ceil(hz.size * FRAME_S * 1000 / STEP_MS))
        return join_pieces(contour > 0, lambda begin, end: synthesize(parameters, FRAME_S, contour[begin:end], begin))


@dataclass(frozen=True)
class SoftUnits(PooledVoices):
    """What is said is taken from the middle of a recogniser as soft units, a guess of what each frame is called, and
    spoken anew in the voice of other speakers by a network and a vocoder. Timing, pauses and the course of the melody
    stay.
    """

    trained_by: ClassVar[tuple[str, ...]] = ("soft-units-decoder",)

    def _converter(self) -> Converter:
        return files.load_converter(self.networks.soft_units_decoder)


@dataclass(frozen=True)
class EstimatedF0(PooledVoices):
    """What is said is taken from the middle of a recogniser as codes, and spoken anew in the voice of other speakers by
    a network and a vocoder. Another network tells from codes and voice which F0 to expect, and what is voiced. Only
    timing and pauses stay.
    """

    trained_by: ClassVar[tuple[str, ...]] = ("content-decoder", "f0-regressor")
    _stages: ClassVar[int] = 4

    def _find_f0(
        self,
        samples: Samples,
        layers: Floats32,
        speaker: Speaker,
        options: dict[str, OptionValue],  # noqa: ARG002 - of others
    ) -> Floats:
        from speech.conversion.content_decoder import count_spectra

        content = self._converter().find_content(layers, count_spectra(samples.size), self._stages)
        return limit_contour(files.load_regressor(self.networks.regressor).predict(content, speaker[0]))


class _MovedVectors(ContentMethod, ABC):
    """Voices that are the speaker's own vector, moved."""

    makes_vectors: ClassVar[bool] = True

    def missing(self) -> str:
        models = (*_MODELS, _SPEAKER_ENCODER)
        return missing_packages(self.title, "safetensors") or missing(self.title, *models)

    def _read_voice(self, voice: PseudoSpeaker) -> Speaker:
        """F0 is that of the speakers of the pool who are nearest to the vector."""
        pool = self._pool()
        vector = read_vector(voice.vector, pool.vectors.shape[1])
        vector /= np.linalg.norm(vector)
        nearest = np.argsort(-(pool.vectors @ vector), kind="stable")[:_NEAREST]
        mean, spread = pool.f0[nearest].mean(axis=0)
        return vector, float(mean), float(spread)


@dataclass(frozen=True)
class NoisyVectors(_MovedVectors):
    """What is said is taken from the middle of a recogniser, and spoken anew by a network and a vocoder in the
    speaker's own voice with adversarial noise: the vector of the voice is moved until a classifier takes it for
    somebody else's. Timing, pauses and the course of the melody stay.
    """

    def _plan(self, request: VoiceRequest) -> PseudoSpeaker:
        """Of a speaker without any recording that can be heard, the mean voice of the gender gets the noise."""
        vectors, start = _own_and_pool(request, self._pool())
        strength = cast("float", complete_options(self, request.options)["strength"])
        noisy = add_noise(start, vectors, strength, _draw(request.key, "noise"))
        return PseudoSpeaker(request.key, {}, vector=write_vector(noisy))


@dataclass(frozen=True)
class ExpectedVectors(_MovedVectors):
    """What is said is taken from the middle of a recogniser, and spoken anew by a network and a vocoder in a voice
    that the end of the recogniser allows: it hears words, and little of who speaks; the rest is drawn. Timing, pauses
    and the course of the melody stay.
    """

    trained_by: ClassVar[tuple[str, ...]] = ("content-decoder", "recognizer-map")

    def missing(self) -> str:
        return missing_packages(self.title, "safetensors") or missing(self.title, *_MODELS)

    def _plan(self, request: VoiceRequest) -> PseudoSpeaker:
        """Of a speaker without any recording that can be heard, nothing is expected but the mean voice."""
        expected = files.load_map(self.networks.recognizer_map)
        with use_torch_threads(1):
            pieces = [
                piece
                for samples in _heard(request.recordings)
                for piece in recognizer_map.mean_features(samples, layers_encoder()).values()
            ]
        feature = np.mean(pieces, axis=0) if pieces else expected.features
        return PseudoSpeaker(
            request.key, {}, vector=write_vector(expected.draw(feature, _draw(request.key, "residual")))
        )


@dataclass(frozen=True)
class ReflectedVectors(_MovedVectors):
    """What is said is taken from the middle of a recogniser, and spoken anew by a network and a vocoder. All speakers
    of a role and split have their own voices, mapped by one chain of reflections that takes each away from all
    originals and keeps the distances between speakers. Timing, pauses and the course of the melody stay.
    """

    def plan_voices(
        self,
        requests: Sequence[VoiceRequest],
        pool: TargetPool | None = None,  # noqa: ARG002 - of the protocol; the pool is the method's own
    ) -> list[PseudoSpeaker]:
        """Return one map for all requests; another one for other speakers, roles, splits or seeds."""
        own = self._pool()
        whole = own.vectors.astype(np.float64)
        keys = "|".join(sorted(request.key for request in requests))
        with use_one_thread_for_products():
            fitted = fit_reflections(whole / np.linalg.norm(whole, axis=1, keepdims=True), _draw(keys, "reflections"))
            starts = [_own_and_pool(request, own)[1] for request in requests]
            return [
                PseudoSpeaker(request.key, {}, vector=write_vector(fitted.apply(start)))
                for request, start in zip(requests, starts, strict=True)
            ]

    def _plan(self, request: VoiceRequest) -> PseudoSpeaker:
        return self.plan_voices([request])[0]


def _own_and_pool(request: VoiceRequest, pool: SpeakerPool) -> tuple[Floats, Floats]:
    """Return the vectors of the pool of a speaker's gender, and the speaker's own of length 1, or the mean of the
    former."""
    vectors = pool.vectors[_rows_of_gender(pool, request)].astype(np.float64)
    own = _own_vector(request.recordings)
    start = vectors.mean(axis=0) if own is None else own.astype(np.float64)
    return vectors, start / np.linalg.norm(start)


def _draw(key: str, what: str) -> np.random.Generator:
    """Chance that follows from the key of a request, or from those of all."""
    digest = hashlib.sha256(f"{key}|{what}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _rows_of_gender(pool: SpeakerPool, request: VoiceRequest) -> npt.NDArray[np.intp]:
    """Return the speakers of the pool of the gender that is told, else guessed; all where nobody is known to have
    it."""
    gender = request.gender or guess_gender(request.recordings)
    found = [row for row, own in enumerate(pool.genders) if own == gender]
    return np.array(found or range(len(pool.names)))


def _own_vector(recordings: Sequence[Recording]) -> Floats32 | None:
    """Return the mean vector of the first minute of a speaker; None where there is too little speech."""
    vectors = []
    for samples in _heard(recordings):
        with suppress(ValueError), use_torch_threads(1):  # too short or silent
            vectors.append(_speaker_encoder().embed([samples], RATE_HZ)[0])
    return np.mean(vectors, axis=0) if vectors else None


def _heard(recordings: Sequence[Recording]) -> Iterator[Samples]:
    """Yield the recordings of a speaker that can be read, up to the first minute."""
    heard = 0.0
    for recording in recordings:
        try:
            samples = convert_audio(*recording()).samples
        except (OSError, ValueError):  # it is named where its utterance is due
            continue
        if not samples.any():
            continue
        yield samples
        heard += samples.size / RATE_HZ
        if heard >= _HEARD_S:
            return


@lru_cache(maxsize=1)
def _speaker_encoder() -> SpeakerEncoder:
    return encoders.load(_SPEAKER_ENCODER)


_CLASSES: dict[str, type[ContentMethod]] = {
    "b1a": FilteredSource,
    "b1b": JointVoices,
    "b1-world": WorldVoices,
    "joint-hifigan": JointHifiGanVoices,
    "ssl-content": SoftUnits,
    "t18-noise": NoisyVectors,
    "t18-asr": ExpectedVectors,
    "ohnn": ReflectedVectors,
    "t40": EstimatedF0,
}
METHODS = tuple(_CLASSES.get(about["name"], PooledVoices)(**about) for about in read_methods(__file__))
