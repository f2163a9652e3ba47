"""From a recording to the file that evaluators hear: one form for all stimuli, and files that tell nothing but sound.

Every stimulus is mono speech at 16 kHz and −26 dBov, of a duration from a coarse grid. What was recorded louder, at
another rate or cut a little longer by one system than by another is then no hint at the system. The level is the active
speech level of ITU-T P.56, so pauses do not count. Where the gain to −26 dBov would bring a peak over −1 dBov the gain
is lowered until it does not (the peak guard): nothing is ever clipped or compressed, and such a recording is a little
quieter than the others. A recording that begins or ends in the middle of sound is faded over 10 ms, so that it does not
click. Silence of 0.256 s comes before, which headphones that are slow to wake swallow instead of speech, and at least
as much follows, up to the grid.

Files are WAV with 16 bits a sample: size and header follow from the duration alone, whereas encoders write as many
bytes as a sound needs, by which systems could be distinguished without listening. A player gives mono to both ears.
"""

from __future__ import annotations

import io
import wave
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Samples
from speech.audio.files import AudioError, resample
from speech.audio.level import active_speech_level, find_gain

RATE_HZ = 16000
CHANNELS = 1
BITS = 16
KBIT_PER_S = RATE_HZ * CHANNELS * BITS / 1000
LEVEL_DBOV = -26.0
PEAK_DBOV = -1.0
FADE_S = 0.01
STEP_THAT_CLICKS = 0.001  # −60 dBov
SILENCE_SAMPLES = 4096  # 0.256 s
GRID_SAMPLES = 2 * SILENCE_SAMPLES  # 0.512 s
SHORTEST_S = 0.1


@dataclass(frozen=True, slots=True)
class UniformSpeech:
    """A recording in the common form.

    Attributes:
        samples: int16, shape (n,), n a multiple of `GRID_SAMPLES`, at `RATE_HZ`; begins and ends with silence.
        speech_samples: how many of them come between the silences.
        level_before_dbov, level_dbov: active speech level of the recording and of the result.
        gain_db: what it was raised by.
        peak_dbov: highest absolute sample of the result.
        is_guarded: whether the peak guard kept it under `LEVEL_DBOV`.
        is_faded: whether its start or end was faded.
    """

    samples: Samples
    speech_samples: int
    level_before_dbov: float
    level_dbov: float
    gain_db: float
    peak_dbov: float
    is_guarded: bool
    is_faded: bool

    @property
    def speech(self) -> Samples:
        """Without the silence."""
        return self.samples[SILENCE_SAMPLES : SILENCE_SAMPLES + self.speech_samples]

    @property
    def speech_s(self) -> float:
        return self.speech_samples / RATE_HZ

    @property
    def padded_s(self) -> float:
        return self.samples.size / RATE_HZ


def padded_samples(speech_samples: int) -> int:
    """Length on the grid of that much speech, with silence before and at least as much behind it."""
    return -(-(speech_samples + 2 * SILENCE_SAMPLES) // GRID_SAMPLES) * GRID_SAMPLES


def make_uniform(samples: Samples, rate_hz: int) -> UniformSpeech:
    """The recording in the common form.

    Args:
        samples: int16, shape (n,).
        rate_hz: of the recording; other rates than `RATE_HZ` are converted.

    Raises:
        AudioError: it is silent or shorter than `SHORTEST_S`.
    """
    if samples.size < SHORTEST_S * rate_hz:
        found = f"{samples.size / rate_hz:.3f} s"
        raise AudioError("too-short", f"at least {SHORTEST_S:g} s", found, "Leave this utterance out.")
    signal = resample(samples, rate_hz, RATE_HZ) / 32768
    before = active_speech_level(signal, RATE_HZ).active_dbov
    gain, level = find_gain(signal, RATE_HZ, before, LEVEL_DBOV)
    highest = 10 ** (PEAK_DBOV / 20) / float(np.abs(signal).max())
    is_guarded = gain > highest
    gain = min(gain, highest)
    raised, is_faded = _fade_edges(gain * signal)
    speech = np.rint(raised * 32768).astype(np.int16)
    whole = np.zeros(padded_samples(speech.size), np.int16)
    whole[SILENCE_SAMPLES : SILENCE_SAMPLES + speech.size] = speech
    return UniformSpeech(
        samples=whole,
        speech_samples=speech.size,
        level_before_dbov=before,
        level_dbov=active_speech_level(gain * signal, RATE_HZ).active_dbov if is_guarded else level,
        gain_db=float(20 * np.log10(gain)),
        peak_dbov=float(20 * np.log10(np.abs(speech.astype(np.int32)).max() / 32768)),
        is_guarded=is_guarded,
        is_faded=is_faded,
    )


def _fade_edges(signal: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """The signal with a raised-cosine start or end where it would otherwise begin or end with a step."""
    ramp = np.sin(np.linspace(0, np.pi / 2, round(FADE_S * RATE_HZ))) ** 2
    is_cut_in, is_cut_off = abs(signal[0]) > STEP_THAT_CLICKS, abs(signal[-1]) > STEP_THAT_CLICKS
    faded = signal.copy()
    if is_cut_in:
        faded[: ramp.size] *= ramp
    if is_cut_off:
        faded[-ramp.size :] *= ramp[::-1]
    return faded, bool(is_cut_in or is_cut_off)


@dataclass(frozen=True, slots=True)
class StimulusFile:
    """`content`: the bytes. `facts`: plain numbers about how it was made, for the record."""

    content: bytes
    speech_s: float
    facts: dict[str, Any]


def make_stimulus(samples: Samples, rate_hz: int) -> StimulusFile:
    """Make the file of a recording.

    Args:
        samples: int16, shape (n,).
        rate_hz: of the recording.

    Raises:
        AudioError: silent or too short.
    """
    uniform = make_uniform(samples, rate_hz)
    rounded = ("level_before_dbov", "level_dbov", "gain_db", "peak_dbov")
    facts = {"padded_s": uniform.padded_s, **{name: round(getattr(uniform, name), 2) for name in rounded}}
    facts |= {"is_guarded": uniform.is_guarded, "is_faded": uniform.is_faded}
    return StimulusFile(write_wav(uniform.samples), uniform.speech_s, facts)


def write_wav(samples: Samples) -> bytes:
    """Write a WAV file of 16 bits at `RATE_HZ` with nothing in it but the sound.

    Args:
        samples: int16, shape (n,) or (n, channels).
    """
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        writer.setsampwidth(BITS // 8)
        writer.setframerate(RATE_HZ)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()
