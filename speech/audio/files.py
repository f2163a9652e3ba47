"""Audio files: what is really in them, and 16-bit samples in and out.

A file is known by its content, whatever its name. libsndfile decodes it; a header is a claim, so that what libsndfile
takes without a word is held against the file here: that it is whole, and that its parts agree. Containers of lossless
samples are accepted (`CONTAINERS`), those of lossy ones are not, because a cut file cannot be told from a whole one.
Conventions: full scale is 1.0 (int16 / 32768, as the official scripts do); `samples` counts per channel.
"""

from __future__ import annotations

import hashlib
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from math import gcd, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.problems import Problem, Severity

if TYPE_CHECKING:
    from soundfile import SoundFile

LONGEST_S = 600.0
MAX_DIFFERENCE_S = 0.065  # `max_len_diff` of the 2022 recipe, which only warns
HIGHEST_RATE_HZ = 192_000  # what a length is limited by, lest a header that lies about its rate fills the memory
_BLOCK = 65536
_ENCODINGS = frozenset(["PCM_S8", "PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"])
_REMEDY_OF_EMPTY = "The file is empty: make the recording and send it again."
_UNKNOWN_SIZE = 0x7FFF_0000  # encoders that write to a pipe state a size of 2 to 4 GiB, or none
CONTAINERS = {"WAV": "WAV", "WAVEX": "WAV", "RF64": "RF64", "FLAC": "FLAC"}  # by libsndfile's names
CONTAINERS |= {name: name for name in ("W64", "AIFF", "AU", "CAF", "NIST")}
_RIFFS = (b"RIFF", b"RF64", b"BW64")
_USUAL_CHUNKS = (b"data", b"fmt ", b"LIST")
_MOST_CHUNKS = 10_000  # of a WAV file; each takes a read
# Of a file that does not state where its samples end: what may follow them, and where it is sought.
_LAST_CHUNK = re.compile(rb"(?:LIST|bext|iXML|id3 |ID3 |cue |smpl|PEAK|fact|JUNK)(.{4})", re.DOTALL)
_LARGEST_TAIL = 1 << 20
_EXTENSIBLE, _UNCOMPRESSED = 0xFFFE, (1, 3, 6, 7)  # PCM, floating point, A-law, mu-law
_UNMENDED = "Write the file again from its samples with a current library."
# Lines in which libsndfile notes that a file has less than its header states.
_SHORT = re.compile(r"(?m)^ *(?:data|SSND|Data Size|riff) *: (?P<stated>-?\d+) \(should be (?P<there>\d+)\)")
_NIST_COUNT = re.compile(rb"(?m)^sample_count -i (\d+)$")


class AudioError(Exception):
    """A file that cannot be used as audio.

    Attributes:
        code: ``missing-file``, ``not-a-file``, ``empty``, ``not-audio``, ``truncated``, ``damaged``, ``false-header``,
            ``unknown-length``, ``not-finite``, ``not-mono`` or ``too-long``.
        expected, found, remedy: the parts of the sentence, as in `Problem`.
    """

    def __init__(self, code: str, expected: str, found: str, remedy: str) -> None:
        super().__init__(f"expected {expected}, found {found}. {remedy}")
        self.code = code
        self.expected = expected
        self.found = found
        self.remedy = remedy

    def problem(self, file: str, severity: Severity = Severity.ERROR) -> Problem:
        """Return the same problem as a row of a report on `file`."""
        return Problem(self.code, file, self.expected, self.found, self.remedy, severity)


@dataclass(frozen=True, slots=True)
class AudioFacts:
    """What a file really holds, measured on every decoded sample.

    Attributes:
        rate_hz: sampling rate in Hz.
        channels: number of channels.
        samples: number of samples per channel.
        encoding: how a sample is stored, in libsndfile's words: ``PCM_16``, ``FLOAT``, …
        format: of `CONTAINERS`.
        sha256: hexadecimal digest of the file's bytes.
        peak: largest absolute sample of any channel, full scale 1.0.
        rms: root mean square over all channels, full scale 1.0.
        is_silent: whether the peak is at or below `SILENCE_PEAK`.
        states_length: whether the header says how long the samples are; those written to a pipe may not.
    """

    rate_hz: int
    channels: int
    samples: int
    encoding: str
    format: str
    sha256: str
    peak: float
    rms: float
    is_silent: bool
    states_length: bool = True

    @property
    def duration_s(self) -> float:
        return self.samples / self.rate_hz


