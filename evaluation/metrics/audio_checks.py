"""An anonymised utterance beside its original: duration, level, clipping, identity.

`check_audio` measures once into an `AudioCheck`; `audio_problems` turns what is out of order into
sentences. An empty, silent or non-finite utterance is a result, not an exception.

Conventions: full scale is 1.0 (int16 divided by 32768); levels are root mean squares in dB relative
to full scale, None for digital silence; differences are anonymised minus original.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import MetricInputError
from common.problems import Problem, Severity
from speech.audio.files import INT16_FULL_SCALE, to_unit_scale

# `max_len_diff` of the 2022 recipe, which only warns.
MAX_DURATION_DIFFERENCE_MS = 65.0
# Published systems stay within -19 to +14 dB on real speech; one that normalises the peak lifts
# quiet recordings further, which is why this is only noted.
MAX_LEVEL_CHANGE_DB = 24.0
# One sample in a thousand at full scale is audible as distortion; single peaks are not.
MAX_CLIPPED_SHARE = 0.001

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
        """Whether the anonymised utterance is empty or digital silence."""
        return self.level_anonymised_dbfs is None


def check_audio(original: NDArray[np.generic], anonymised: NDArray[np.generic], rate: int) -> AudioCheck:
    """Measure an anonymised utterance beside its original.

    Args:
        original: shape (samples,), int16, or floating point in [-1, 1].
        anonymised: likewise; may differ in length and type.
        rate: samples per second of both.

    Raises:
        MetricInputError: not mono, neither int16 nor floating point, or a rate below 1.
    """
    if rate <= 0:
        raise MetricInputError(f"Audio checks need a positive sampling rate, found {rate}.")
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
    """What is out of order in an anonymised utterance, the gravest first.

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


def _level(signal: NDArray[np.float64]) -> float | None:
    """Root mean square in dB relative to full scale; None for digital silence and for nothing."""
    return _decibel(math.sqrt(float(np.mean(np.square(signal))))) if signal.size else None


def _decibel(amplitude: float) -> float | None:
    return 20.0 * math.log10(amplitude) if amplitude > 0 else None
