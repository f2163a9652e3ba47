"""Each frame of speech becomes frames of a target speaker that sound most like it: kNN-VC lite and private kNN-VC lite.

`knn-vc` takes the mean of the nearest frames (after Baas, van Niekerk, Kamper: Voice conversion with just nearest
neighbors, Interspeech 2023), by Whisper base in place of WavLM and the universal HiFi-GAN in place of one of its own:
nothing is trained. Timing and loudness stay the source's; F0 is that of the chosen frames. `private-knn` takes the
nearest of a few centroids of the same phone, and the durations of phones go towards the target's (after Franzreb, Das,
Polzehl, Möller: Private kNN-VC, Interspeech 2025), by the content and the decoder of `content_decoder`. Neither is the
published system. Conventions: samples are int16, mono, 16 kHz.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from anonymization.methods.audio_conversion import convert_audio
from anonymization.methods.content_decoder.contours import find_contour, move_contour
from anonymization.methods.content_decoder.network_files import load_decoder, verify_file
from anonymization.methods.contract import (
    MethodError,
    OptionValue,
    PseudoSpeaker,
    Target,
    TargetPool,
    require_pool,
)
from anonymization.methods.method_files import read_methods
from anonymization.methods.spectra import SpectrumMethod, fit_to_original, layers_encoder, missing, speak, vocoder
from anonymization.methods.world.method import Level
from common.arrays import Samples
from common.packages import missing_packages
from speech.conversion.nearest_frames import (
    FRAME_SAMPLES,
    HOP_SAMPLES,
    MODELS,
    RATE_HZ,
    VOCODER_HZ,
    FramePool,
    convert_spectrum,
    make_pool,
)
from speech.conversion.phone_centroids import PhonePool, read_speech
from speech.conversion.phone_centroids import make_pool as make_phone_pool
from speech.encoders import registry as encoders

if TYPE_CHECKING:
    from speech.conversion.content_decoder import Converter
    from speech.encoders.contract import SpeakerEncoder
    from speech.recognizers.phone_network import PhoneNetwork
Places = npt.NDArray[np.intp]

PHONE_RECOGNIZER = Path(__file__).with_name("phone_recognizer") / "weights.safetensors"
SHA256 = "10fc704e22b3dd12e469edd0caf8a560dda9c2d3ee3f241fef519486b874df2a"
_SPEAKER_ENCODER = "ge2e"
# Less speech of a target holds hardly any of the sounds.
_SHORTEST_S = 1.0
# So much of a target is enough for the vector.
_HEARD_S = 60.0
# Of what was made of targets so much is kept: nearly a gigabyte.
_MOST_KEPT = 230_000_000


class _Analysed(Protocol):
    """What was made of a target's speech."""

    @property
    def n_numbers(self) -> int: ...


A = TypeVar("A", bound=_Analysed)


@dataclass(frozen=True)
class _Targeted(SpectrumMethod[Target], ABC):
    """A method that gives the voices of targets.

    pool: the targets, None before `prepare`; the other attributes are those of `TargetedAnonymizer`.
    """

    pool: TargetPool | None = field(default=None, repr=False, kw_only=True)
    _kept: dict[tuple[Any, ...], _Analysed] = field(default_factory=dict, repr=False, compare=False)

    @property
    def has_targets(self) -> bool:
        return self.pool is not None

    def prepare(self, pool: TargetPool) -> Self:
        return replace(self, pool=pool, _kept={})

    def _read_voice(self, voice: PseudoSpeaker) -> Target:
        return require_pool(self.name, self.pool).find(voice.target)

    def _keep(self, key: tuple[Any, ...], make: Callable[[], A]) -> A:
        """Return what was made of a target; the oldest go. Two threads at worst make the same twice, to the same
        result."""
        found = cast("A | None", self._kept.get(key))
        if found is None:
            found = make()
            for oldest in list(self._kept):
                if found.n_numbers + sum(each.n_numbers for each in self._kept.values()) <= _MOST_KEPT:
                    break
                self._kept.pop(oldest, None)
            self._kept[key] = found
        return found


@dataclass(frozen=True)
class NearestFrames(_Targeted):
    """Each frame of speech becomes the mean of the frames of a target speaker that sound most like it by Whisper's
    encoder, and HiFi-GAN makes speech of it. What stays of the speaker is the timing and the loudness.
    """

    def missing(self) -> str:
        return missing(self.title, *MODELS)

    def _convert(self, samples: Samples, voice: Target, options: dict[str, OptionValue]) -> Samples:
        frames = self._frames(voice, cast("float", options["pool_s"]))
        spectrum = convert_spectrum(samples, frames, layers_encoder(), round(cast("float", options["k"])))
        return speak(spectrum, samples, cast("Level", options["level"]))

    def _frames(self, target: Target, pool_s: float) -> FramePool:
        return self._keep((target.name, pool_s), lambda: make_pool(join_recordings(target, pool_s), layers_encoder()))