@dataclass(frozen=True, slots=True)
class DecodedAudio:
    """All samples of a file.

    Attributes:
        samples: shape (n,), mono; int16 as stored in a 16-bit file, else float64, full scale 1.0.
        rate_hz, encoding, format, states_length: as in `AudioFacts`.
    """

    samples: NDArray[Any]
    rate_hz: int
    encoding: str
    format: str
    states_length: bool


def inspect_audio(source: Path | BinaryIO) -> AudioFacts:
    """Decode a file from end to end and state what is in it.

    Args:
        source: a path or a seekable binary file, read from its start.

    Raises:
        AudioError: no container of lossless samples, empty, cut, damaged (16-bit FLAC carries a checksum of its
            samples), with a header that contradicts itself or the file, or with samples that are not numbers.
    """
    with _opened(source) as (file, sound, states_length):
        peak, energy = _measure(file, sound)
        return AudioFacts(
            rate_hz=sound.samplerate,
            channels=sound.channels,
            samples=sound.frames,
            encoding=sound.subtype,
            format=CONTAINERS[sound.format],
            sha256=_sha256(file),
            peak=peak,
            rms=sqrt(energy / (sound.frames * sound.channels)),
            is_silent=peak <= SILENCE_PEAK / INT16_FULL_SCALE,
            states_length=states_length,
        )


def decode_audio(source: Path | BinaryIO, *, longest_s: float = LONGEST_S) -> DecodedAudio:
    """Decode a mono file as it is: as `read_pcm16`, but samples that are no numbers are handed on."""
    with _opened(source) as (file, sound, states_length):
        _check_size(sound, longest_s)
        samples = np.concatenate([block[:, 0] for block in _decoded(file, sound, finite=False)])
        return DecodedAudio(samples, sound.samplerate, sound.subtype, CONTAINERS[sound.format], states_length)


def check_stated_rate(samples: int, rate_hz: int, *, original: int, original_hz: int) -> None:
    """Compare the rate of a version of a recording with that of the original.

    Args:
        samples, rate_hz: of the version, its rate as its header states it.
        original, original_hz: samples and rate of the original.

    Raises:
        AudioError: ``false-header``: another rate for about as many samples as the original has.
    """
    if rate_hz != original_hz and abs(samples - original) <= MAX_DIFFERENCE_S * original_hz:
        expected = f"{original_hz} Hz, as the original has"
        found = f"a header that states {rate_hz} Hz for about as many samples"
        remedy = "Write the file with its true rate; if it does play at another speed, convert it to the right one."
        raise AudioError("false-header", expected, found, remedy)


def read_pcm16(source: Path | BinaryIO, *, longest_s: float = LONGEST_S) -> tuple[NDArray[np.int16], int]:
    """Read a mono file as 16-bit samples.

    Args:
        source: a path or a seekable binary file, read from its start.
        longest_s: longest duration, in seconds, that is read into memory.

    Returns:
        Samples, int16, shape (n,), and the sampling rate in Hz. Other encodings are rounded to the
        nearest 16-bit value and clipped.

    Raises:
        AudioError: as `inspect_audio`; also more than one channel, or longer than `longest_s`.
    """
    with _opened(source) as (file, sound, _):
        _check_size(sound, longest_s)
        blocks = [to_pcm16(block[:, 0]) for block in _decoded(file, sound)]
        return np.concatenate(blocks), sound.samplerate


def read_channels(source: Path | BinaryIO, *, longest_s: float = LONGEST_S) -> tuple[NDArray[np.float64], int]:
    """As `read_pcm16` of any number of channels: float64, shape (n, channels), full scale 1.0, and the rate in Hz."""
    with _opened(source) as (file, sound, _):
        _check_size(sound, longest_s, is_mono=False)
        samples = np.concatenate(list(_decoded(file, sound)))
        return samples / 32768 if samples.dtype == np.int16 else samples, sound.samplerate


