"""An anonymised utterance as it came: decoded once, measured, held against its original, and made 16-bit mono.

Not to be accepted (errors): what cannot be decoded (``not-audio``, ``empty``, ``truncated``, ``false-header``,
``damaged``, ``unknown-length``), ``not-mono``, ``not-finite``, ``too-large``, ``too-long``, ``too-short``, ``silent``,
``identical-to-original``, and ``longer`` or ``shorter`` than the original by more than `LONGER_FACTOR`; silence and
lengths are warnings where an edition lets durations change. Warnings:
``longer`` or ``shorter`` by more than 65 ms, ``another-rate``, ``clipped``, ``dc-offset``, ``quiet``, ``loud``; notes:
``another-encoding``, ``unstated-length``. One problem is told once: what is empty is not silent and too short as well.

The original is recognised by the hash of its samples, so in any container, also in one of more bits. Not caught: a copy
of it with another gain, shifted in time, or converted to another rate.

Conventions: full scale is 1.0 (int16 / 32768); levels are in dB of full scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.problems import Problem, Severity
from portal.intake.expectation import ExpectedUtterance, pcm_sha256
from portal.intake.problem_codes import describe, fill
from speech.audio.files import (
    MAX_DIFFERENCE_S,
    SILENCE_PEAK,
    AudioError,
    DecodedAudio,
    check_stated_rate,
    decode_audio,
    resample,
    to_pcm16,
)

SHORTEST_S = 0.04  # Praat's pitch analysis needs 640 samples at 16 kHz
LONG_S, LONGEST_S = 60.0, 600.0
LONGER_FACTOR = 2.0  # beyond it frames of the two no longer belong together
MAX_DC = 0.05  # recordings of the corpora reach 0.047 after B2
QUIET_PEAK = 1e-3  # −60 dB; the quietest recording of the challenge's corpora peaks at −41 dB
LOUD_RMS = 0.5  # −6 dB; speech at full scale lies about 15 dB below
CLIPPED_RUN = 3  # samples at full scale in a row that no unclipped speech makes
MAX_CLIPPED_SHARE = 0.001
_supply = np.ones(1 << 19, np.float32)
_COARSE = ("PCM_S8", "PCM_U8", "ULAW", "ALAW")


@dataclass(frozen=True, slots=True)
class InspectedSpeech:
    """An utterance as it is kept and evaluated.

    Attributes:
        samples: int16, shape (n,), at `rate_hz`; read-only where the file held them like this.
        rate_hz: sampling rate of the challenge.
        pcm_sha256: of the samples.
        converted_from: what the file was where it had to be converted, such as ``44100 Hz, PCM_24, WAV``; else empty.
    """

    samples: NDArray[np.int16]
    rate_hz: int
    pcm_sha256: str
    converted_from: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found in a file; `speech` is None where it has no samples that could be used."""

    speech: InspectedSpeech | None
    problems: tuple[Problem, ...]

    @property
    def has_errors(self) -> bool:
        """Return whether the file cannot be accepted."""
        return any(problem.severity is Severity.ERROR for problem in self.problems)


@dataclass(frozen=True, slots=True)
class _Measures:
    """Of all samples, full scale 1.0; what surrounds the mean is measured without it."""

    mean: float
    rms: float
    peak: float
    clipped: int  # samples at full scale in runs of `CLIPPED_RUN` or more


def inspect_speech(
    content: bytes, *, file: str, expected: ExpectedUtterance, rate_hz: int, keeps_duration: bool = True
) -> Inspection:
    """Decode a WAV or FLAC file, measure and convert it.

    Whether its length is that of its original, `length_problem` says: the length of what turns out to be a copy of
    another utterance is no problem of its own.

    Args:
        content: the bytes of the file.
        file: its path as its owner knows it.
        expected: the original.
        rate_hz: sampling rate of the challenge.
        keeps_duration: as the recipe of the edition says.
    """
    try:
        decoded = _decode(content, expected)
        _check_finite(decoded.samples)
        if expected.samples and expected.rate_hz == rate_hz:
            stated = {"original": expected.samples, "original_hz": rate_hz}
            check_stated_rate(decoded.samples.size, decoded.rate_hz, **stated)
    except AudioError as error:
        return Inspection(None, (error.problem(file),))
    speech = _converted(decoded, rate_hz)
    problems = list(_conversions(decoded, rate_hz, file))
    if fatal := _not_the_utterance(speech, expected, file):
        return Inspection(speech, (fatal,))
    low, high = int(speech.samples.min()), int(speech.samples.max())
    if (high - low) / 2 <= SILENCE_PEAK:
        return Inspection(speech, (_silent(low, high, file, keeps_duration),))
    problems += _level_problems(_measure(speech.samples, low, high), speech.samples.size, file)
    return Inspection(speech, tuple(problems))


def length_problem(
    samples: int, expected: ExpectedUtterance, rate_hz: int, file: str, *, keeps_duration: bool = True
) -> Problem | None:
    """Return the difference to the length of the original, where it is one; the official scripts go on after a
    warning."""
    if expected.samples is None:
        return None
    original_s, found_s = expected.samples / (expected.rate_hz or rate_hz), samples / rate_hz
    difference_s = found_s - original_s
    if abs(difference_s) <= MAX_DIFFERENCE_S + 1e-9:
        return None
    is_far = max(found_s, original_s) > LONGER_FACTOR * min(found_s, original_s)
    kind = f"{'longer' if difference_s > 0 else 'shorter'}/{'far' if is_far and keeps_duration else 'somewhat'}"
    lengths: dict[str, Any] = {"original_s": original_s, "found_s": found_s, "difference_s": difference_s}
    return describe(kind, file, within_ms=MAX_DIFFERENCE_S * 1000, **lengths)


