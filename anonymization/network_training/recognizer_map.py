"""The training of the map from a recogniser's features to speaker vectors, and what it is worth on other speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymization.network_training.features import SPEAKER_ENCODER
from anonymization.network_training.recipe import MapRecipe
from anonymization.network_training.regressor import hold_out_speakers
from common.arrays import Floats, Samples
from common.errors import InputError
from common.progress import Count
from evaluation.attackers.training.corpus import TrainingUtterance, read_checked
from speech.conversion.recognizer_map import HOP_SAMPLES, PIECE_FRAMES, RATE_HZ, RecognizerMap, fit_map, mean_features
from speech.encoders import registry as encoders

if TYPE_CHECKING:
    from speech.encoders.contract import SpeakerEncoder
    from speech.features.whisper_layers import WhisperLayers

_PIECE_SAMPLES = PIECE_FRAMES * HOP_SAMPLES
_FEWEST_SPEAKERS = 10


def fit_recognizer_map(
    utterances: Sequence[TrainingUtterance], recipe: MapRecipe, seed: int, progress: Count
) -> tuple[RecognizerMap, float, Mapping[str, Any]]:
    """Return the map of all speakers, the seconds of speech, and what another map is worth on speakers that it did not
    see.

    Raises:
        InputError: fewer than ten speakers have three seconds of speech in a row, or audio cannot be read.
    """
    from speech.features import whisper_layers

    layers, speakers = whisper_layers.load(), encoders.load(SPEAKER_ENCODER)
    features: list[Floats] = []
    vectors: list[Floats] = []
    sources: list[str] = []
    seconds = 0.0
    for number, utterance in enumerate(utterances):
        progress(number, len(utterances))
        samples = read_checked(utterance)
        seconds += samples.size / RATE_HZ
        for feature, vector in _measure(samples, layers, speakers):
            features.append(feature)
            vectors.append(vector)
            sources.append(utterance.source)
    progress(len(utterances), len(utterances))
    if len(set(sources)) < _FEWEST_SPEAKERS:
        raise InputError(
            f"Expected at least {_FEWEST_SPEAKERS} speakers with {_PIECE_SAMPLES / RATE_HZ:g} s of speech in a row, "
            f"found {len(set(sources))}. Add recordings of other speakers."
        )
    known, wanted = np.array(features), np.array(vectors)
    unheard = np.isin(sources, sorted(hold_out_speakers(utterances, recipe.held_out, seed)))
    heard = [source for source, is_unheard in zip(sources, unheard, strict=True) if not is_unheard]
    others = fit_map(known[~unheard], wanted[~unheard], heard, recipe.ridge)
    return fit_map(known, wanted, sources, recipe.ridge), seconds, _judge(others, known[unheard], wanted[unheard])


def _measure(samples: Samples, layers: WhisperLayers, speakers: SpeakerEncoder) -> list[tuple[Floats, Floats]]:
    """Feature and vector of each piece of three seconds."""
    found = []
    for start, feature in mean_features(samples, layers).items():
        piece = samples[start : start + _PIECE_SAMPLES]
        if piece.size == _PIECE_SAMPLES:
            found.append((feature, speakers.embed([piece], RATE_HZ)[0].astype(np.float64)))
    return found


def _judge(fitted: RecognizerMap, features: Floats, vectors: Floats) -> Mapping[str, Any]:
    """Return mean cosine of expected and real vectors, beside that of the mean vector of the training."""
    mean = fitted.vectors / np.linalg.norm(fitted.vectors)
    pairs = zip(features, vectors, strict=True)
    found = [(float(fitted.expect(one) @ vector), float(mean @ vector)) for one, vector in pairs]
    cosine, null_cosine = np.mean(found, axis=0).round(4).tolist() if found else (None, None)
    return {"held_out": {"pieces": len(features), "cosine": cosine, "null_cosine": null_cosine}}
