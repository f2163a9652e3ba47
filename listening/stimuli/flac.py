"""FLAC files of speech in both ears whose size and header depend on their duration alone.

A common encoder writes its name into the file, a checksum of the samples into the header, and as many bytes as the
sound needs, by which the systems of a study could be told apart without listening. The files written here have one
metadata block, STREAMINFO, that states nothing but the format and the duration. Their size is a fixed number of bytes
for each frame: a study chooses the smallest that suits its hungriest recording, and the others are coded with longer
Rice codes than they need, to the byte. There is no padding block, whose length would tell the size before padding.
The first frame is silence of a constant form, so that even the bytes behind the header are the same in every file.
They are ordinary files of the streamable subset (RFC 9639), lossless, and any decoder plays them.

Conventions: samples are int16 at 16 kHz, shape (n,), n a multiple of a frame of 4096 samples, the first and the last
frame silent; both channels are equal (stored as left channel and a difference of zero). Equal samples give equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

RATE_HZ = 16000
CHANNELS = 2
BITS = 16
FRAME_SAMPLES = 4096
HEADER_BYTES = 42
RATE_STEP_BYTES = 256  # of a frame: 8 kbit/s
# 184 kbit/s. Of 594 recordings of six corpora and six anonymisers, at −26 dBov, none needed more than 176.
USUAL_FRAME_BYTES = 5888
# 232 kbit/s. White noise at −26 dBov, than which no signal of that level needs more, comes to a little over 200.
LARGEST_FRAME_BYTES = 7424

_PARTITIONS_ORDER, _SILENCE_ORDER = 6, 8
_PARAMETERS = 15  # Rice parameters 0 to 14; 15 is the escape code
_HIGHEST_FIXED_ORDER = 4
_SUBFRAME_OF_ZEROS_BITS = 8 + BITS + 1  # a constant subframe, one bit wider because it holds a difference

Samples = NDArray[np.int16]
Integers = NDArray[np.int64]
Bits = NDArray[np.uint8]


@dataclass(frozen=True)
class _Frame:
    """One frame, predicted. `codes`: residuals folded to natural numbers, shape (4096 − order,).

    `costs`: bits of each partition under each Rice parameter, shape (partitions, parameters); `best`: the cheapest
    parameter of each partition.
    """

    samples: Integers
    order: int
    codes: Integers
    costs: Integers
    best: Integers

    def bits(self, floor: int) -> int:
        """Length of the subframe when no partition has a Rice parameter under `floor`."""
        chosen = np.maximum(self.best, floor)
        return 8 + BITS * self.order + 6 + int(self.costs[np.arange(len(chosen)), chosen].sum())


class FlacSizeError(ValueError):
    """The samples do not fit into the size that was asked for."""


def frame_bytes_needed(samples: Samples) -> int:
    """Smallest size of a frame, in bytes and a multiple of `RATE_STEP_BYTES`, for which `write_stimulus` has room."""
    frames = _predicted(samples)
    last = len(frames) + 1
    smallest = sum(_frame_bytes(number, frame.bits(0)) for number, frame in enumerate(frames, 1)) + _silent_bytes(
        last, 0
    )
    return -(-smallest // last // RATE_STEP_BYTES) * RATE_STEP_BYTES


def file_bytes(samples: int, frame_bytes: int) -> int:
    """Size of every file of that many samples for each channel."""
    return HEADER_BYTES + samples // FRAME_SAMPLES * frame_bytes


def kbit_per_s(frame_bytes: int) -> float:
    """What a line needs to carry to keep up with the sound."""
    return frame_bytes * 8 * RATE_HZ / FRAME_SAMPLES / 1000


def write_stimulus(samples: Samples, frame_bytes: int) -> bytes:
    """The samples in both channels as a FLAC file of exactly `file_bytes(samples.size, frame_bytes)` bytes.

    Args:
        samples: int16, shape (n,), n a multiple of `FRAME_SAMPLES`, the first and the last frame silent.
        frame_bytes: at least `frame_bytes_needed(samples)`, at most `LARGEST_FRAME_BYTES`.

    Raises:
        FlacSizeError: they cannot be brought to that size.
        ValueError: samples of another form.
    """
    frames = _predicted(samples)
    last = len(frames) + 1
    floors, left = _choose_floors(frames, last * frame_bytes)
    pairs = zip(frames, floors, strict=True)
    content = [_encode_frame(number, frame, floor) for number, (frame, floor) in enumerate(pairs, 1)]
    return b"".join([_header(samples.size), _encode_silence(0, frame_bytes), *content, _encode_silence(last, left)])


def _header(samples: int) -> bytes:
    """The marker and STREAMINFO (RFC 9639, section 8.2) with everything left out that may be."""
    facts = RATE_HZ << 44 | (CHANNELS - 1) << 41 | (BITS - 1) << 36 | samples
    sizes = FRAME_SAMPLES.to_bytes(2, "big") * 2 + bytes(6)
    return b"fLaC" + b"\x80\x00\x00\x22" + sizes + facts.to_bytes(8, "big") + bytes(16)


# Prediction ------------------------------------------------------------------------------------------


def _predicted(samples: Samples) -> list[_Frame]:
    """All frames but the first and the last one."""
    if samples.dtype != np.int16 or samples.ndim != 1 or not samples.size or samples.size % FRAME_SAMPLES:
        raise ValueError(
            f"expected int16 samples of shape (n × {FRAME_SAMPLES},), found {samples.dtype} {samples.shape}"
        )
    if samples.size < 2 * FRAME_SAMPLES or samples[:FRAME_SAMPLES].any() or samples[-FRAME_SAMPLES:].any():
        raise ValueError("expected a silent first and a silent last frame")
    return [
        _predict(frame) for frame in samples[FRAME_SAMPLES:-FRAME_SAMPLES].astype(np.int64).reshape(-1, FRAME_SAMPLES)
    ]


def _predict(samples: Integers) -> _Frame:
    """The frame under the fixed polynomial predictor that leaves the smallest residuals (RFC 9639, 9.2.5)."""
    residuals = [samples]
    for _ in range(_HIGHEST_FIXED_ORDER):
        residuals.append(np.diff(residuals[-1]))
    order = int(np.argmin([np.abs(one[_HIGHEST_FIXED_ORDER - n :]).sum() for n, one in enumerate(residuals)]))
    codes = np.where(residuals[order] < 0, -2 * residuals[order] - 1, 2 * residuals[order])
    costs = _rice_costs(codes, order)
    return _Frame(samples, order, codes, costs, costs.argmin(axis=1))


def _rice_costs(codes: Integers, order: int) -> Integers:
    """Bits of each partition under each parameter; the first partition is shorter by the warm-up samples."""
    partitions = 1 << _PARTITIONS_ORDER
    padded = np.concatenate([np.zeros(order, np.int64), codes]).reshape(partitions, -1)
    sizes = np.full(partitions, padded.shape[1])
    sizes[0] -= order
    costs = [4 + sizes * (parameter + 1) + (padded >> parameter).sum(axis=1) for parameter in range(_PARAMETERS)]
    return np.stack(costs, axis=1)


# Reaching the size -----------------------------------------------------------------------------------


def _choose_floors(frames: list[_Frame], room: int) -> tuple[list[int], int]:
    """The lowest Rice parameter of each of these frames, and the bytes that remain for the silent one behind them.

    Parameters rise frame by frame until what is left is no more than that one can take.
    """
    last = len(frames) + 1
    smallest, largest = _silent_bytes(last, 0), _silent_bytes(last, _PARAMETERS - 1)
    sizes = [_frame_bytes(number, frame.bits(0)) for number, frame in enumerate(frames, 1)]
    floors, left = [0] * len(frames), room - sum(sizes)
    for floor in range(1, _PARAMETERS):
        for place, frame in enumerate(frames):
            if left <= largest:
                break
            size = _frame_bytes(place + 1, frame.bits(floor))
            left += sizes[place] - size
            sizes[place], floors[place] = size, floor
    if not smallest <= left <= largest:
        raise FlacSizeError(f"{len(frames)} frames do not come to {room} bytes: {left} would remain for the last one")
    return floors, left


def _frame_bytes(number: int, subframe_bits: int) -> int:
    header = 4 + len(_coded_number(number)) + 1
    return header + (subframe_bits + _SUBFRAME_OF_ZEROS_BITS + 7) // 8 + 2


def _silent_bytes(number: int, parameter: int) -> int:
    """Size of a silent frame when every partition has that Rice parameter."""
    partitions = 1 << _SILENCE_ORDER
    return _frame_bytes(number, 8 + 6 + partitions * 4 + FRAME_SAMPLES * (parameter + 1))


# Writing bits ----------------------------------------------------------------------------------------


def _encode_frame(number: int, frame: _Frame, floor: int) -> bytes:
    head = _bits(0b00010000 | frame.order << 1, 8)
    warm_up = _bits_of_each(frame.samples[: frame.order], BITS)
    residuals = _rice(frame.codes, np.maximum(frame.best, floor), frame.order, _PARTITIONS_ORDER)
    return _framed(number, np.concatenate([head, warm_up, residuals]))


def _encode_silence(number: int, size: int) -> bytes:
    """A silent frame in exactly so many bytes, from `_silent_bytes(number, 0)` to those of the highest parameter.

    A partition of 16 zeros grows by two bytes with each step of its parameter; an odd byte goes into the header, which
    may state the sampling rate in a byte of its own.
    """
    spare = size - _silent_bytes(number, 0)
    partitions = 1 << _SILENCE_ORDER
    each, more = divmod(spare // 2, partitions)
    parameters = np.full(partitions, each)
    parameters[:more] += 1
    residuals = _rice(np.zeros(FRAME_SAMPLES, np.int64), parameters, 0, _SILENCE_ORDER)
    return _framed(number, np.concatenate([_bits(0b00010000, 8), residuals]), is_longer=bool(spare % 2))


def _framed(number: int, subframe: Bits, *, is_longer: bool = False) -> bytes:
    """Frame of the subframe and a second one of zeros, as left and difference channel (RFC 9639, section 9)."""
    size_and_rate = 0b1100 << 4 | (0b1100 if is_longer else 0b0101)
    header = bytes([0xFF, 0xF8, size_and_rate, 0b1000 << 4 | 0b100 << 1]) + _coded_number(number)
    header += bytes([RATE_HZ // 1000]) if is_longer else b""
    header += bytes([_checksum(header, 8, 0x07)])
    bits = np.concatenate([subframe, np.zeros(_SUBFRAME_OF_ZEROS_BITS, np.uint8)])
    frame = header + np.packbits(bits).tobytes()
    return frame + _checksum(frame, 16, 0x8005).to_bytes(2, "big")


def _rice(codes: Integers, parameters: Integers, order: int, partition_order: int) -> Bits:
    """Residuals of all partitions: unary quotient, a one, and as many low bits as the parameter says (9.2.7)."""
    each = FRAME_SAMPLES >> partition_order
    parameter = np.repeat(parameters, each)[order:]
    first = np.maximum(np.arange(len(parameters)) * each - order, 0)  # code of each partition that begins it
    lengths = (codes >> parameter) + 1 + parameter
    lengths[first] += 4
    stops = 6 + np.cumsum(lengths)
    bits = np.zeros(stops[-1], np.uint8)
    bits[2:6] = _bits(partition_order, 4)
    for place in range(4):
        bits[stops[first] - lengths[first] + place] = parameters >> (3 - place) & 1
    bits[stops - parameter - 1] = 1
    for place in range(int(parameter.max(initial=0))):
        has = parameter > place
        bits[stops[has] - 1 - place] = codes[has] >> place & 1
    return bits


def _bits(value: int, width: int) -> Bits:
    return np.array([value >> place & 1 for place in range(width - 1, -1, -1)], np.uint8)


def _bits_of_each(values: Integers, width: int) -> Bits:
    places = np.arange(width - 1, -1, -1)
    return (values[:, None] >> places & 1).astype(np.uint8).ravel()


def _coded_number(number: int) -> bytes:
    """The number of a frame, coded as UTF-8 codes characters, which is all that recordings under hours need."""
    return chr(number).encode()


def _checksum(data: bytes, width: int, polynomial: int) -> int:
    table, mask, value = _checksum_table(width, polynomial), (1 << width) - 1, 0
    for byte in data:
        value = (value << 8 & mask) ^ table[(value >> (width - 8)) ^ byte]
    return value


@cache
def _checksum_table(width: int, polynomial: int) -> list[int]:
    table = []
    for byte in range(256):
        value = byte << (width - 8)
        for _ in range(8):
            value = value << 1 ^ (polynomial if value >> (width - 1) & 1 else 0)
        table.append(value & ((1 << width) - 1))
    return table
