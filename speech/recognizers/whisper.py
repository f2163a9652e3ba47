"""Whisper base by CTranslate2: the better recogniser, whose weights two packages carry in halves.

Every piece of at most 30 s is decoded once, greedily, in the language that is named, without time stamps and without
memory of the piece before, so that the same samples always give the same words. What the model would go on writing over
noise is bounded: no piece gets more tokens than its seconds of quick speech could fill, and a piece that the model
itself takes for no speech gets none. It has not run on a graphics card yet. Conventions: as in
`speech.recognizers.contract`; log-probabilities are natural, per token.

Source: A. Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023; thresholds of
section 4.5 there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from common.arrays import Samples
from common.errors import InputError, MachineError
from speech.model_files.catalogue import read_engine
from speech.model_files.devices import use_one_thread_for_products
from speech.model_files.store import find
from speech.recognizers.contract import CHINESE, ENGLISH, RATE_HZ, Device, RecognizerEngine, check_language, check_rate
from speech.recognizers.long_recordings import list_pieces

WEIGHTS = "whisper-base"
LONGEST_S = 30.0
TOKENS_PER_S = 10  # quick English is about 6 words and 8 tokens a second
TOKENS_BESIDES = 8
MOST_TOKENS = 448
NO_SPEECH_PROBABILITY, LOWEST_LOG_PROBABILITY = 0.6, -1.0
_PROMPT = ("<|startoftranscript|>", "<|transcribe|>", "<|notimestamps|>")  # the language stands after the first
_BATCH = {"cpu": 1, "cuda": 32}


class WhisperRecognizer:
    """The model in memory."""

    def __init__(self, folder: Path, device: Device) -> None:
        from faster_whisper import WhisperModel

        threads = os.environ.get("OMP_NUM_THREADS", "")
        try:
            model = WhisperModel(
                str(folder),
                device=device,
                compute_type="int8" if device == "cpu" else "float16",
                cpu_threads=int(threads) if threads.isdecimal() else 0,
                local_files_only=True,
            )
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{ENGINE.title} could not be loaded on “{device}”: {error}") from error
        self._extract = model.feature_extractor
        self._tokens = model.hf_tokenizer
        self._model: Any = model.model
        self._batch, self._device = _BATCH[device], device

    def transcribe(self, utterances: Sequence[Samples], rate_hz: int, language: str = ENGLISH) -> list[str]:
        """Return what each utterance says; see `speech.recognizers.contract.Recognizer`."""
        check_rate(rate_hz, ENGINE.title)
        check_language(language, ENGINE)
        prompt = self._prompt(CHINESE.get(language, language))
        found: list[list[str]] = [[] for _ in utterances]
        pieces = ((number, piece) for number, one in enumerate(utterances) for piece in list_pieces(one, LONGEST_S))
        while batch := list(islice(pieces, self._batch)):
            for (number, _), text in zip(batch, self._decode([piece for _, piece in batch], prompt), strict=True):
                found[number].append(text)
        return [" ".join(filter(None, texts)) for texts in found]

    def _prompt(self, language: str) -> list[int]:
        tokens = (_PROMPT[0], f"<|{language}|>", *_PROMPT[1:])
        return [self._tokens.token_to_id(token) for token in tokens]

    def _decode(self, pieces: Sequence[Samples], prompt: list[int]) -> Iterator[str]:
        import ctranslate2

        limits = [_most_tokens(piece.size / RATE_HZ) for piece in pieces]
        features = ctranslate2.StorageView.from_array(np.stack([self._features(piece) for piece in pieces]))
        outcomes = self._generate(
            features,
            [prompt] * len(pieces),
            beam_size=1,
            sampling_temperature=0,
            max_length=min(MOST_TOKENS, len(prompt) + max(limits)),
            return_scores=True,
            return_no_speech_prob=True,
        )
        for outcome, limit in zip(outcomes, limits, strict=True):
            tokens = outcome.sequences_ids[0]
            log_probability = outcome.scores[0] * len(tokens) / (len(tokens) + 1)
            if outcome.no_speech_prob > NO_SPEECH_PROBABILITY and log_probability < LOWEST_LOG_PROBABILITY:
                yield ""
            else:
                yield self._tokens.decode(tokens[:limit]).strip()

    def _generate(self, *inputs: Any, **options: Any) -> Any:
        try:
            return self._model.generate(*inputs, **options)
        except RuntimeError as error:
            kind = InputError if self._device == "cpu" else MachineError  # memory or libraries of the card
            raise kind(f"{ENGINE.title} failed on “{self._device}”: {error}") from error

    def try_device(self) -> None:
        """Recognise half a second, because libraries of a card are looked for at the first piece only.

        Raises:
            MachineError: the card cannot be used.
        """
        list(self._decode([np.zeros(RATE_HZ // 2, np.int16)], self._prompt(ENGLISH)))

    def _features(self, samples: Samples) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return log mel spectrum of 30 s, shape (80, 3000), the rest as silence."""
        scaled = np.zeros(round(LONGEST_S * RATE_HZ), dtype=np.float32)
        scaled[: samples.size] = samples.astype(np.float32) / 32768
        with use_one_thread_for_products():  # a last digit more or less makes another full stop
            spectrum = self._extract(scaled, padding=0)
        return np.ascontiguousarray(spectrum[:, : self._extract.nb_max_frames], dtype=np.float32)


def load(device: Device) -> WhisperRecognizer:
    """Return the recogniser, its files verified.

    Raises:
        InputError: a file is missing or another one, or the device cannot be used.
    """
    recognizer = WhisperRecognizer(find(WEIGHTS).parent, device)
    if device == "cuda":
        recognizer.try_device()
    return recognizer


def _most_tokens(seconds: float) -> int:
    return min(MOST_TOKENS - len(_PROMPT) - 1, TOKENS_BESIDES + round(TOKENS_PER_S * seconds))


ENGINE = read_engine(RecognizerEngine, __file__, "whisper-base", load=load)