def write_flac16(file: Path | BinaryIO, samples: NDArray[np.int16], rate_hz: int) -> None:
    """Write 16-bit mono samples, shape (n,), as FLAC; the same samples give the same bytes.

    Raises:
        ValueError: not int16, not one-dimensional, or empty.
    """
    import soundfile

    if samples.dtype != np.int16 or samples.ndim != 1 or not samples.size:
        raise ValueError(f"expected int16 samples of shape (n,), found {samples.dtype} {samples.shape}")
    soundfile.write(file, samples, rate_hz, format="FLAC", subtype="PCM_16")


def resample(samples: NDArray[Any], from_hz: int, to_hz: int) -> NDArray[Any]:
    """Change the sampling rate (soxr, very high quality, no dither, so repeatable).

    Args:
        samples: int16, shape (n,); or float64, full scale 1.0, shape (n,) or (n, channels).
        from_hz, to_hz: rates in Hz, above 0.

    Returns:
        As many channels, shape (round(n · to / from), …), int16 clipped where the filter overshoots; a copy when the
        rates are equal.

    Raises:
        ValueError: a rate that is not positive.
    """
    import soxr

    if from_hz <= 0 or to_hz <= 0:
        raise ValueError(f"expected rates above 0 Hz, found {from_hz} and {to_hz}")
    if from_hz == to_hz:
        return samples.copy()
    common = gcd(from_hz, to_hz)
    scaled = samples / 32768 if samples.dtype == np.int16 else samples
    changed = soxr.resample(scaled, from_hz // common, to_hz // common, quality="VHQ")
    return to_pcm16(changed) if samples.dtype == np.int16 else changed


def to_pcm16(samples: NDArray[Any]) -> NDArray[np.int16]:
    """Return samples of any shape as int16: int16 as they are, floating point (full scale 1.0) rounded and clipped."""
    if samples.dtype == np.int16:
        return np.asarray(samples, dtype=np.int16)
    clipped: NDArray[np.float64] = np.clip(np.rint(samples * 32768), -32768, 32767)
    return clipped.astype(np.int16)


@contextmanager
def _opened(source: Path | BinaryIO) -> Iterator[tuple[BinaryIO, SoundFile, bool]]:
    with ExitStack() as stack:
        file = stack.enter_context(_open_file(source)) if isinstance(source, Path) else source
        sound, states_length = _sound(file)
        yield file, stack.enter_context(sound), states_length


def _open_file(path: Path) -> BinaryIO:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise AudioError("not-a-file", "a file", "a folder, pipe or device", "Put a file there.")
        return path.open("rb")
    except OSError as error:
        raise AudioError("missing-file", "a readable file", f"“{error.strerror}”", "Add the file.") from error


def _sound(file: BinaryIO) -> tuple[SoundFile, bool]:
    """Open for decoding, and whether the header states the length; the caller closes it."""
    import soundfile

    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    head = file.read(12)
    if not size:
        raise AudioError("empty", "a WAV or FLAC file", "a file of 0 bytes", _REMEDY_OF_EMPTY)
    start, begin = head, _find_tag_end(head)
    if 0 < begin < size:
        file, size = BufferedReader(_Headed(b"", file, begin, size)), size - begin
        start = file.read(12)
    chunks = _find_samples(file, size) if start[:4] in _RIFFS and start[8:12] == b"WAVE" else None
    file.seek(0)
    try:
        sound = soundfile.SoundFile(chunks.rebuild(file) if chunks and chunks.is_unusual else file)
    except soundfile.SoundFileError as error:
        raise _not_audio(_guess(head)) from error
    try:
        _check_header(sound)
        return sound, chunks.states_length if chunks else _check_whole(file, sound)
    except AudioError:
        sound.close()
        raise


def _find_tag_end(head: bytes) -> int:
    """Return where an ID3v2 tag in front of the audio ends; 0 where there is none."""
    if head[:3] != b"ID3" or len(head) < 10:
        return 0
    size = sum(byte << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))
    return 10 + size + (10 if head[5] & 0x10 else 0)


