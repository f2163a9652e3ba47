"""What methods share that change the spectrum of speech: Whisper's layers, HiFi-GAN, and the way back to samples.

Conventions: samples are int16, mono, 16 kHz, shape (n,); spectra as in `speech.vocoders.hifigan`, shape (frames, 80).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import (
    Described,
    MethodError,
    OptionValue,
    PseudoSpeaker,
    VoicedUtterance,
    validate_samples,
)
from anonymization.methods.world.method import Level, mute_silence, set_level
from common.arrays import Samples
from common.errors import InputError
from common.packages import missing_packages
from speech.audio.files import resample, to_pcm16
from speech.conversion.nearest_frames import VOCODER_HZ
from speech.model_files.devices import use_one_thread, use_one_thread_for_products
from speech.model_files.store import is_here, missing_sentence

if TYPE_CHECKING:
    from speech.features.whisper_layers import WhisperLayers
    from speech.vocoders.hifigan import HifiGan

RATE_HZ = 16_000
V = TypeVar("V")


@dataclass(frozen=True)
class SpectrumMethod(Described, ABC, Generic[V]):
    """A method that makes the samples anew, of 16 kHz alone; V is what it needs of a voice."""

    @abstractmethod
    def _read_voice(self, voice: PseudoSpeaker) -> V:
        """Return what a voice says. Raises MethodError for one that is none of the method's."""

    @abstractmethod
    def _convert(self, samples: Samples, voice: V, options: dict[str, OptionValue]) -> Samples:
        """Return the speech in a voice; samples are not silent. Raises InputError where a part refuses them."""

    def _anonymize(self, item: VoicedUtterance, rate: int, options: dict[str, OptionValue], threads: int) -> Samples:  # noqa: ARG002 - of others
        """Digital silence keeps its place. One thread, so that a process may fork afterwards, and no rounding depends
        on how many there are.
        """
        validate_samples(self.name, item.samples, rate, low_hz=RATE_HZ, high_hz=RATE_HZ)
        with use_one_thread_for_products():
            voice = self._read_voice(item.pseudo_speaker)
        if not item.samples.any():
            return np.zeros_like(item.samples)
        try:
            with use_one_thread():
                return self._convert(item.samples, voice, options)
        except InputError as error:
            raise MethodError(str(error)) from error


def missing(what: str, *models: str) -> str:
    """Return why nothing can be converted here, one sentence; empty where all is. `what` needs it, as a sentence
    begins.

    Args:
        models: of `speech.model_files`, that it needs.
    """
    if sentence := missing_packages(what, "torch", "soxr"):
        return sentence
    return next((missing_sentence(name) for name in models if not is_here(name)), "")


def speak(spectrum: npt.NDArray[np.float32], original: Samples, level: Level) -> Samples:
    """Return samples of a spectrum, fitted to the original."""
    [sound] = vocoder().synthesize([spectrum])
    return fit_to_original(sound, original, level)


def fit_to_original(
    sound: npt.NDArray[np.float32], original: Samples, level: Level, rate_hz: int = VOCODER_HZ
) -> Samples:
    """Return a sound with as many samples as the original has, silent where that is digitally silent, at its level.

    Args:
        sound: full scale 1.0, shape (n,). rate_hz: its samples per second.
    """
    output = resample(to_pcm16(sound), rate_hz, RATE_HZ)[: original.size].astype(np.float32) / np.float32(32768)
    mute_silence(output, original)
    return set_level(output, original, level)


@lru_cache(maxsize=1)
def layers_encoder() -> WhisperLayers:
    """Return the encoder of Whisper base, once in a process."""
    from speech.features import whisper_layers

    return whisper_layers.load()


@lru_cache(maxsize=1)
def vocoder() -> HifiGan:
    """HiFi-GAN universal, once in a process."""
    from speech.vocoders import hifigan

    return hifigan.load()
