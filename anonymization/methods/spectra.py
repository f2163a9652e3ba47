"""What methods share that change the spectrum of speech: Whisper's layers, HiFi-GAN, and the way back to samples.

Conventions: samples are int16, mono, 16 kHz, shape (n,); spectra as in `speech.vocoders.hifigan`, shape (frames, 80).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Samples
from anonymization.methods.world.method import Level, mute_silence, set_level
from common.packages import missing_packages
from speech.audio.files import resample, to_pcm16
from speech.model_files.store import is_here, missing_sentence

if TYPE_CHECKING:
    from speech.features.whisper_layers import WhisperLayers
    from speech.vocoders.hifigan import HifiGan

RATE_HZ, VOCODER_HZ = 16_000, 22_050


def missing(what: str, *models: str) -> str:
    """Why nothing can be converted here, one sentence; empty where all is. `what` needs it, as a sentence begins.

    Args:
        models: of `speech.model_files`, that it needs.
    """
    if sentence := missing_packages(what, "torch", "soxr"):
        return sentence
    return next((missing_sentence(name) for name in models if not is_here(name)), "")


def speak(spectrum: npt.NDArray[np.float32], original: Samples, level: Level) -> Samples:
    """Samples of a spectrum, fitted to the original."""
    [sound] = vocoder().synthesize([spectrum])
    return fit_to_original(sound, original, level)


def fit_to_original(sound: npt.NDArray[np.float32], original: Samples, level: Level) -> Samples:
    """A sound at 22,050 Hz with as many samples as the original has, silent where it is digitally silent, at its level.

    Args:
        sound: full scale 1.0, shape (n,).
    """
    output = resample(to_pcm16(sound), VOCODER_HZ, RATE_HZ)[: original.size].astype(np.float32) / np.float32(32768)
    mute_silence(output, original)
    return set_level(output, original, level)


@lru_cache(maxsize=1)
def layers_encoder() -> WhisperLayers:
    """The encoder of Whisper base, once in a process."""
    from speech.features import whisper_layers

    return whisper_layers.load()


@lru_cache(maxsize=1)
def vocoder() -> HifiGan:
    """HiFi-GAN universal, once in a process."""
    from speech.vocoders import hifigan

    return hifigan.load()
