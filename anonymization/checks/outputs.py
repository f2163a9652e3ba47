"""What an anonymised utterance must hold, from any source: a portal run, a command line, a team.

Hours of speech are measured in blocks, so that the checks take no more memory than a few minutes do. Conventions:
samples are int16, shape (n,), `rate` in hertz; problems are `Problem`s, never exceptions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from common.arrays import Samples
from common.problems import Problem, Severity
from evaluation.metrics.audio_checks import AudioCheck, audio_problems, check_audio

# Longer than any closure of a stop; frames further below the loudest one are pauses.
LOST_SPEECH_MS = 100.0
_SPOKEN_DB = 40.0
_FRAME_MS = 10.0
# Frames and periods of the methods are up to so long; what is shorter may come back silent, or as it was.
_SHORTEST_MS = 100.0
_OF_SHORT = ("silent", "identical-to-original")
_TOO_SHORT = "It is too short to be anonymised, by this method or most others: leave it out."
_NO_WORD = "Listen to the original: parts without a recognised word become silence."
# A quarter of a minute at 16 kHz.
_BLOCK = 1 << 18


def check_output(
    original: Samples, output: Samples, rate: int, *, file: str, keeps_duration: bool = True
) -> list[Problem]:
    """Return what is out of order in an anonymised utterance, the gravest first.

    The checks and limits are those of `evaluation.metrics.audio_checks` (identity, silence, duration, clipping,
    level). Beyond them: speech that the output keeps silent about is a warning, and an original that is digital
    silence, or empty, may stay so, which is only noted.

    Args:
        original, output: int16, shape (n,), `rate` in hertz.
        file: the output as its owner knows it.
        keeps_duration: of the method (`contract.keeps_duration`). Where it synthesises speech, another duration is as
            it should be, and where speech is lost cannot be told: the output has another timing.

    Raises:
        InputError: samples that are not mono, or a rate below 1.
    """
    check = check_long_audio(original, output, rate)
    problems = audio_problems(check, file, keeps_duration=keeps_duration)
    if check.level_original_dbfs is None:
        problems = [
            replace(problem, remedy="The original is silent, too; nothing to do.", severity=Severity.NOTE)
            if problem.code == "silent"
            else problem
            for problem in problems
            if problem.code != "identical-to-original"
        ]
    elif not keeps_duration:
        problems = [replace(each, remedy=_NO_WORD) if each.code == "silent" else each for each in problems]
    elif not check.silent and (lost := _find_lost_speech(original, output, rate, file)):
        problems.append(lost)
    if check.level_original_dbfs is not None and original.size < _SHORTEST_MS / 1000 * rate:
        problems = [replace(each, remedy=_TOO_SHORT) if each.code in _OF_SHORT else each for each in problems]
    return problems


def _find_lost_speech(original: Samples, output: Samples, rate: int, file: str) -> Problem | None:
    """Return the longest stretch of digital silence in the output where the original speaks; None below the limit."""
    frame = max(1, round(rate * _FRAME_MS / 1000))
    frames = min(original.size, output.size) // frame
    if frames == 0:
        return None
    power = measure_power(original[: frames * frame], frame)
    spoken = power > power.max() * 10 ** (-_SPOKEN_DB / 10)
    lost = spoken & ~output[: frames * frame].reshape(frames, frame).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(np.int8)))
    lengths_ms = np.diff(edges)[::2] * _FRAME_MS
    if lengths_ms.max(initial=0.0) <= LOST_SPEECH_MS:
        return None
    begin_s = edges[::2][lengths_ms.argmax()] * _FRAME_MS / 1000
    return Problem(
        "speech-lost",
        file,
        expected=f"at most {LOST_SPEECH_MS:g} ms of digital silence where the original speaks",
        found=f"{lengths_ms.max():.0f} ms from {begin_s:.2f} s on",
        remedy="Listen to this utterance: the anonymiser may have dropped a part of it.",
        severity=Severity.WARNING,
    )


def check_long_audio(original: Samples, output: Samples, rate: int) -> AudioCheck:
    """As `check_audio`, which takes 45 bytes a sample; the levels are joined in double precision.

    Raises:
        InputError: as `check_audio`.
    """
    if max(original.size, output.size) <= _BLOCK or original.ndim != 1 or output.ndim != 1:
        return check_audio(original, output, rate)
    starts = range(0, max(original.size, output.size), _BLOCK)
    parts = [check_audio(original[start : start + _BLOCK], output[start : start + _BLOCK], rate) for start in starts]
    clipped = sum(part.clipped_share * part.n_samples_anonymised for part in parts)
    return AudioCheck(
        n_samples_original=original.size,
        n_samples_anonymised=output.size,
        rate=rate,
        level_original_dbfs=_join_levels((part.n_samples_original, part.level_original_dbfs) for part in parts),
        level_anonymised_dbfs=_join_levels((part.n_samples_anonymised, part.level_anonymised_dbfs) for part in parts),
        peak_dbfs=max((part.peak_dbfs for part in parts if part.peak_dbfs is not None), default=None),
        clipped_share=clipped / output.size if output.size else 0.0,
        n_not_finite=sum(part.n_not_finite for part in parts),
        identical=np.array_equal(original, output),
    )


def measure_power(samples: Samples, frame: int) -> npt.NDArray[np.float64]:
    """Return mean square of each whole frame, shape (n // frame,); a frame has at least one sample."""
    frames = samples[: samples.size // frame * frame].reshape(-1, frame)
    power = np.empty(len(frames))
    per_block = max(1, _BLOCK // frame)
    for start in range(0, len(frames), per_block):
        rows = slice(start, start + per_block)
        power[rows] = np.mean(np.square(frames[rows], dtype=np.float64), axis=1)
    return power


def _join_levels(parts: Iterable[tuple[int, float | None]]) -> float | None:
    """Return root mean square in dB of blocks of so many samples at such levels; None where all are silent."""
    total, energy = 0, 0.0
    for n_samples, level in parts:
        total += n_samples
        energy += n_samples * 10 ** (level / 10) if level is not None else 0.0
    return 10 * math.log10(energy / total) if energy else None
