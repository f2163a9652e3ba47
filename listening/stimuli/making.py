"""From a recording to the file that evaluators hear: one form for all stimuli, and files that tell nothing but sound.

Usually every stimulus is mono speech at 16 kHz and −26 dBov, of a duration from a coarse grid; a test of one's own
recordings may keep another rate, two channels, and the loudness of ITU-R BS.1770 or of the recording. What was recorded
louder, at another rate or cut a little longer by one system than by another is then no hint at the system. The level is
the active speech level of ITU-T P.56, so pauses do not count. Where the gain would bring a peak over −1 dBov the gain
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
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Samples
from speech.audio.files import AudioError, resample
from speech.audio.level import active_speech_level, find_gain

RATE_HZ = 16000
CHANNELS = 1
BITS = 16
LEVEL_DBOV = -26.0
LOUDNESS_LUFS = -26.0
SHORTEST_LOUDNESS_S = 0.4  # a block of BS.1770
PEAK_DBOV = -1.0
FADE_S = 0.01
STEP_THAT_CLICKS = 0.001  # −60 dBov
SILENCE_SAMPLES = 4096  # 0.256 s at `RATE_HZ`
SHORTEST_S = 0.1


class Loudness(StrEnum):
    """What is made equal."""

    SPEECH = "p56"
    PROGRAMME = "bs1770"
    AS_IT_IS = "as-is"


@dataclass(frozen=True, slots=True)
class StimulusFormat:
    """What all stimuli of a study have in common."""

    rate_hz: int = RATE_HZ
    channels: int = CHANNELS
    loudness: Loudness = Loudness.SPEECH

    @property
    def silence_samples(self) -> int:
        return SILENCE_SAMPLES * self.rate_hz // RATE_HZ

    @property
    def grid_samples(self) -> int:
        return 2 * self.silence_samples

    @property
    def kbit_per_s(self) -> float:
        return self.rate_hz * self.channels * BITS / 1000


USUAL = StimulusFormat()
Signal = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UniformSpeech:
    """A recording in the common form.

    Attributes:
        samples: int16, shape (n,), or (n, 2) of two channels, n a multiple of `grid_samples`, at the rate of its form;
            begins and ends with silence.
        speech_samples: how many of them come between the silences.
        level_before_dbov, level_dbov: active speech level of the recording and of the result, or its loudness in LUFS.
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
    form: StimulusFormat = USUAL

    @property
    def speech(self) -> Samples:
        """Return the speech without the silence."""
        return self.samples[self.form.silence_samples : self.form.silence_samples + self.speech_samples]

    @property
    def speech_s(self) -> float:
        return self.speech_samples / self.form.rate_hz

    @property
    def padded_s(self) -> float:
        return len(self.samples) / self.form.rate_hz


