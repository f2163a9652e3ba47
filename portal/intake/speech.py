"""An anonymised utterance as it came: decoded once, measured, held against its original, and made 16-bit mono.

Not to be accepted (errors): what cannot be decoded (``not-audio``, ``empty``, ``truncated``, ``false-header``,
``damaged``, ``unknown-length``), ``not-mono``, ``not-finite``, ``too-large``, ``too-long``, ``too-short``, ``silent``,
``identical-to-original``, and ``longer`` or ``shorter`` than the original by more than `LONGER_FACTOR`. Warnings:
``longer`` or ``shorter`` by more than 65 ms, ``another-rate``, ``clipped``, ``dc-offset``, ``quiet``, ``loud``; notes:
``another-encoding``, ``unstated-length``. One fault is told once: what is empty is not silent and too short as well.

The original is recognised by the hash of its samples, so in any container, also in one of more bits. Not caught: a copy
of it with another gain, shifted in time, or converted to another rate.

Conventions: full scale is 1.0 (int16 / 32768); levels are in dB of full scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.formats.audio import SILENCE_PEAK, AudioError, DecodedAudio, decode_audio, resample, to_pcm16
from evaluation.formats.problems import Problem, Severity
from portal.submissions.intake.expected import ExpectedUtterance, pcm_sha256
from portal.submissions.intake.wav import read_header

LARGEST_BYTES = 64 * 10**6
SHORTEST_S = 0.04  # Praat's pitch analysis needs 640 samples at 16 kHz
LONG_S, LONGEST_S = 60.0, 600.0
MAX_DIFFERENCE_S = 0.065  # `max_len_diff` of the 2022 recipe, which only warns
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
        """Whether the file cannot be accepted."""
        return any(problem.severity is Severity.ERROR for problem in self.problems)


@dataclass(frozen=True, slots=True)
class _Measures:
    """Of all samples, full scale 1.0; what surrounds the mean is measured without it."""

    mean: float
    rms: float
    peak: float
    clipped: int  # samples at full scale in runs of `CLIPPED_RUN` or more


def inspect_speech(content: bytes, *, file: str, expected: ExpectedUtterance, rate_hz: int) -> Inspection:
    """Decode a WAV or FLAC file, measure and convert it.

    Whether its length is that of its original, `length_problem` says: the length of what turns out to be a copy of
    another utterance is no fault of its own.

    Args:
        content: the bytes of the file.
        file: its path as its owner knows it.
        expected: the original.
        rate_hz: sampling rate of the challenge.
    """
    try:
        decoded, states_length = _decode(content, expected)
        _check_finite(decoded.samples)
        _check_rate(decoded, expected, rate_hz)
    except AudioError as error:
        return Inspection(None, (error.problem(file),))
    speech = _converted(decoded, rate_hz)
    problems = list(_conversions(decoded, states_length, rate_hz, file))
    if fatal := _not_the_utterance(speech, expected, file):
        return Inspection(speech, (fatal,))
    low, high = int(speech.samples.min()), int(speech.samples.max())
    if (high - low) / 2 <= SILENCE_PEAK * 32768:
        return Inspection(speech, (_silent(low, high, file),))
    problems += _level_problems(_measure(speech.samples, low, high), speech.samples.size, file)
    return Inspection(speech, tuple(problems))


def length_problem(samples: int, expected: ExpectedUtterance, rate_hz: int, file: str) -> Problem | None:
    """The difference to the length of the original, where it is one; the official scripts go on after a warning."""
    if expected.samples is None:
        return None
    original_s, found_s = expected.samples / (expected.rate_hz or rate_hz), samples / rate_hz
    difference_s = found_s - original_s
    if abs(difference_s) <= MAX_DIFFERENCE_S + 1e-9:
        return None
    is_error = max(found_s, original_s) > LONGER_FACTOR * min(found_s, original_s)
    remedy = "Make sure that the anonymiser neither cuts nor pads; fine where it changes the pace on purpose."
    if is_error:
        remedy = "This can hardly be the utterance: look for a wrong file, a wrong rate or an output that was joined."
    return Problem(
        "longer" if difference_s > 0 else "shorter",
        file,
        f"the {original_s:.3f} s of the original to within {MAX_DIFFERENCE_S * 1000:g} ms",
        f"{found_s:.3f} s ({difference_s:+.3f} s)",
        remedy,
        Severity.ERROR if is_error else Severity.WARNING,
    )


def not_anonymised(samples: int, file: str, source: str = "") -> Problem:
    """The fault of a file that holds an original, its own or that of the utterance `source`."""
    found = f"all {samples} samples of the original{f' of {source}' if source else ''}"
    remedy = "This utterance was not anonymised: run the anonymiser on it."
    return Problem("identical-to-original", file, "anonymised speech", found, remedy)


def _decode(content: bytes, expected: ExpectedUtterance) -> tuple[DecodedAudio, bool]:
    """The samples, and whether the header states their number."""
    original_s = expected.samples / expected.rate_hz if expected.samples and expected.rate_hz else LONGEST_S
    longest_s = min(max(LONG_S, 4 * original_s), LONGEST_S)
    header = read_header(content)
    states_length = header is None or header.states_length
    if header and header.is_plain and header.stop - header.start <= 2 * longest_s * header.rate_hz:
        return header.decode(content), states_length
    try:
        return decode_audio(BytesIO(content), longest_s=longest_s), states_length
    except AudioError as error:
        if error.code == "damaged" and content[:4] == b"RIFF":  # the decoder's word for a length that is not true
            raise AudioError("false-header", error.expected, error.found, error.remedy) from error
        raise


def _check_finite(samples: NDArray[Any]) -> None:
    if samples.dtype == np.int16 or np.isfinite(samples).all():
        return
    nans, infinite = int(np.isnan(samples).sum()), int(np.isinf(samples).sum())
    found = " and ".join(f"{count} {name}" for count, name in ((nans, "NaN"), (infinite, "infinite")) if count)
    remedy = "Look for a division by zero or an overflow in the anonymiser and make the utterance again."
    raise AudioError("not-finite", f"{samples.size} samples that are numbers", found, remedy)


def _check_rate(decoded: DecodedAudio, expected: ExpectedUtterance, rate_hz: int) -> None:
    """As many samples as the original under another rate: the header lies, or the utterance plays at another speed."""
    if decoded.rate_hz == rate_hz or expected.rate_hz != rate_hz or not expected.samples:
        return
    if abs(decoded.samples.size - expected.samples) <= MAX_DIFFERENCE_S * rate_hz:
        found = f"a header that states {decoded.rate_hz} Hz for about as many samples as the original has"
        remedy = "The samples are probably right and the header is not: write the file with the true rate."
        raise AudioError("false-header", f"{rate_hz} Hz", found, remedy)


def _converted(decoded: DecodedAudio, rate_hz: int) -> InspectedSpeech:
    was = "" if decoded.encoding == "PCM_16" and decoded.rate_hz == rate_hz else _words(decoded)
    samples = to_pcm16(decoded.samples)
    if decoded.rate_hz != rate_hz:
        samples = resample(samples, decoded.rate_hz, rate_hz)
    return InspectedSpeech(samples, rate_hz, pcm_sha256(samples), was)


def _words(decoded: DecodedAudio) -> str:
    return f"{decoded.rate_hz} Hz, {decoded.encoding}, {decoded.format}"


def _conversions(decoded: DecodedAudio, states_length: bool, rate_hz: int, file: str) -> Iterator[Problem]:
    if decoded.rate_hz != rate_hz:
        remedy = "It was converted, which may cost or add something at the edge of the band: send the challenge's rate."
        found = f"{decoded.rate_hz} Hz"
        yield Problem("another-rate", file, f"{rate_hz} Hz", found, remedy, Severity.WARNING)
    if decoded.encoding in _COARSE:
        remedy = "It was converted, but its noise stays: write 16 bit."
        yield Problem("another-encoding", file, "16-bit PCM", decoded.encoding, remedy, Severity.WARNING)
    elif decoded.encoding != "PCM_16":
        remedy = "It was rounded to 16 bit, which is what the evaluation reads; nothing needs to be done."
        yield Problem("another-encoding", file, "16-bit PCM", decoded.encoding, remedy, Severity.NOTE)
    if not states_length:
        remedy = "It was read to its end, but nobody can see whether it was cut: write to a file, not to a pipe."
        found = "none, as encoders leave it that write to a pipe"
        yield Problem("unstated-length", file, "a header that states the length", found, remedy, Severity.NOTE)


def _not_the_utterance(speech: InspectedSpeech, expected: ExpectedUtterance, file: str) -> Problem | None:
    """What makes every further remark pointless."""
    samples = speech.samples
    original_s = expected.samples / (expected.rate_hz or speech.rate_hz) if expected.samples else math.inf
    if samples.size < min(SHORTEST_S, original_s) * speech.rate_hz:
        found = f"{samples.size / speech.rate_hz:.4f} s"
        remedy = "No measure is defined for it: make the whole utterance again."
        return Problem("too-short", file, f"at least {SHORTEST_S:g} s", found, remedy)
    if speech.pcm_sha256 == expected.pcm_sha256:
        return not_anonymised(samples.size, file)
    return None


def _silent(low: int, high: int, file: str) -> Problem:
    found = "digital silence" if low == high == 0 else f"samples between {low} and {high} of ±32768"
    return Problem("silent", file, "speech", found, "Make this utterance again and listen to it.")


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
    """How many samples lie at the largest or smallest value in runs of `CLIPPED_RUN` or more."""
    count = 0
    for is_full in (samples == 32767, samples <= -32767):
        edges = np.flatnonzero(np.diff(is_full, prepend=False, append=False))
        runs = edges[1::2] - edges[::2]
        count += int(runs[runs >= CLIPPED_RUN].sum())
    return count


def _level_problems(measures: _Measures, samples: int, file: str) -> Iterator[Problem]:
    """What deserves a look at the level; loud is not what is only clipped."""
    share = measures.clipped / samples
    if share > MAX_CLIPPED_SHARE:
        expected = f"at most {MAX_CLIPPED_SHARE:.1%} of the samples in runs at full scale"
        remedy = "Lower the gain before the samples are converted to 16 bit."
        yield Problem("clipped", file, expected, f"{share:.1%}", remedy, Severity.WARNING)
    elif measures.rms > LOUD_RMS:
        expected = f"a level of at most {_decibel(LOUD_RMS):.0f} dB of full scale"
        remedy = "No speech is this loud unless it was compressed or is noise: listen to it."
        yield Problem("loud", file, expected, f"{_decibel(measures.rms):.1f} dB", remedy, Severity.WARNING)
    if abs(measures.mean) > MAX_DC:
        expected = f"a mean within ±{MAX_DC:g} of full scale"
        remedy = "Subtract the mean of the samples; an offset disturbs levels and filters."
        yield Problem("dc-offset", file, expected, f"{measures.mean:+.4f}", remedy, Severity.WARNING)
    if measures.peak < QUIET_PEAK:
        expected = f"a peak of at least {_decibel(QUIET_PEAK):.0f} dB of full scale"
        remedy = "Raise the gain: so little of 16 bit is used that rounding is heard."
        yield Problem("quiet", file, expected, f"{_decibel(measures.peak):.1f} dB", remedy, Severity.WARNING)


def _decibel(amplitude: float) -> float:
    return 20 * math.log10(amplitude)
