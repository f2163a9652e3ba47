"""Skipping a test whose model is not on this machine, with the sentence that a person would get."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from speech.encoders.contract import SpeakerEncoder
    from speech.recognizers.contract import Recognizer


def require_engine(name: str) -> SpeakerEncoder:
    """The encoder on the processor, or the test is skipped."""
    from speech.encoders.registry import explain_missing, find_engine, load

    if sentence := explain_missing(find_engine(name)):
        pytest.skip(sentence)
    return load(name)


def require_recognizer(name: str) -> Recognizer:
    """The recogniser on the processor, or the test is skipped."""
    from speech.recognizers.registry import explain_missing, find_engine, load

    if sentence := explain_missing(find_engine(name)):
        pytest.skip(sentence)
    return load(name)


def require_model_file(name: str) -> Path:
    """The path of a model file, or the test is skipped."""
    from speech.model_files.store import find, is_here, missing_sentence

    if not is_here(name):
        pytest.skip(missing_sentence(name))
    return find(name)