def _check_header(sound: SoundFile) -> None:
    if sound.format not in CONTAINERS or sound.subtype not in _ENCODINGS:
        raise _not_audio(f"a file of the kind {sound.format} with {sound.subtype} inside")
    if sound.frames <= 0:
        raise AudioError("empty", "at least one sample", "none", _REMEDY_OF_EMPTY)
    if sound.frames >= 2**36:  # more than FLAC can state: the field was left at 0
        found, remedy = "none, as from encoders that write to a pipe", "Encode the file again, from file to file."
        raise AudioError("unknown-length", "a header that states the length", found, remedy)


def _check_whole(file: BinaryIO, sound: SoundFile) -> bool:
    """Return whether the header of a container other than WAV states the length; refuse a shorter file."""
    if short := _SHORT.search(sound.extra_info):
        if not 0 < int(short["stated"]) < _UNKNOWN_SIZE:
            return False
        raise _truncated(f"{short['stated']} bytes, as the header says", short["there"])
    if sound.format == "NIST":
        file.seek(0)
        stated = _NIST_COUNT.search(file.read(1024))
        if stated and int(stated[1]) > sound.frames:
            raise _truncated(f"{int(stated[1])} samples, as the header says", f"{sound.frames}")
    return True


def _check_size(sound: SoundFile, longest_s: float, *, is_mono: bool = True) -> None:
    if is_mono and sound.channels != 1:
        raise AudioError("not-mono", "one channel", f"{sound.channels}", "Send one channel only.")
    if sound.frames > longest_s * min(sound.samplerate, HIGHEST_RATE_HZ):
        found = f"{sound.frames / sound.samplerate:.1f} s"
        raise AudioError("too-long", f"at most {longest_s:g} s", found, "Cut the recording into utterances.")


@dataclass(frozen=True, slots=True)
class _WavSamples:
    """Where the samples of a WAV file lie, in bytes.

    Attributes:
        frame: the content of its format chunk.
        states_length: whether the header says how long the samples are.
        is_unusual: whether libsndfile does not find all of them there.
    """

    start: int
    stop: int
    frame: bytes
    states_length: bool
    is_unusual: bool

    def rebuild(self, file: BinaryIO) -> BinaryIO:
        """Return the same samples as a WAV file of the usual form, read from the file as they are needed."""
        length = self.stop - self.start
        sizes = 20 + len(self.frame) + length, len(self.frame), length
        riff, frame, samples = (struct.pack("<I", min(size, 2**32 - 1)) for size in sizes)
        head = b"RIFF" + riff + b"WAVEfmt " + frame + self.frame + b"data" + samples
        return BufferedReader(_Headed(head, file, self.start, self.stop))


class _Headed(RawIOBase):
    """Bytes of a file from `start` to `stop` behind a head."""

    def __init__(self, head: bytes, file: BinaryIO, start: int, stop: int) -> None:
        self._head, self._file = head, file
        self._offset = start - len(head)
        self._size = stop - self._offset
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        part = self._head[self._position : self._position + len(buffer)]
        if not part:
            self._file.seek(self._offset + self._position)
            part = self._file.read(max(0, min(len(buffer), self._size - self._position)))
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)


def _find_samples(file: BinaryIO, size: int) -> _WavSamples:
    """Walk the chunks of a WAV file: libsndfile shortens it without a word to what is there.

    Raises:
        AudioError: ``truncated``, or ``false-header`` where rate, channels and bits contradict the byte rate or the
            size of a frame, where bytes that no chunk accounts for follow the samples, or of too many chunks.
    """
    file.seek(0)
    form = file.read(4)
    is_unusual = form == b"BW64"  # libsndfile knows RF64, which is the same
    frame, wide = b"", 0
    for name, length, start, following in _walk_chunks(file, 12, size):
        if name == b"data":
            break
        if name == b"ds64":
            wide = int.from_bytes(file.read(16)[8:], "little")
        if name == b"fmt ":
            frame = file.read(min(length, 1024))
        is_unusual = is_unusual or (length % 2 == 1 and following == start + length)
    else:
        raise _truncated("a WAV header with samples behind it", "the end of the file")
    _check_frame(frame)
    length, there = wide or length, size - start
    is_never_filled_in = length == 2**64 - 1 or (length == 0 and not _are_chunks(file, start, size))
    if is_never_filled_in or (length >= _UNKNOWN_SIZE and not wide and length > there):
        stop = _find_last_chunks(file, start, size)
        is_unusual = is_unusual or is_never_filled_in or form != b"RIFF" or stop < size
        return _WavSamples(start, stop, frame, states_length=False, is_unusual=is_unusual)
    if length > there:
        raise _truncated(f"{length} bytes of samples, as the header says", f"{there}")
    rest = _next_chunk(file, start + length, length)
    if not _are_chunks(file, rest, size):
        expected = f"the end of the file, or another chunk, after {length} bytes of samples as the header states"
        raise AudioError("false-header", expected, f"{size - rest} further bytes that are neither", _UNMENDED)
    return _WavSamples(start, start + length, frame, states_length=True, is_unusual=is_unusual)


