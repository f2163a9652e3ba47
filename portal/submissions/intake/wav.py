"""The header of a WAV file in memory: where its samples lie, and whether it tells the truth about them.

libsndfile believes a header or mends it without a word; a file that contradicts itself may sound right here and wrong
elsewhere. What this module lets pass as *plain* (16-bit PCM, one channel) needs no decoder.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.formats.audio import AudioError, DecodedAudio

_PCM, _FLOAT, _ALAW, _ULAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_UNCOMPRESSED = (_PCM, _FLOAT, _ALAW, _ULAW)
_UNSTATED_BYTES = 0x7FFF_0000  # what encoders that write to a pipe state is above
_REMEDY = "Write the file again from its samples with a current library; do not edit headers."


@dataclass(frozen=True, slots=True)
class WavHeader:
    """What a WAV file says of itself.

    Attributes:
        is_plain: 16-bit PCM of one channel, whose samples can be taken as they lie there.
        states_length: whether the header says how long the samples are; those written to a pipe do not.
        start, stop: where the samples lie in the file, in bytes.
    """

    rate_hz: int
    is_plain: bool
    states_length: bool
    start: int
    stop: int

    def decode(self, content: bytes) -> DecodedAudio:
        """The samples of a plain file."""
        samples: NDArray[np.int16] = np.frombuffer(content, "<i2", (self.stop - self.start) // 2, self.start)
        return DecodedAudio(samples, self.rate_hz, "PCM_16", "WAV")


def read_header(content: bytes) -> WavHeader | None:
    """What the header says, or None where this is no WAV file or one that the decoder has to judge.

    Raises:
        AudioError: ``false-header`` where rate, channels and bits contradict the byte rate or the size of a frame, or
            where bytes that no chunk accounts for follow the samples.
    """
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        return None
    frame, position = None, 12
    while position + 8 <= len(content):
        name, length = struct.unpack_from("<4sI", content, position)
        position += 8
        if name == b"fmt " and length >= 16 and position + 16 <= len(content):
            frame = struct.unpack_from("<HHIIHH", content, position)
            if frame[0] == _EXTENSIBLE and length >= 26 and position + 26 <= len(content):
                frame = (*struct.unpack_from("<H", content, position + 24), *frame[1:])
        if name == b"data":
            return None if frame is None else _header(content, frame, position, length)
        position += length + length % 2
    return None


def _header(content: bytes, frame: tuple[int, ...], start: int, length: int) -> WavHeader | None:
    encoding, channels, rate_hz, byte_rate, frame_bytes, bits = frame
    there = len(content) - start
    if encoding not in _UNCOMPRESSED or not (rate_hz and channels and there) or length == 0:
        return None  # the decoder has the sentence
    _check_frame(channels, rate_hz, byte_rate, frame_bytes, bits)
    states_length = length < _UNSTATED_BYTES or length <= there
    if states_length and length > there:
        return None  # cut off
    stop = start + (length if states_length else there)
    _check_rest(content, stop + length % 2, length)
    is_plain = (encoding, channels, bits) == (_PCM, 1, 16) and stop - start >= 2
    return WavHeader(rate_hz, is_plain, states_length, start, stop)


def _check_frame(channels: int, rate_hz: int, byte_rate: int, frame_bytes: int, bits: int) -> None:
    wanted = channels * ((bits + 7) // 8)
    if frame_bytes != wanted:
        expected = f"{wanted} bytes for each sampling point, as {channels} × {bits} bit need"
        raise AudioError("false-header", expected, f"a header that states {frame_bytes}", _REMEDY)
    if byte_rate != rate_hz * frame_bytes:
        expected = f"{rate_hz * frame_bytes} bytes a second, as {rate_hz} Hz × {frame_bytes} bytes make"
        raise AudioError("false-header", expected, f"a header that states {byte_rate}", _REMEDY)


def _check_rest(content: bytes, position: int, length: int) -> None:
    """Behind the samples other chunks may follow, up to the end of the file and not further."""
    first = position
    while position + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, position)
        if not all(32 <= letter < 127 for letter in name):
            break
        position += 8 + size + size % 2
    if position < len(content) - 7 or position > len(content) + 1:
        expected = f"the end of the file, or another chunk, after {length} bytes of samples as the header states"
        found = f"{len(content) - first} further bytes that are none"
        raise AudioError("false-header", expected, found, _REMEDY)
