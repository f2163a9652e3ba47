"""The files between the portal and an external command: what it is given, and whether what it left is what was asked.

Utterances are called 000001, 000002, … to the command: it learns no name of a speaker. Conventions: samples are int16,
mono, shape (n,); rates are in hertz.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import stat
import wave
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from anonymization.methods.contract import Item, Parameter, Samples
from anonymization.methods.errors import MethodError

LONGEST_RATIO, LONGEST_MORE_S = 4.0, 10.0
_KEY = re.compile(r"[0-9a-f]{64}")
_BYTES_OF_A_SAMPLE, _BYTES_OF_HEADERS = 8, 1 << 20


class OutputError(MethodError):
    """An output that is not what was asked. index: of the item in the batch, counted from 0."""

    def __init__(self, sentence: str, index: int) -> None:
        super().__init__(sentence)
        self.index = index


def file_name(index: int) -> str:
    """Of the utterance with this place in the batch, counted from 0, and of its output."""
    return f"{index + 1:06d}.wav"


def key_of(item: Item) -> str:
    """The key of the voice: 64 hexadecimal digits, those of the SHA-256 of what a file of voices has instead."""
    key = item.pseudo_speaker.key
    return key if _KEY.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def seed_of(item: Item) -> int:
    """A number below 2^31 that follows from the voice."""
    return int(key_of(item)[:8], 16) >> 1


def write_wav(path: Path, samples: Samples, rate: int) -> None:
    """16-bit mono samples as WAV."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.ascontiguousarray(samples, dtype="<i2").data)


def write_manifest(path: Path, items: Sequence[tuple[int, Item]], parameters: Sequence[Parameter]) -> None:
    """One line for each utterance: its name without suffix, the key of its voice, its seed, its parameters."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["utterance", "voice", "seed", *(parameter.name for parameter in parameters)])
        for index, item in items:
            values = [repr(float(item.pseudo_speaker.parameters[parameter.name])) for parameter in parameters]
            table.writerow([Path(file_name(index)).stem, key_of(item), seed_of(item), *values])


def check_folder(folder: Path, expected: Collection[str]) -> str:
    """What is wrong with the files in an output folder, a sentence; empty where they are just the expected ones."""
    found = {entry.name for entry in os.scandir(folder)}
    if missing := sorted(set(expected) - found):
        others = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
        return f"It left no output for {missing[0]}{others}; {len(found & set(expected))} of {len(expected)} are there."
    if extra := sorted(found - set(expected)):
        others = f" and {len(extra) - 1} others" if len(extra) > 1 else ""
        return f'It left a file that nobody asked for: "{_shown(extra[0])}"{others}. Expected one for each input only.'
    return ""


def read_output(path: Path, *, given: int, given_rate: int, tolerance_s: float | None) -> tuple[Samples, int, str]:
    """An output with its own rate and how it was stored.

    Args:
        given, given_rate: samples of the input and their rate.
        tolerance_s: by how much the duration may differ; None for up to four times and ten seconds.

    Raises:
        MethodError: no regular file, no mono audio, no samples, NaN, or too long or too short.
    """
    from anonymization.methods.conforming import conform
    from evaluation.formats.audio import AudioError, decode_audio

    given_s = given / given_rate
    longest_s = given_s * LONGEST_RATIO + LONGEST_MORE_S
    try:
        with _opened(path) as file:
            most = int(longest_s * 192_000) * _BYTES_OF_A_SAMPLE + _BYTES_OF_HEADERS
            if (size := os.fstat(file.fileno()).st_size) > most:
                raise MethodError(f"expected at most {most} bytes, found {size}")
            decoded = decode_audio(file, longest_s=longest_s)
    except OSError as error:
        raise MethodError(f"expected a file of its own, found a link or none ({error.strerror})") from error
    except AudioError as error:
        raise MethodError(f"expected {error.expected}, found {error.found}") from error
    found_s = len(decoded.samples) / decoded.rate_hz
    if tolerance_s is not None and abs(found_s - given_s) > tolerance_s:
        raise MethodError(f"expected {given_s:.3f} s within {tolerance_s:g} s, found {found_s:.3f} s")
    conformed = conform(decoded.samples, decoded.rate_hz, wanted_hz=decoded.rate_hz)
    stored = "" if decoded.encoding == "PCM_16" else f"{decoded.encoding} samples rounded to 16 bits"
    return conformed.samples, decoded.rate_hz, stored


def _opened(path: Path) -> BinaryIO:
    """A regular file that has this one name, open for reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        os.close(descriptor)
        raise MethodError("expected a file of its own, found a folder, a pipe or a link")
    return os.fdopen(descriptor, "rb")


def _shown(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:80]