def _walk_chunks(file: BinaryIO, position: int, size: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Name and length of each chunk, where its content begins, at which the file then is, and where the next one is."""
    for _ in range(_MOST_CHUNKS):
        if position + 8 > size:
            return
        file.seek(position)
        name, length = struct.unpack("<4sI", file.read(8))
        start = position + 8
        position = _next_chunk(file, start + length, length)
        file.seek(start)
        yield name, length, start, position
    raise AudioError("false-header", f"at most {_MOST_CHUNKS:,} chunks in a WAV file", "more", _UNMENDED)


def _next_chunk(file: BinaryIO, end: int, length: int) -> int:
    """Return where the chunk after one of `length` bytes begins; some files leave out the pad byte."""
    if length % 2 == 0:
        return end
    file.seek(end)
    here = file.read(5)
    is_left_out = here[:4] in _USUAL_CHUNKS or (_is_name(here[:4]) and not _is_name(here[1:]))
    return end if is_left_out else end + 1


def _is_name(name: bytes) -> bool:
    return len(name) == 4 and all(32 <= letter < 127 for letter in name)


def _are_chunks(file: BinaryIO, position: int, size: int) -> bool:
    """Return whether chunks follow up to the end of the file and not further, but for less than the head of one."""
    for name, _, _, following in _walk_chunks(file, position, size):
        if not _is_name(name):
            return False
        position = following
    return position <= size + 1


def _find_last_chunks(file: BinaryIO, start: int, size: int) -> int:
    """Return where the known chunks at the end of a file begin, behind samples of unstated length; else its end."""
    first = max(start, size - _LARGEST_TAIL)
    file.seek(first)
    ends, found = {size, size + 1}, size
    for match in reversed(list(_LAST_CHUNK.finditer(file.read(size - first)))):
        position, length = first + match.start(), int.from_bytes(match[1], "little")
        if _next_chunk(file, position + 8 + length, length) in ends:
            ends.add(position)
            found = position
    return found


def _check_frame(frame: bytes) -> None:
    """Hold the fields of a format chunk against one another."""
    if len(frame) < 16:
        return  # libsndfile refuses it
    encoding, channels, rate_hz, byte_rate, frame_bytes, bits = struct.unpack_from("<HHIIHH", frame)
    if encoding == _EXTENSIBLE and len(frame) >= 26:
        encoding = int.from_bytes(frame[24:26], "little")
    if encoding not in _UNCOMPRESSED or not (channels and rate_hz):
        return
    if frame_bytes != (wanted := channels * ((bits + 7) // 8)):
        expected = f"{wanted} bytes for each sampling point, as {channels} × {bits} bit need"
        raise AudioError("false-header", expected, f"a header that states {frame_bytes}", _UNMENDED)
    if byte_rate != rate_hz * frame_bytes:
        expected = f"{rate_hz * frame_bytes} bytes a second, as {rate_hz} Hz × {frame_bytes} bytes make"
        raise AudioError("false-header", expected, f"a header that states {byte_rate}", _UNMENDED)


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def _measure(file: BinaryIO, sound: SoundFile) -> tuple[float, float]:
    """Peak and sum of squares over the whole file, full scale 1.0."""
    peak = energy = 0.0
    for block in _decoded(file, sound):
        scaled = block / 32768 if block.dtype == np.int16 else block
        peak = max(peak, float(np.abs(scaled).max()))
        energy += float(np.square(scaled).sum())
    return peak, energy


def _decoded(file: BinaryIO, sound: SoundFile, *, finite: bool = True) -> Iterator[NDArray[Any]]:
    """Blocks of shape (n, channels): int16 as stored for 16-bit files, else float64.

    Reads in blocks so that a header that promises hours costs no memory.

    Raises:
        AudioError: fewer samples decode than the header promises, another checksum, or, where `finite`, a sample
            that is not a number.
    """
    import soundfile

    as_stored = sound.subtype == "PCM_16"
    stated = _flac_checksum(file) if as_stored and sound.format == "FLAC" else None
    checksum = hashlib.md5(usedforsecurity=False)
    done = 0
    while done < sound.frames:
        wanted = min(_BLOCK, sound.frames - done)
        try:
            block = sound.read(wanted, dtype="int16" if as_stored else "float64", always_2d=True)
        except soundfile.SoundFileError:
            block = np.empty((0, sound.channels))
        if not len(block):
            found = f"a part that cannot be decoded, between samples {done} and {done + wanted}"
            raise _truncated(f"{sound.frames} samples, as the header says", found)
        if finite and not as_stored and not np.isfinite(block).all():
            raise AudioError("not-finite", "samples that are numbers", "NaN or infinity", "Export it again.")
        if stated:
            checksum.update(block.astype("<i2", copy=False).tobytes())
        done += len(block)
        yield block
    if stated and checksum.digest() != stated:
        expected = "the samples that the FLAC checksum was made of"
        raise AudioError("damaged", expected, "others", "Send the file again.")


def _flac_checksum(file: BinaryIO) -> bytes | None:
    """Return the MD5 of the samples from STREAMINFO (RFC 9639, section 8.2); None where it was left out."""
    position = file.tell()
    file.seek(0)
    head = file.read(42)
    file.seek(position)
    return head[26:] if head[:4] == b"fLaC" and any(head[26:]) else None


def _not_audio(found: str) -> AudioError:
    return AudioError("not-audio", "a WAV or FLAC file", found, "Write the recording as 16-bit WAV or FLAC.")


def _truncated(expected: str, found: str) -> AudioError:
    return AudioError("truncated", expected, found, "The file is cut or damaged: send it again.")


def _guess(head: bytes) -> str:
    known = {b"OggS": "an Ogg file", b"ID3": "an MP3 file"} | dict.fromkeys((b"\xff\xfb", b"\xff\xf3"), "an MP3 file")
    known |= dict.fromkeys((*_RIFFS, b"fLaC"), "a header that cannot be decoded; the file is cut or damaged")
    other = "text" if head[:8].isascii() and head[:8].decode().isprintable() else "other bytes"
    return next((words for magic, words in known.items() if head.startswith(magic)), other)


INT16_FULL_SCALE = 32768
SILENCE_PEAK = 10  # of int16, −70 dB of full scale; the quietest real speech met peaks at −41 dB


def to_unit_scale(samples: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the samples as float64 where full scale is 1.0.

    Args:
        samples: shape (samples,), int16 or floating point; the latter is taken as it is, with NaN.

    Raises:
        InputError: more than one channel, or a type that is neither int16 nor floating point.
    """
    if samples.ndim != 1:
        raise InputError(
            f"Expected the samples of one channel, shape (samples,), found shape {samples.shape}. Mix down to mono."
        )
    if samples.dtype == np.int16:
        return samples.astype(np.float64) / INT16_FULL_SCALE
    if np.issubdtype(samples.dtype, np.floating):
        return samples.astype(np.float64)
    raise InputError(f"Expected int16 or floating point samples, found {samples.dtype}. Convert them to 16 bit first.")


def is_silent(samples: NDArray[np.int16]) -> bool:
    """Return whether no sample is louder than `SILENCE_PEAK`: no speech, whatever a model would hear in it.

    Args:
        samples: shape (samples,), one or more.
    """
    return max(int(samples.max()), -int(samples.min())) <= SILENCE_PEAK
