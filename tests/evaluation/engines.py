"""Skipping a test whose model is not on this machine, with the sentence that a person would get."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from evaluation.attackers.contract import SpeakerEncoder
    from evaluation.recognizers.contract import Recognizer


def require_engine(name: str) -> SpeakerEncoder:
    """The encoder on the processor, or the test is skipped."""
    from evaluation.attackers.registry import find_engine, load, missing_of

    if sentence := missing_of(find_engine(name)):
        pytest.skip(sentence)
    return load(name)


def require_recognizer(name: str) -> Recognizer:
    """The recogniser on the processor, or the test is skipped."""
    from evaluation.recognizers.registry import find_engine, load, missing_of

    if sentence := missing_of(find_engine(name)):
        pytest.skip(sentence)
    return load(name)


def require_model_file(name: str) -> Path:
    """The path of a model file, or the test is skipped."""
    from evaluation.weights.store import find, is_here, missing_sentence

    if not is_here(name):
        pytest.skip(missing_sentence(name))
    return find(name)
