"""Pitch shifting: speech is resampled, which moves F0 and formants together, and its duration restored (T32).

Two ways restore it: `psola` repeats or leaves out whole periods, `phase_vocoder` spreads short-time spectra over time.
Source: system T32 of the VoicePrivacy Challenge 2022, as its results paper describes it; level, silence and edges are
ours to state: they are in `shift_pitch`.

Conventions: samples are int16, mono, shape (n,), at 8 to 48 kHz; a shift is in cents, 1200 to the octave, up is
positive; what is asked of a technique is `Work`, its output float32 in units of int16.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from anonymization.methods.contract import (
    Method,
    MethodError,
    Options,
    validate_samples,
)
from anonymization.methods.method_files import read_methods
from anonymization.methods.pitch_shift.marks import PitchSource
from anonymization.methods.pitch_shift.phase_vocoder import shift_by_vocoder
from anonymization.methods.pitch_shift.psola import shift_by_psola
from common.arrays import Floats32, Samples
from common.numba_loops import entry

MIN_RATE_HZ, MAX_RATE_HZ = 8_000, 48_000
MAX_CENTS = 1200.0

Technique = Literal["psola", "vocoder"]
Formants = Literal["moved", "kept"]
Level = Literal["kept", "peak"]

_PEAK = 32766
_SILENCE_S = 0.02
_FULL_SCALE = 32767
# What the shift took nearly all of, such as a tone above the band, is not blown up to its old level.
_MAX_GAIN = 4.0


@dataclass(frozen=True)
class PitchShift:
    """What `shift_pitch` does.

    cents: how far the pitch goes, from -1200 to 1200; 0 gives back the input.
    technique: "psola" or "vocoder".
    formants: "moved" with F0, as by T32; "kept" where they are, which only PSOLA can.
    level: "kept" gives back the RMS of the original, less where that would clip; "peak" scales the largest sample to
        32766.

    Raises MethodError where a value is none of these.
    """

    cents: float
    technique: Technique = "psola"
    formants: Formants = "moved"
    level: Level = "kept"

    def __post_init__(self) -> None:
        if not -MAX_CENTS <= self.cents <= MAX_CENTS:
            raise MethodError(f"The pitch moves by -{MAX_CENTS:g} to {MAX_CENTS:g} cents; found {self.cents}.")
        for what, kind in (("technique", Technique), ("formants", Formants), ("level", Level)):
            if (value := getattr(self, what)) not in get_args(kind):
                raise MethodError(f'The option {what} is one of {", ".join(get_args(kind))}; found "{value}".')
        if self.technique == "vocoder" and self.formants == "kept":
            raise MethodError("The phase vocoder moves the formants; to keep them, take the technique psola.")

    @property
    def ratio(self) -> float:
        """Return what F0 is multiplied by."""
        return float(2.0 ** (self.cents / 1200.0))


def shift_pitch(samples: Samples, rate: int, shift: PitchShift) -> Samples:
    """Shift the pitch of one utterance and keep its duration.

    At a shift of 0 the output equals the input within one of int16. The level "kept" gives back the RMS within 0.1 dB
    for anything louder than -60 dB of full scale; where a sample would clip, all are scaled down just enough, and
    nothing is made more than 12 dB louder. Runs of zeros of 20 ms and longer stay zeros. A constant offset is kept out
    of the work and put back.

    Args:
        samples: int16, shape (n,), n ≥ 0; not changed.
        rate: samples per second, 8000 to 48000.

    Returns:
        int16, shape (n,).

    Raises:
        MethodError: other samples or another rate.

    >>> tone = (8000 * np.sin(2 * np.pi * 150 * np.arange(16_000) / 16_000)).astype(np.int16)
    >>> shift_pitch(tone, 16_000, PitchShift(cents=300)).shape
    (16000,)
    """
    validate_samples("Pitch shifting", samples, rate, low_hz=MIN_RATE_HZ, high_hz=MAX_RATE_HZ)
    if not samples.any():
        return np.zeros(samples.size, np.int16)
    offset = float(samples.mean(dtype=np.float64))
    source = PitchSource(samples, rate, offset)
    if shift.technique == "vocoder":
        output = shift_by_vocoder(source, shift.ratio)
    else:
        output = shift_by_psola(source, shift.ratio, keep_formants=shift.formants == "kept")
    return _finish(output, samples, rate, offset, shift.level)


def _finish(output: Floats32, original: Samples, rate: int, offset: float, level: Level) -> Samples:
    """Silence put back, then the offset, scaled and rounded to int16; an output of zeros stays zeros."""
    original = np.ascontiguousarray(original)
    _mute_runs_of_zeros(original, output, -offset, round(_SILENCE_S * rate))
    wanted, energy, peak = _measure(original, output, offset)
    if energy == 0.0:
        return np.zeros(output.size, np.int16)
    gain = _PEAK / peak if level == "peak" else min(math.sqrt(wanted / energy), _MAX_GAIN)
    return _quantize(output, offset, min(gain, _FULL_SCALE / peak))


@entry
def _mute_runs_of_zeros(samples: Samples, output: Floats32, value: float, shortest: int) -> None:
    """Set the output to `value` wherever at least `shortest` samples in a row are 0."""
    start = 0
    for i in range(samples.size + 1):
        if i == samples.size or samples[i] != 0:
            if i - start >= shortest:
                output[start:i] = value
            start = i + 1


@entry
def _measure(samples: Samples, output: Floats32, offset: float) -> tuple[float, float, float]:
    """Sum of the squared samples; of the squares of output and offset together; the largest magnitude of these."""
    wanted, energy, peak = 0.0, 0.0, 0.0
    for i in range(samples.size):
        before, after = float(samples[i]), float(output[i]) + offset
        wanted += before * before
        energy += after * after
        peak = max(peak, abs(after))
    return wanted, energy, peak


@entry
def _quantize(output: Floats32, offset: float, gain: float) -> Samples:
    """Return output and offset together, scaled and rounded."""
    quantized = np.empty(output.size, np.int16)
    for i in range(output.size):
        quantized[i] = np.int16(np.rint((float(output[i]) + offset) * gain))
    return quantized


def _process(
    technique: Technique, samples: Samples, rate: int, parameters: Mapping[str, float], options: Options, _threads: int
) -> Samples:
    values = {name: str(value) for name, value in options.items()}
    return shift_pitch(samples, rate, PitchShift(parameters["shift"], technique, **values))  # type: ignore[arg-type]


_PSOLA, _VOCODER = read_methods(__file__)
METHODS = (
    Method(**_PSOLA, process=partial(_process, "psola")),
    Method(**_VOCODER, process=partial(_process, "vocoder")),
)