def not_anonymised(samples: int, file: str, source: str = "") -> Problem:
    """Return the problem of a file that holds an original, its own or that of the utterance `source`."""
    return describe("identical-to-original", file, samples=samples, source=f" of {source}" if source else "")


def _decode(content: bytes, expected: ExpectedUtterance) -> DecodedAudio:
    """Return all samples of an utterance that is not much longer than its original."""
    original_s = expected.samples / expected.rate_hz if expected.samples and expected.rate_hz else LONGEST_S
    longest_s = min(max(LONG_S, 4 * original_s), LONGEST_S)
    return decode_audio(BytesIO(content), longest_s=longest_s)


def _check_finite(samples: NDArray[Any]) -> None:
    if samples.dtype == np.int16 or np.isfinite(samples).all():
        return
    nans, infinite = int(np.isnan(samples).sum()), int(np.isinf(samples).sum())
    found = " and ".join(f"{count} {name}" for count, name in ((nans, "NaN"), (infinite, "infinite")) if count)
    raise AudioError(*fill("not-finite", samples=samples.size, found=found))


def _converted(decoded: DecodedAudio, rate_hz: int) -> InspectedSpeech:
    was = "" if decoded.encoding == "PCM_16" and decoded.rate_hz == rate_hz else _words(decoded)
    samples = to_pcm16(decoded.samples)
    if decoded.rate_hz != rate_hz:
        samples = resample(samples, decoded.rate_hz, rate_hz)
    return InspectedSpeech(samples, rate_hz, pcm_sha256(samples), was)


def _words(decoded: DecodedAudio) -> str:
    return f"{decoded.rate_hz} Hz, {decoded.encoding}, {decoded.format}"


def _conversions(decoded: DecodedAudio, rate_hz: int, file: str) -> Iterator[Problem]:
    if decoded.rate_hz != rate_hz:
        yield describe("another-rate", file, rate_hz=rate_hz, found_hz=decoded.rate_hz)
    if decoded.encoding != "PCM_16":
        kind = "another-encoding/coarse" if decoded.encoding in _COARSE else "another-encoding/fine"
        yield describe(kind, file, encoding=decoded.encoding)
    if not decoded.states_length:
        yield describe("unstated-length", file)


def _not_the_utterance(speech: InspectedSpeech, expected: ExpectedUtterance, file: str) -> Problem | None:
    """Return what makes every further note pointless."""
    samples = speech.samples
    original_s = expected.samples / (expected.rate_hz or speech.rate_hz) if expected.samples else math.inf
    if samples.size < min(SHORTEST_S, original_s) * speech.rate_hz:
        return describe("too-short/speech", file, shortest_s=SHORTEST_S, found_s=samples.size / speech.rate_hz)
    if speech.pcm_sha256 == expected.pcm_sha256:
        return not_anonymised(samples.size, file)
    return None


def _silent(low: int, high: int, file: str, keeps_duration: bool) -> Problem:
    found = "digital silence" if low == high == 0 else f"samples between {low} and {high} of ±32768"
    problem = describe("silent/speech", file, found=found)
    return problem if keeps_duration else replace(problem, severity=Severity.WARNING)


def _measure(samples: NDArray[np.int16], low: int, high: int) -> _Measures:
    scaled = samples.astype(np.float32)
    mean = float(np.dot(scaled, _ones(scaled.size))) / samples.size  # three times as fast as its mean()
    power = float(np.dot(scaled, scaled)) / samples.size - mean * mean
    is_clipped = high == 32767 or low == -32768
    return _Measures(
        mean=mean / 32768,
        rms=math.sqrt(max(power, 0.0)) / 32768,
        peak=max(high - mean, mean - low) / 32768,
        clipped=_clipped_samples(samples) if is_clipped else 0,
    )


def _ones(count: int) -> NDArray[np.float32]:
    """So many ones, from a supply that grows with the longest utterance met."""
    global _supply
    if _supply.size < count:
        _supply = np.ones(2 * count, np.float32)
    return _supply[:count]


def _clipped_samples(samples: NDArray[np.int16]) -> int:
    """Return how many samples lie at the largest or smallest value in runs of `CLIPPED_RUN` or more."""
    count = 0
    for is_full in (samples == 32767, samples <= -32767):
        edges = np.flatnonzero(np.diff(is_full, prepend=False, append=False))
        runs = edges[1::2] - edges[::2]
        count += int(runs[runs >= CLIPPED_RUN].sum())
    return count


def _level_problems(measures: _Measures, samples: int, file: str) -> Iterator[Problem]:
    """Yield what deserves a look at the level; loud is not what is only clipped."""
    share = measures.clipped / samples
    if share > MAX_CLIPPED_SHARE:
        yield describe("clipped", file, limit=MAX_CLIPPED_SHARE, share=share)
    elif measures.rms > LOUD_RMS:
        yield describe("loud", file, limit=_decibel(LOUD_RMS), level=_decibel(measures.rms))
    if abs(measures.mean) > MAX_DC:
        yield describe("dc-offset", file, limit=MAX_DC, mean=measures.mean)
    if measures.peak < QUIET_PEAK:
        yield describe("quiet", file, limit=_decibel(QUIET_PEAK), level=_decibel(measures.peak))


def _decibel(amplitude: float) -> float:
    return 20 * math.log10(amplitude)