def padded_samples(speech_samples: int, form: StimulusFormat = USUAL) -> int:
    """Return the length on the grid of that much speech, with silence before and at least as much behind it."""
    return -(-(speech_samples + 2 * form.silence_samples) // form.grid_samples) * form.grid_samples


def find_shortest_s(loudness: str) -> float:
    """Return how long a recording has to be for its loudness to be made equal."""
    return SHORTEST_LOUDNESS_S if loudness == Loudness.PROGRAMME else SHORTEST_S


def make_uniform(samples: Samples | Signal, rate_hz: int, form: StimulusFormat = USUAL) -> UniformSpeech:
    """Return the recording in the common form.

    Args:
        samples: int16, shape (n,); or float64, shape (n, channels), full scale 1.0.
        rate_hz: of the recording; other rates than that of the form are converted.

    Raises:
        AudioError: it is silent or shorter than `find_shortest_s`.
    """
    shortest_s = find_shortest_s(form.loudness)
    if len(samples) < shortest_s * rate_hz:
        found = f"{len(samples) / rate_hz:.3f} s"
        raise AudioError("too-short", f"at least {shortest_s:g} s", found, "Leave this utterance out.")
    signal = _convert(samples, rate_hz, form)
    before = _measure(signal, form)
    gain, level = _find_gain(signal, form, before)
    highest = 10 ** (PEAK_DBOV / 20) / float(np.abs(signal).max())
    is_guarded = gain > highest and form.loudness is not Loudness.AS_IT_IS
    gain = min(gain, highest) if is_guarded else gain
    raised, is_faded = _fade_edges(gain * signal, form.rate_hz)
    speech = np.clip(np.rint(raised * 32768), -32768, 32767).astype(np.int16)
    whole = np.zeros((padded_samples(len(speech), form), *speech.shape[1:]), np.int16)
    whole[form.silence_samples : form.silence_samples + len(speech)] = speech
    return UniformSpeech(
        samples=whole,
        speech_samples=len(speech),
        level_before_dbov=before,
        level_dbov=_measure(gain * signal, form) if is_guarded else level,
        gain_db=float(20 * np.log10(gain)),
        peak_dbov=float(20 * np.log10(np.abs(speech.astype(np.int32)).max() / 32768)),
        is_guarded=is_guarded,
        is_faded=is_faded,
        form=form,
    )


def _convert(samples: Samples | Signal, rate_hz: int, form: StimulusFormat) -> Signal:
    """Return the samples at the rate and with the channels of the form, shape (n,) of one channel, else (n, 2)."""
    if samples.dtype == np.int16 and form.channels == 1:
        return resample(samples, rate_hz, form.rate_hz) / 32768
    channels = samples if samples.ndim == 2 else samples[:, None] / 32768
    if form.channels == 1:
        return resample(channels.mean(axis=1), rate_hz, form.rate_hz)
    return resample(np.repeat(channels, form.channels // channels.shape[1], axis=1), rate_hz, form.rate_hz)


def _measure(signal: Signal, form: StimulusFormat) -> float:
    """Return the level in dBov, or the loudness in LUFS.

    Raises:
        AudioError: it is silent.
    """
    if form.loudness is not Loudness.PROGRAMME:
        return active_speech_level(_mix(signal), form.rate_hz).active_dbov
    from pyloudnorm import Meter

    loudness = float(Meter(form.rate_hz).integrated_loudness(signal))
    if not np.isfinite(loudness):
        raise AudioError("silent", "sound", "silence, as loudness is measured", "Leave this utterance out.")
    return loudness


def _find_gain(signal: Signal, form: StimulusFormat, before: float) -> tuple[float, float]:
    """Return the factor that gives the wanted level, and the level that it gives."""
    if form.loudness is Loudness.SPEECH:
        return find_gain(_mix(signal), form.rate_hz, before, LEVEL_DBOV)
    if form.loudness is Loudness.PROGRAMME:
        return 10 ** ((LOUDNESS_LUFS - before) / 20), LOUDNESS_LUFS
    return 1.0, before


def _mix(signal: Signal) -> Signal:
    mixed: Signal = signal if signal.ndim == 1 else signal.mean(axis=1)
    return mixed


def _fade_edges(signal: Signal, rate_hz: int) -> tuple[Signal, bool]:
    """Return the signal with a raised-cosine start or end where it would otherwise begin or end with a step."""
    ramp = np.sin(np.linspace(0, np.pi / 2, round(FADE_S * rate_hz))) ** 2
    ramp = ramp.reshape(-1, *[1] * (signal.ndim - 1))
    is_cut_in, is_cut_off = (np.abs(signal[end]).max() > STEP_THAT_CLICKS for end in (0, -1))
    faded = signal.copy()
    if is_cut_in:
        faded[: len(ramp)] *= ramp
    if is_cut_off:
        faded[-len(ramp) :] *= ramp[::-1]
    return faded, bool(is_cut_in or is_cut_off)


@dataclass(frozen=True, slots=True)
class StimulusFile:
    """`content`: the bytes. `facts`: plain numbers about how it was made, for the record."""

    content: bytes
    speech_s: float
    facts: dict[str, Any]


def make_stimulus(samples: Samples | Signal, rate_hz: int, form: StimulusFormat = USUAL) -> StimulusFile:
    """Make the file of a recording; arguments as of `make_uniform`.

    Raises:
        AudioError: silent or too short.
    """
    uniform = make_uniform(samples, rate_hz, form)
    rounded = ("level_before_dbov", "level_dbov", "gain_db", "peak_dbov")
    facts = {"padded_s": uniform.padded_s, **{name: round(getattr(uniform, name), 2) for name in rounded}}
    facts |= {"is_guarded": uniform.is_guarded, "is_faded": uniform.is_faded}
    return StimulusFile(write_wav(uniform.samples, form.rate_hz), uniform.speech_s, facts)


def write_wav(samples: Samples, rate_hz: int = RATE_HZ) -> bytes:
    """Write a WAV file of 16 bits with nothing in it but the sound.

    Args:
        samples: int16, shape (n,) or (n, channels).
    """
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        writer.setsampwidth(BITS // 8)
        writer.setframerate(rate_hz)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()
