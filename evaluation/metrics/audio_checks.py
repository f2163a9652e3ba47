"""An anonymised utterance beside its original: duration, level, clipping, identity.

`check_audio` measures once into an `AudioCheck`; `audio_problems` turns what is out of order into
sentences. An empty, silent or non-finite utterance is a result, not an exception. `find_damage` looks
for flattened peaks, gaps and a missing upper half of the spectrum, which no level shows.

Conventions: full scale is 1.0 (int16 divided by 32768); levels are root mean squares in dB relative
to full scale, None for digital silence; differences are anonymised minus original.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.problems import Problem, Severity
from speech.audio.files import INT16_FULL_SCALE, to_unit_scale

# `max_len_diff` of the 2022 recipe, which only warns.
MAX_DURATION_DIFFERENCE_MS = 65.0
# Published systems stay within -19 to +14 dB on real speech; one that normalises the peak lifts
# quiet recordings further, which is why this is only noted.
MAX_LEVEL_CHANGE_DB = 24.0
# One sample in a thousand at full scale is audible as distortion; single peaks are not.
MAX_CLIPPED_SHARE = 0.001
# Damage. Of 402 originals (LibriSpeech, VCTK, RAVDESS), 192 recordings of six published systems, and B2 at 0.5 to 0.9
# the worst has 0.3 % flattened samples, no gap, and is 3.4 dB above rounding.
MAX_FLATTENED_SHARE = 0.005
SHORTEST_GAP_S = 0.01
MIN_ABOVE_ROUNDING_DB, ORIGINAL_ABOVE_ROUNDING_DB = 2.0, 20.0
UPPER_BAND = (5 / 8, 15 / 16)  # of half the rate: 5 to 7.5 kHz at 16 kHz
_EDGE_S, _LOUD_EDGE, _FRAME = 0.03, 0.3, 512

_FULL_SCALE = (INT16_FULL_SCALE - 1) / INT16_FULL_SCALE


@dataclass(frozen=True, slots=True)
class AudioCheck:
    """What was measured of an anonymised utterance beside its original.

    Attributes:
        n_samples_original, n_samples_anonymised: lengths.
        rate: samples per second of both.
        level_original_dbfs, level_anonymised_dbfs: root mean square; None for digital silence.
        peak_dbfs: largest magnitude of the anonymised utterance; None for digital silence.
        clipped_share: anonymised samples at or above int16's largest value, in [0, 1].
        n_not_finite: anonymised samples that are NaN or infinite; 0 in levels and peak.
        identical: same length and the same samples, bit for bit.
    """

    n_samples_original: int
    n_samples_anonymised: int
    rate: int
    level_original_dbfs: float | None
    level_anonymised_dbfs: float | None
    peak_dbfs: float | None
    clipped_share: float
    n_not_finite: int
    identical: bool

    @property
    def duration_difference_samples(self) -> int:
        return self.n_samples_anonymised - self.n_samples_original

    @property
    def duration_difference_ms(self) -> float:
        return 1000.0 * self.duration_difference_samples / self.rate

    @property
    def level_change_db(self) -> float | None:
        """Anonymised minus original level; None where one of them is digital silence."""
        if self.level_original_dbfs is None or self.level_anonymised_dbfs is None:
            return None
        return self.level_anonymised_dbfs - self.level_original_dbfs

    @property
    def silent(self) -> bool:
        """Return whether the anonymised utterance is empty or digital silence."""
        return self.level_anonymised_dbfs is None


def check_audio(original: NDArray[np.generic], anonymised: NDArray[np.generic], rate: int) -> AudioCheck:
    """Measure an anonymised utterance beside its original.

    Args:
        original: shape (samples,), int16, or floating point in [-1, 1].
        anonymised: likewise; may differ in length and type.
        rate: samples per second of both.

    Raises:
        InputError: not mono, neither int16 nor floating point, or a rate below 1.
    """
    if rate <= 0:
        raise InputError(f"Audio checks need a positive sampling rate, found {rate}.")
    before = to_unit_scale(original)
    after = to_unit_scale(anonymised)
    finite = np.isfinite(after)
    magnitude = np.where(finite, np.abs(after), 0.0)
    return AudioCheck(
        n_samples_original=before.size,
        n_samples_anonymised=after.size,
        rate=rate,
        level_original_dbfs=_level(np.where(np.isfinite(before), before, 0.0)),
        level_anonymised_dbfs=_level(magnitude),
        peak_dbfs=_decibel(float(magnitude.max(initial=0.0))),
        clipped_share=float(np.mean(magnitude >= _FULL_SCALE)) if after.size else 0.0,
        n_not_finite=int(after.size - np.count_nonzero(finite)),
        identical=after.size > 0 and np.array_equal(before, after),
    )


def audio_problems(check: AudioCheck, file: str, *, keeps_duration: bool = True) -> list[Problem]:
    """Return what is out of order in an anonymised utterance, the gravest first.

    Args:
        check: from `check_audio`.
        file: the anonymised file as its owner knows it.
        keeps_duration: whether another duration than the original's is out of order.
    """
    problems: list[Problem] = []

    def add(code: str, expected: str, found: str, remedy: str, severity: Severity = Severity.ERROR) -> None:
        problems.append(Problem(code, file, expected, found, remedy, severity))

    samples, change_db = check.n_samples_anonymised, check.level_change_db
    if check.n_not_finite:
        found = f"{check.n_not_finite} of {samples} that are NaN or infinite"
        remedy = "Look for a division by zero in the anonymiser and write the file again."
        add("not-finite", "finite samples", found, remedy)
    if check.silent:
        found = f"{samples} samples of digital silence" if samples else "no samples"
        found += " (the original is silent, too)" if check.level_original_dbfs is None else ""
        add("silent", "speech", found, "Anonymise this utterance again and listen to it.")
    if check.identical:
        remedy = "This utterance was not anonymised: run the anonymiser on it."
        add("identical-to-original", "anonymised speech", f"all {samples} samples equal to the original", remedy)
    if keeps_duration and abs(check.duration_difference_ms) > MAX_DURATION_DIFFERENCE_MS:
        original = f"the duration of the original, {check.n_samples_original} samples"
        found = f"{samples} samples ({check.duration_difference_ms:+.0f} ms)"
        remedy = "Make sure that the anonymiser neither cuts nor pads."
        expected = f"{original}, to within {MAX_DURATION_DIFFERENCE_MS:g} ms"
        add("duration-differs", expected, found, remedy, Severity.WARNING)
    if check.clipped_share > MAX_CLIPPED_SHARE:
        expected = f"at most {MAX_CLIPPED_SHARE:.1%} of the samples at full scale"
        remedy = "Lower the gain before the samples are converted to 16 bit."
        add("clipped", expected, f"{check.clipped_share:.1%}", remedy, Severity.WARNING)
    if change_db is not None and abs(change_db) > MAX_LEVEL_CHANGE_DB:
        expected = f"the level of the original to within {MAX_LEVEL_CHANGE_DB:g} dB"
        remedy = "Fine where the anonymiser normalises levels on purpose; check its gain otherwise."
        add("level-changed", expected, f"a change of {change_db:+.1f} dB", remedy, Severity.NOTE)
    return problems


@dataclass(frozen=True, slots=True)
class Damage:
    """What no level shows of a recording.

    Attributes:
        flattened_share: samples in runs of three or more equal ones above half of the peak, as clipping at any level
            leaves them, in [0, 1].
        gap_s: of all runs of zeros of 10 ms or more between loud speech where the original goes on, seconds; 0 where
            the lengths do not allow to compare.
        above_rounding_db: level of `UPPER_BAND` in the louder frames above that of rounding to 16 bit; speech that was
            once at half the rate has 0. None of less than two frames.
    """

    flattened_share: float
    gap_s: float
    above_rounding_db: float | None


def find_damage(samples: NDArray[np.int16], rate: int, original: NDArray[np.int16] | None = None) -> Damage:
    """Look for damage in a recording.

    Args:
        samples: shape (n,), int16.
        rate: samples per second of both.
        original: what it was made of, shape (m,); without it, or with a length that differs by more than
            `MAX_DURATION_DIFFERENCE_MS`, gaps cannot be told from pauses and are not looked for.

    Example:
        >>> find_damage(np.tile(np.int16([0, 9, 9, 9, 0, -9, -9, -9]), 200), 16000).flattened_share
        0.75
    """
    near = original is not None and abs(original.size - samples.size) <= MAX_DURATION_DIFFERENCE_MS * rate / 1000
    gap_s = _gap_seconds(samples, original, rate) if near and original is not None else 0.0
    return Damage(_flattened_share(samples), gap_s, _above_rounding_db(samples))


def damage_signs(anonymised: Damage, original: Damage | None) -> list[str]:
    """Return the signs of damage that the original does not have: ``flattened``, ``gaps``, ``narrow-band``."""
    signs = []
    before = original.flattened_share if original is not None else 0.0
    if anonymised.flattened_share > max(MAX_FLATTENED_SHARE, 2 * before):
        signs.append("flattened")
    if anonymised.gap_s > 0:
        signs.append("gaps")
    after = anonymised.above_rounding_db
    had = original.above_rounding_db if original is not None else None
    if after is not None and had is not None and after <= MIN_ABOVE_ROUNDING_DB and had >= ORIGINAL_ABOVE_ROUNDING_DB:
        signs.append("narrow-band")
    return signs


def _runs(flags: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of each run of true values."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return edges[::2], edges[1::2]


def _flattened_share(samples: NDArray[np.int16]) -> float:
    if samples.size < 3:
        return 0.0
    magnitude = np.abs(samples.astype(np.int32))
    starts, stops = _runs(samples[1:] == samples[:-1])
    is_flat = (stops - starts >= 2) & (magnitude[starts] > magnitude.max() / 2)
    return float((stops - starts + 1)[is_flat].sum() / samples.size)


def _gap_seconds(samples: NDArray[np.int16], original: NDArray[np.int16], rate: int) -> float:
    """Return runs of zeros with loud speech at both edges, during which the original is no pause."""
    signal, before = samples.astype(np.float64), original.astype(np.float64)
    edge = int(_EDGE_S * rate)
    loud, spoken = (_LOUD_EDGE * _root_mean_square(each) for each in (signal, before))
    found = 0
    for start, stop in zip(*_runs(samples == 0), strict=True):
        if stop - start < SHORTEST_GAP_S * rate or start < edge or stop > samples.size - edge:
            continue
        sides = min(_root_mean_square(signal[start - edge : start]), _root_mean_square(signal[stop : stop + edge]))
        if sides > loud and _root_mean_square(before[start:stop]) > spoken:
            found += int(stop - start)
    return found / rate


def _above_rounding_db(samples: NDArray[np.int16]) -> float | None:
    frames = samples[: samples.size // _FRAME * _FRAME].reshape(-1, _FRAME).astype(np.float64)
    if len(frames) < 2:
        return None
    window = np.blackman(_FRAME)
    power = np.abs(np.fft.rfft((frames - frames.mean()) * window)) ** 2
    low, high = (round(share * _FRAME / 2) for share in UPPER_BAND)
    total = power.sum(axis=1)
    upper = np.quantile(power[total >= np.median(total), low:high].mean(axis=1), 0.9)
    return 10 * math.log10(max(float(upper), 1e-9) / (float(np.square(window).sum()) / 12))


def _root_mean_square(signal: NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(np.square(signal)))) if signal.size else 0.0


def _level(signal: NDArray[np.float64]) -> float | None:
    """Return root mean square in dB relative to full scale; None for digital silence and for nothing."""
    return _decibel(_root_mean_square(signal))


def _decibel(amplitude: float) -> float | None:
    return 20.0 * math.log10(amplitude) if amplitude > 0 else None
