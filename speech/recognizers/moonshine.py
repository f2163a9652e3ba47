"""Moonshine tiny: the light recogniser, whose package carries model and engine.

The package's Python part asks for a microphone and a downloader before anything else, so its library is called as its C
interface (``moonshine-c-api.h``, version 3.0.0) declares it. Its own detector of speech cuts a recording before the
model hears it, so noise and silence give no words. Conventions: as in `speech.recognizers.contract`.

Source: N. Jeffries et al., "Moonshine: speech recognition for live transcription and voice commands", arXiv 2410.15608.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from common.arrays import Samples
from common.errors import InputError
from common.hashes import compute_sha256
from common.packages import describe_missing
from speech.model_files.catalogue import read_engine
from speech.recognizers.contract import ENGLISH, RATE_HZ, Device, RecognizerEngine, check_language, check_rate
from speech.recognizers.long_recordings import list_pieces

PACKAGE = "moonshine_voice"
FILES = {
    "encoder_model.ort": "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
    "decoder_model_merged.ort": "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
    "tokenizer.bin": "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
}
LONGEST_S = 300.0  # the library keeps several copies of what it is given
_HEADER_VERSION = 30000
_ARCHITECTURE_TINY = 0
# Jobs run side by side: the threads that the library starts else wait by turning, at twice the processor time.
_ONE_THREAD = "MOONSHINE_ORT_SINGLE_THREAD"


class _Line(ctypes.Structure):
    _fields_ = (
        ("text", ctypes.c_char_p),
        ("audio_data", ctypes.c_void_p),
        ("audio_data_count", ctypes.c_size_t),
        ("start_time", ctypes.c_float),
        ("duration", ctypes.c_float),
        ("id", ctypes.c_uint64),
        ("flags", ctypes.c_int8 * 5),
        ("speaker_spans", ctypes.c_void_p),
        ("speaker_span_count", ctypes.c_uint64),
        ("latency_ms", ctypes.c_uint32),
        ("words", ctypes.c_void_p),
        ("word_count", ctypes.c_uint64),
    )


class _Transcript(ctypes.Structure):
    _fields_ = (("lines", ctypes.POINTER(_Line)), ("line_count", ctypes.c_uint64))


class MoonshineRecognizer:
    """The model in memory, on the processor."""

    def __init__(self, package: Path) -> None:
        os.environ.setdefault(_ONE_THREAD, "1")
        self._library = _library(package / "libmoonshine.so")
        model = package / "assets" / "tiny-en"
        self._handle = self._library.moonshine_load_transcriber_from_files(
            str(model).encode(), _ARCHITECTURE_TINY, None, 0, _HEADER_VERSION
        )
        if self._handle < 0:
            raise InputError(f"{ENGINE.title} could not be loaded from {model}: {self._reason(self._handle)}.")

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            self._library.moonshine_free_transcriber(self._handle)

    def transcribe(self, utterances: Sequence[Samples], rate_hz: int, language: str = ENGLISH) -> list[str]:
        """Return what each utterance says; see `speech.recognizers.contract.Recognizer`."""
        check_rate(rate_hz, ENGINE.title)
        check_language(language, ENGINE)
        return [" ".join(filter(None, map(self._piece, list_pieces(one, LONGEST_S)))) for one in utterances]

    def _piece(self, samples: Samples) -> str:
        scaled = np.ascontiguousarray(samples, dtype=np.float32) / np.float32(32768)
        found = ctypes.POINTER(_Transcript)()
        code = self._library.moonshine_transcribe_without_streaming(
            self._handle,
            scaled.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            scaled.size,
            RATE_HZ,
            0,
            ctypes.byref(found),
        )
        if code:
            raise InputError(f"{ENGINE.title} failed on {scaled.size} samples: {self._reason(code)}.")
        if not found:
            return ""
        transcript = found.contents
        texts = (transcript.lines[i].text or b"" for i in range(transcript.line_count))
        return " ".join(filter(None, (text.decode("utf-8", "replace").strip() for text in texts)))

    def _reason(self, code: int) -> str:
        reason = self._library.moonshine_error_to_string(code)
        return reason.decode("utf-8", "replace") if reason else f"error {code}"


def package_folder() -> Path | None:
    """Where the package lies, found without importing it; None where it is not installed."""
    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


def missing() -> str:
    """Return why the recogniser cannot run here, as one sentence; empty where it can."""
    package = package_folder()
    if package is None:
        return describe_missing(ENGINE.title, PACKAGE)
    needed = [package / "libmoonshine.so", *(package / "assets" / "tiny-en" / name for name in FILES)]
    lacking = next((path for path in needed if not path.is_file()), None)
    if lacking is None:
        return ""
    remedy = "later versions carry no model: install moonshine-voice==0.1.0"
    return f"{ENGINE.title} needs {lacking}, which is not there; {remedy}."


def load(device: Device) -> MoonshineRecognizer:
    """Return the recogniser, its model files verified.

    Raises:
        InputError: a graphics card is asked for, the package is missing, or a model file is not the one that was
            measured.
    """
    if device == "cuda":
        raise InputError(f"{ENGINE.title} runs on the processor only. Choose the device “cpu”.")
    if sentence := missing():
        raise InputError(sentence)
    package = package_folder()
    assert package is not None  # `missing` says so  # noqa: S101
    for name, expected in FILES.items():
        path = package / "assets" / "tiny-en" / name
        if (found := compute_sha256(path)) != expected:
            raise InputError(
                f"{path} is not the model that was measured: expected SHA-256 {expected}, found {found}. "
                "Install moonshine-voice==0.1.0 again."
            )
    return MoonshineRecognizer(package)


def _library(path: Path) -> Any:
    """Return the shared library with the types of the functions used here."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise InputError(f"{ENGINE.title} cannot use {path} on this machine: {error}.") from error
    number, size, text = ctypes.c_int32, ctypes.c_uint64, ctypes.c_char_p
    samples, transcript = ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.POINTER(_Transcript))
    for name, result, arguments in (
        ("load_transcriber_from_files", number, (text, ctypes.c_uint32, ctypes.c_void_p, size, number)),
        ("free_transcriber", None, (number,)),
        ("error_to_string", text, (number,)),
        ("transcribe_without_streaming", number, (number, samples, size, number, ctypes.c_uint32, transcript)),
    ):
        function = getattr(library, f"moonshine_{name}")
        function.restype, function.argtypes = result, arguments
    return library


ENGINE = read_engine(RecognizerEngine, __file__, "moonshine-tiny", load=load)