@dataclass(frozen=True)
class _TargetVoice:
    """How a target says each phone. vector: of length 1, shape (256,). f0: mean and spread of its logarithm."""

    phones: PhonePool
    vector: npt.NDArray[np.float32]
    f0: tuple[float, float]

    @property
    def n_numbers(self) -> int:
        return sum(each.size for each in self.phones.centroids.values())


@dataclass(frozen=True)
class NearestPhones(_Targeted):
    """Each frame of speech becomes the nearest of a few ways in which a target speaker says the same phone, and a
    network and a vocoder make speech of it. Durations of phones may go towards the target's; the course of the melody
    stays.
    """

    def missing(self) -> str:
        return missing_packages(self.title, "safetensors") or missing(self.title, *MODELS, _SPEAKER_ENCODER)

    def _convert(self, samples: Samples, voice: Target, options: dict[str, OptionValue]) -> Samples:
        import torch

        from speech.conversion.content_decoder import at_places, count_spectra, places_of_content

        number = {name: float(cast("float", options[name])) for name in ("centroids", "weight", "pool_s")}
        target = self._hear(voice, number["pool_s"], round(number["centroids"]))
        content, phones = read_speech(samples, layers_encoder(), _converter(), _recognizer())
        order = target.phones.place_frames(phones, number["weight"])
        chosen = target.phones.choose(content[order], phones[order])
        timed = _place_samples(samples, order)
        places = places_of_content(count_spectra(timed.size))
        contour = find_contour(samples)
        hz = move_contour(contour[_find_spectra(places, order, contour.size)], *target.f0)
        spectrum = _converter().speak(at_places(torch.from_numpy(chosen), places), hz, target.vector)
        [sound] = vocoder().synthesize([spectrum])
        return fit_to_original(sound, timed, cast("Level", options["level"]))

    def _hear(self, target: Target, pool_s: float, n_centroids: int) -> _TargetVoice:
        key = target.name, pool_s, n_centroids
        return self._keep(key, lambda: _hear_target(target.name, join_recordings(target, pool_s), n_centroids))


def _hear_target(name: str, samples: Samples, n_centroids: int) -> _TargetVoice:
    """Return how a target says each phone, of its speech. Raises MethodError where there is too little of it."""
    contour = find_contour(samples)
    logs = np.log(contour[contour > 0])
    try:
        [vector] = _speaker_encoder().embed([samples[: round(_HEARD_S * RATE_HZ)]], RATE_HZ)
    except ValueError as error:
        raise _too_little(name, f"{samples.size / RATE_HZ:.2g} s with {logs.size} voiced frames") from error
    if not logs.size:
        raise _too_little(name, "none that is voiced")
    content, phones = read_speech(samples, layers_encoder(), _converter(), _recognizer())
    return _TargetVoice(make_phone_pool(content, phones, n_centroids), vector, (float(logs.mean()), float(logs.std())))


def _too_little(name: str, found: str) -> MethodError:
    return MethodError(
        f"The target {name} needs {_SHORTEST_S:g} s of speech; found {found}. Give it a longer recording, or leave it "
        "out."
    )


def _place_samples(samples: Samples, order: Places) -> Samples:
    """Return the samples of the frames in another order, as many as the output is to have: silent where that is."""
    frames = np.pad(samples, (0, -samples.size % FRAME_SAMPLES)).reshape(-1, FRAME_SAMPLES)
    return frames[order].reshape(-1)[: samples.size + (len(order) - len(frames)) * FRAME_SAMPLES]


def _find_spectra(places: npt.NDArray[np.float64], order: Places, count: int) -> Places:
    """Return the frame of the source's spectrum, of so many, that each frame of the output's comes from.

    Args:
        places: of the latter, in frames of content. order: the source's frame of content of each of the output's.
    """
    source = np.interp(places, np.arange(len(order)), order)
    step = HOP_SAMPLES / VOCODER_HZ * RATE_HZ / FRAME_SAMPLES  # frames of content in one of the spectrum
    return np.rint((source + 0.5) / step - 0.5).clip(0, count - 1).astype(np.intp)


def join_recordings(target: Target, pool_s: float) -> Samples:
    """Return what a target lends: recordings in their order, one after the other, up to so many seconds.

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


@lru_cache(maxsize=1)
def _converter() -> Converter:
    from speech.conversion.content_decoder import Converter

    return Converter(load_decoder())


@lru_cache(maxsize=1)
def _recognizer() -> PhoneNetwork:
    from speech.recognizers import phone_network

    return phone_network.load(verify_file(PHONE_RECOGNIZER, SHA256))


@lru_cache(maxsize=1)
def _speaker_encoder() -> SpeakerEncoder:
    return encoders.load(_SPEAKER_ENCODER)


_CLASSES: dict[str, type[_Targeted]] = {"knn-vc": NearestFrames, "private-knn": NearestPhones}
METHODS = tuple(_CLASSES[about["name"]](**about) for about in read_methods(__file__))
