"""Pitch shifting: speech is resampled, which moves F0 and formants together, and its duration restored (T32).

Two ways restore it: `psola` repeats or leaves out whole periods, `phase_vocoder` spreads short-time spectra over time.
Source: system T32 of the VoicePrivacy Challenge 2022, as its results paper describes it; level, silence and edges are
ours to state: they are in `shift_pitch`.

Conventions: samples are int16, mono, shape (n,), at 8 to 48 kHz; a shift is in cents, 1200 to the octave, up is
positive; what is asked of a technique is `Work`, its output float32 in units of int16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Method, Option, Options, Parameter, Samples, validate_samples
from anonymization.methods.errors import MethodError
from anonymization.methods.pitch_source import PitchSource

MIN_RATE_HZ, MAX_RATE_HZ = 8_000, 48_000
MAX_CENTS = 1200.0

Floats = npt.NDArray[np.float32]
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
        for what, value, choices in (
            ("technique", self.technique, get_args(Technique)),
            ("formants", self.formants, get_args(Formants)),
            ("level", self.level, get_args(Level)),
        ):
            if value not in choices:
                raise MethodError(f'The option {what} is one of {", ".join(choices)}; found "{value}".')
        if self.technique == "vocoder" and self.formants == "kept":
            raise MethodError("The phase vocoder moves the formants; to keep them, take the technique psola.")

    @property
    def ratio(self) -> float:
        """What F0 is multiplied by."""
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
    output = _technique(shift)(source, shift.ratio)
    return _finish(output, samples, rate, offset, shift.level)


def _technique(shift: PitchShift) -> Callable[[PitchSource, float], Floats]:
    from anonymization.methods import phase_vocoder, psola

    if shift.technique == "vocoder":
        return phase_vocoder.shift_by_vocoder
    return partial(psola.shift_by_psola, keep_formants=shift.formants == "kept")


def _finish(output: Floats, original: Samples, rate: int, offset: float, level: Level) -> Samples:
    """Silence put back, then the offset, scaled and rounded to int16; an output of zeros stays zeros."""
    from anonymization.methods import _level_kernel as kernel

    original = np.ascontiguousarray(original)
    kernel.mute_runs_of_zeros(original, output, -offset, round(_SILENCE_S * rate))
    wanted, energy, peak = kernel.measure(original, output, offset)
    if energy == 0.0:
        return np.zeros(output.size, np.int16)
    gain = _PEAK / peak if level == "peak" else min(math.sqrt(wanted / energy), _MAX_GAIN)
    return kernel.quantize(output, offset, min(gain, _FULL_SCALE / peak))


def _process(
    technique: Technique,
    samples: Samples,
    rate: int,
    parameters: Mapping[str, float],
    options: Options,
    _threads: int,
) -> Samples:
    values = {name: str(value) for name, value in options.items()}
    return shift_pitch(samples, rate, PitchShift(parameters["shift"], technique, **values))  # type: ignore[arg-type]


_SHIFT = Parameter(
    name="shift",
    unit="cents",
    low=-600.0,
    high=600.0,
    gap=(-200.0, 200.0),
    meaning="how far the pitch moves: 100 cents are a semitone",
    effect=(
        "Below 0 the voice gets lower and its resonances with it, as of a larger speaker; above 0 higher, as of a "
        "smaller one."
    ),
)
_LEVEL = Option(
    name="level",
    default="kept",
    meaning=(
        "kept: the RMS level of the original, less only where a sample would clip; peak: the largest sample at full "
        "scale, as B2 does"
    ),
    choices=get_args(Level),
)
_FORMANTS = Option(
    name="formants",
    default="moved",
    meaning="moved: with F0, by resampling, as T32 does; kept: only F0 moves, the resonances of the voice stay",
    choices=get_args(Formants),
)
_T32 = "System T32 of the VoicePrivacy Challenge 2022 (its results paper, IEEE/ACM TASLP 2024)"
METHODS = (
    Method(
        name="pitch-shift-psola",
        title="T32: pitch shift, TD-PSOLA",
        version="1",
        reference=(
            f"{_T32}; E. Moulines, F. Charpentier: Pitch-synchronous waveform processing techniques for text-to-speech "
            "synthesis using diphones. Speech Communication 9, 1990"
        ),
        process=partial(_process, "psola"),
        parameters=(_SHIFT,),
        options=(_LEVEL, _FORMANTS),
    ),
    Method(
        name="pitch-shift-vocoder",
        title="T32: pitch shift, phase vocoder",
        version="1",
        reference=(
            f"{_T32}; J. Laroche, M. Dolson: Improved phase vocoder time-scale modification of audio. IEEE "
            "Transactions on Speech and Audio Processing 7, 1999"
        ),
        process=partial(_process, "vocoder"),
        parameters=(_SHIFT,),
        options=(_LEVEL,),
    ),
)
