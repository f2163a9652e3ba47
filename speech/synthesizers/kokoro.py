"""Kokoro-82M: text to speech in a voice that is a mixture of its 28 English ones.

A text becomes phonemes by the dictionary and rules of misaki in the package hibari-tts, a style vector says who speaks,
and the network gives samples. Its styles depend on how many phonemes a text has; the file beside this module holds
those of 28 lengths, and what lies between is interpolated, which is off by 0.3 % of a style's norm on average and 4 %
at most. Conventions: samples are float32 at 24 kHz, shape (n,), full scale 1.0; a style has 256 numbers.

Source: hexgrad, Kokoro-82M (Apache-2.0, huggingface.co/hexgrad/Kokoro-82M), after Y. A. Li et al., StyleTTS 2, NeurIPS
2023; ONNX file of 8-bit integers by thewh1teagle (MIT, github.com/thewh1teagle/kokoro-onnx); styles out of the
distribution of kokoro 0.9.4 (Apache-2.0), `kokoro.js/voices`, rounded to 16 bits.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats32
from common.errors import InputError
from common.packages import missing_packages
from speech.model_files.devices import open_session
from speech.model_files.store import find, is_here, missing_sentence

TITLE = "Kokoro-82M"
WEIGHTS = "kokoro-82m"
RATE_HZ = 24_000
LONGEST = 510  # phonemes at once; the network takes two more symbols
_STYLES = Path(__file__).with_name("kokoro_styles.npy")
_STYLES_SHA256 = "e638d95cb9c9d50b870abae1b04534e291e5be217022509fde79cda1bbba9b79"
_LENGTHS = (
    *(1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 17, 20, 25, 31, 37, 46, 56, 68, 83, 102),
    *(125, 153, 187, 228, 279, 341, 417, 510),
)
# By accent (a: American, b: British) and gender, in the order of the file.
VOICES = (
    *("af_alloy", "af_aoede", "af_bella", "af_heart", "af_jessica", "af_kore", "af_nicole", "af_nova", "af_river"),
    *("af_sarah", "af_sky", "am_adam", "am_echo", "am_eric", "am_fenrir", "am_liam", "am_michael", "am_onyx"),
    *("am_puck", "am_santa", "bf_alice", "bf_emma", "bf_isabella", "bf_lily", "bm_daniel", "bm_fable", "bm_george"),
    "bm_lewis",
)
_LOADING = Lock()
_INPUTS = {"tokens": [1, "sequence_length"], "style": [1, 256], "speed": [1]}


def voices_of_gender(gender: str) -> tuple[str, ...]:
    """Return the voices of a gender, f or m; all where it is empty."""
    return tuple(name for name in VOICES if gender in ("", name[1]))


def missing() -> str:
    """Return why nothing can be spoken here, as one sentence; empty where it can."""
    if sentence := missing_packages(TITLE, "onnxruntime", "hibari"):
        return sentence
    return "" if is_here(WEIGHTS) else missing_sentence(WEIGHTS)


class Kokoro:
    """The network, dictionary and styles in memory; any number of threads may speak.

    Raises:
        InputError: something is missing, or a file is not the published one.
    """

    def __init__(self) -> None:
        if sentence := missing():
            raise InputError(sentence)
        from hibari.g2p import G2P
        from hibari.tts import ASSETS

        self._session = open_session(find(WEIGHTS))
        found = {each.name: list(each.shape) for each in self._session.get_inputs()}
        if found != _INPUTS:
            raise InputError(f"{TITLE} was expected to take {_INPUTS}, found a network that takes {found}.")
        self._styles = read_styles()
        self._dictionary: Any = G2P()
        self._turn = Lock()  # the dictionary keeps notes of a sentence
        self._symbols: dict[str, int] = json.loads(Path(ASSETS, "vocab.json").read_text(encoding="utf-8"))

    def speak(self, text: str, mixture: Mapping[str, float], pause_s: float = 0.2) -> Floats32:
        """Return the text in the voice of a mixture; empty where nothing of it can be pronounced.

        Args:
            text: in English.
            mixture: share by name of `VOICES`, above 0; they are divided by their sum.
            pause_s: between parts of a text that is too long to be spoken at once.

        Raises:
            InputError: no such voice, or no shares.
        """
        parts = [self._say(tokens, mixture) for tokens in self._list_tokens(text)]
        pause = np.zeros(round(pause_s * RATE_HZ), np.float32)
        joined = [sound for part in parts for sound in (pause, part)][1:]
        return np.concatenate(joined) if joined else np.zeros(0, np.float32)

    def style(self, mixture: Mapping[str, float], n_phonemes: int) -> Floats32:
        """Return the style vector of a mixture for a text of so many phonemes, shape (256,)."""
        if unknown := sorted(set(mixture) - set(VOICES)):
            raise InputError(f"{TITLE} has no voice {', '.join(unknown)}. Its voices: {', '.join(VOICES)}.")
        shares = np.array([mixture.get(name, 0.0) for name in VOICES])
        if not np.isfinite(shares).all() or shares.min() < 0 or not shares.sum() > 0:
            raise InputError(f"A mixture has shares above 0; found {dict(mixture)}.")
        place = float(np.interp(n_phonemes, _LENGTHS, np.arange(len(_LENGTHS))))
        low = min(int(place), len(_LENGTHS) - 2)
        between = (1 - (place - low)) * self._styles[:, low] + (place - low) * self._styles[:, low + 1]
        return np.asarray(shares / shares.sum() @ between, np.float32)

    def _say(self, tokens: list[int], mixture: Mapping[str, float]) -> Floats32:
        inputs = {
            "tokens": np.array([[0, *tokens, 0]], np.int64),
            "style": self.style(mixture, len(tokens))[np.newaxis],
            "speed": np.ones(1, np.float32),
        }
        return np.asarray(self._session.run(None, inputs)[0], np.float32).ravel()

    def _list_tokens(self, text: str) -> Iterator[list[int]]:
        """Yield the symbols of a text, as many at once as the network takes."""
        with self._turn:
            phonemes = str(self._dictionary(" ".join(text.split())))
        for part in cut_phonemes(phonemes, LONGEST):
            if tokens := [self._symbols[symbol] for symbol in part if symbol in self._symbols]:
                yield tokens


def cut_phonemes(phonemes: str, longest: int) -> Iterator[str]:
    """Yield parts of at most so many symbols, cut behind a sentence where there is one, else a word, else anywhere."""
    rest = phonemes.strip()
    while len(rest) > longest:
        head = rest[: longest + 1]
        ends = [found.end() for found in re.finditer(r"[.!?;:,—…] ", head)] or [
            found.end() for found in re.finditer(" ", head)
        ]
        end = ends[-1] if ends else longest
        yield rest[:end].strip()
        rest = rest[end:].strip()
    if re.search(r"\w", rest):
        yield rest


@lru_cache(maxsize=1)
def read_styles() -> NDArray[np.float64]:
    """Return the styles of all voices, shape (voices, lengths, 256).

    Raises:
        InputError: the file is not the one that came with this program.
    """
    content = _STYLES.read_bytes()
    if hashlib.sha256(content).hexdigest() != _STYLES_SHA256:
        raise InputError(f"{_STYLES} is damaged or another file. Install this program again.")
    styles: NDArray[np.float64] = np.load(_STYLES).astype(np.float64)
    return styles


def shared() -> Kokoro:
    """Return the one that all threads of this process share; a forked process gets its own."""
    with _LOADING:
        return _of_process(os.getpid())


@lru_cache(maxsize=1)
def _of_process(process: int) -> Kokoro:  # noqa: ARG001 - is the key
    return Kokoro()
