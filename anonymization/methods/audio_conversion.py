"""Samples of any kind brought to what anonymisers take: mono, 16 bits, one rate.

Nothing is changed silently: each change is a note, and in strict mode a refusal. Conventions: integers fill the range
of their type, unsigned ones about its middle; floating point has full scale 1.0; axes are (sample, channel).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import MethodError
from common.arrays import Samples
from speech.audio.files import HIGHEST_RATE_HZ, AudioError, decode_audio, inspect_audio, to_pcm16

WANTED_HZ = 16_000
LOWEST_RATE_HZ = 4_000
MOST_CHANNELS = 64
LONGEST_S = 3 * 3600.0
# Floating point above full scale is clipped; this far above it (18 dB), the scale is another one.
_HIGHEST_PEAK = 8.0
_BLOCK = 1 << 20

# An average of channels whose peak is less than this part of theirs has lost the speech; of what is not mere noise.
_LEFT_AT_LEAST = 0.03
_QUIETEST_PEAK = 0.001


@dataclass(frozen=True, slots=True)
class ConvertedAudio:
    """Samples as anonymisers take them.

    samples: int16, shape (n,), n ≥ 1. rate_hz: of `samples`. notes: what was changed, a clause each, in the order of
    the changes; empty where nothing was.
    """

    samples: Samples
    rate_hz: int
    notes: tuple[str, ...] = ()


def convert_audio(
    samples: npt.NDArray[Any], rate_hz: int, *, wanted_hz: int = WANTED_HZ, strict: bool = False, stored_as: str = ""
) -> ConvertedAudio:
    """Return mono 16-bit samples at the wanted rate.

    Channels are averaged, values rounded to the nearest of 16 bits and clipped, and the rate is changed by soxr, which
    keeps the level. int16 at the wanted rate comes back as it is, not copied.

    Args:
        samples: shape (n,) or (n, channels); uint8, int8, int16, int32, float16, float32 or float64.
        rate_hz: of `samples`, 4,000 to 192,000.
        wanted_hz: of the result.
        strict: refuse whatever would have to be changed.
        stored_as: the encoding of the file that the samples come from, for the notes.

    Raises:
        MethodError: no samples, NaN or infinity, an unknown type or shape, a floating-point peak above 8, a rate out of
            range; in strict mode any change.
    """
    samples = np.asarray(samples)
    _validate(samples, rate_hz)
    notes: list[str] = []
    if samples.ndim == 2 and samples.shape[1] == 1:
        samples = samples[:, 0]
    if samples.ndim == 2:
        notes.append(f"{samples.shape[1]} channels averaged to one")
    mono, n_changed, n_clipped = _mono16(samples)
    _validate_average(samples, mono)
    if samples.dtype != np.int16:
        kind = stored_as or samples.dtype.name
        notes.append(f"{kind} samples {'rounded' if n_changed else 'written as they are'} to 16 bits")
    if n_clipped:
        notes.append(f"{n_clipped:,} samples beyond full scale clipped")
    if rate_hz != wanted_hz:
        notes.append(f"resampled from {rate_hz:,} Hz to {wanted_hz:,} Hz by soxr")
    if strict and notes:
        raise MethodError(
            f"Strict: expected mono 16-bit samples at {wanted_hz:,} Hz, found audio that would be changed: "
            f"{'; '.join(notes)}. Convert it first, or allow changes."
        )
    return ConvertedAudio(_at_rate(mono, rate_hz, wanted_hz), wanted_hz, tuple(notes))


def convert_file(path: Path, *, wanted_hz: int = WANTED_HZ, strict: bool = False) -> ConvertedAudio:
    """Return a WAV or FLAC file as `convert_audio` makes it.

    Raises:
        AudioError: as `speech.audio.files.decode_audio`, for more than three hours too.
        MethodError: as `convert_audio`.
    """
    try:
        decoded = decode_audio(path, longest_s=LONGEST_S)
    except AudioError as error:
        if error.code != "not-mono":
            raise
        samples, rate_hz, encoding = _read_channels(path)
    else:
        samples, rate_hz, encoding = decoded.samples, decoded.rate_hz, decoded.encoding
    return convert_audio(samples, rate_hz, wanted_hz=wanted_hz, strict=strict, stored_as=encoding)


def _read_channels(path: Path) -> tuple[npt.NDArray[Any], int, str]:
    """Return all channels of a file, shape (n, channels), after the checks that `decode_audio` makes of a mono one."""
    import soundfile

    facts = inspect_audio(path)
    if facts.duration_s * facts.channels > LONGEST_S:
        found = f"{facts.duration_s:.1f} s of {facts.channels} channels"
        raise AudioError("too-long", f"at most {LONGEST_S:g} s", found, "Cut the recording into utterances.")
    dtype = "int16" if facts.encoding == "PCM_16" else "float64"
    with path.open("rb") as file:  # a name that is no UTF-8 is none for libsndfile
        samples, rate_hz = soundfile.read(file, dtype=dtype, always_2d=True)
    return samples, rate_hz, facts.encoding


def _validate(samples: npt.NDArray[Any], rate_hz: int) -> None:
    if isinstance(rate_hz, bool) or not isinstance(rate_hz, int | np.integer):
        raise MethodError(f"Expected a whole number of hertz as rate, found {rate_hz!r}.")
    if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
        raise MethodError(
            f"Expected speech at {LOWEST_RATE_HZ:,} to {HIGHEST_RATE_HZ:,} Hz, found a rate of {rate_hz:,} Hz. "
            f"Correct the header of the file."
        )
    if samples.dtype.name not in ("uint8", "int8", "int16", "int32", "float16", "float32", "float64"):
        raise MethodError(
            f"Expected samples of 8, 16 or 32 bits or floating point, found {samples.dtype.name}. Convert to int16."
        )
    if samples.ndim not in (1, 2):
        raise MethodError(f"Expected samples of the shape (n,) or (n, channels), found {samples.shape}.")
    if samples.ndim == 2 and samples.shape[1] > MOST_CHANNELS:
        raise MethodError(
            f"Expected samples of the shape (n, channels), at most {MOST_CHANNELS} channels, found {samples.shape}. "
            "Swap the axes."
        )
    if not samples.size:
        raise MethodError("Expected at least one sample, found none.")


def _mono16(samples: npt.NDArray[Any]) -> tuple[Samples, int, int]:
    """Return the average of the channels as int16; how many samples were rounded, and how many clipped.

    In blocks, so that hours of floating point cost no more memory than their result.
    """
    if samples.ndim == 1 and samples.dtype == np.int16:
        return np.asarray(samples, dtype=np.int16), 0, 0
    mono = np.empty(len(samples), np.int16)
    n_changed = n_clipped = 0
    for start in range(0, len(samples), _BLOCK):
        block = _full_scale_one(samples[start : start + _BLOCK])
        if block.ndim == 2:
            block = block.mean(axis=1)
        scaled = 32768 * block
        rounded = np.rint(scaled)
        n_changed += int(np.count_nonzero(rounded != scaled))
        # 1.0 is one step more than int16 has, and what most programs write as full scale.
        n_clipped += int(np.count_nonzero(np.abs(rounded) > 32768))
        mono[start : start + _BLOCK] = to_pcm16(block)
    return mono, n_changed, n_clipped


def _validate_average(samples: npt.NDArray[Any], mono: Samples) -> None:
    """Refuse channels of opposite sign, whose average is next to nothing."""
    if samples.ndim == 1:
        return
    blocks = (_full_scale_one(samples[start : start + _BLOCK]) for start in range(0, len(samples), _BLOCK))
    loudest = max(float(np.abs(block).max()) for block in blocks)
    left = float(np.abs(mono.astype(np.int32)).max()) / 32768
    if loudest > _QUIETEST_PEAK and left < _LEFT_AT_LEAST * loudest:
        raise MethodError(
            f"Expected channels that can be averaged, found {samples.shape[1]} that cancel each other: less than "
            f"{100 * _LEFT_AT_LEAST:g} % of the peak is left. Write one of them to a file of its own."
        )


def _at_rate(mono: Samples, rate_hz: int, wanted_hz: int) -> Samples:
    if rate_hz == wanted_hz:
        return mono
    resampled = np.concatenate(list(_resampled(mono, rate_hz, wanted_hz)))
    if not resampled.size:
        raise MethodError(
            f"Expected at least one sample at {wanted_hz:,} Hz, found less: {len(mono)} at {rate_hz:,} Hz."
        )
    return resampled


def _resampled(mono: Samples, rate_hz: int, wanted_hz: int) -> Iterator[Samples]:
    """Yield what `speech.audio.files.resample` gives, in blocks: at once, two hours at 44.1 kHz would take 6 GB."""
    import soxr

    common = gcd(rate_hz, wanted_hz)
    stream = soxr.ResampleStream(rate_hz // common, wanted_hz // common, 1, dtype="float64", quality="VHQ")
    for start in range(0, mono.size, _BLOCK):
        block = mono[start : start + _BLOCK].astype(np.float64) / 32768
        yield to_pcm16(stream.resample_chunk(block, last=start + _BLOCK >= mono.size))


def _full_scale_one(block: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = block.astype(np.float64)
    if block.dtype.kind == "i":
        return values / 2.0 ** (8 * block.dtype.itemsize - 1)
    if block.dtype.kind == "u":
        return (values - 128) / 128
    if not np.isfinite(values).all():
        raise MethodError("Expected samples that are numbers, found NaN or infinity. Export the audio again.")
    if (peak := float(np.abs(values).max())) > _HIGHEST_PEAK:
        raise MethodError(
            f"Expected floating point with full scale 1.0, found a peak of {peak:g}. Divide by the full scale first."
        )
    return values
