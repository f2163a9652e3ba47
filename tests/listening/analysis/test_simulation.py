"""The listener model: seeded, on the scale, and with the effects that it claims."""

import numpy as np
import pytest

from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.simulation import (
    ORIGINAL_SPEECH,
    HeardSentence,
    ListenerModel,
    PlacedSample,
    RatedTrial,
    SystemModel,
    simulate_boards,
    simulate_ratings,
    simulate_transcripts,
)
from listening.app.sessions.payloads import GROUPS
from tests.listening.analysis.simulated import SCALE, systems_of, trials_of

SYSTEMS = {
    ORIGINAL: ORIGINAL_SPEECH,
    "hidden": SystemModel(
        naturalness=0.4, same_distance=0.7, different_distance=0.72, voice_kept=0.0, word_error_rate=0.3
    ),
}


def generator(seed=1):
    return np.random.default_rng(seed)


def rated(task, system, listeners=60, trials=40, **model):
    asked = [
        RatedTrial(listener, system, number % 2, f"u{number}", f"p{number % 6}", task)
        for listener in range(listeners)
        for number in range(trials)
    ]
    values = simulate_ratings(asked, SYSTEMS, SCALE, generator(), ListenerModel(**model))
    return values.reshape(listeners, trials)


def test_equal_seeds_give_equal_ratings_on_the_scale():
    trials = trials_of(systems_of(3), listeners=10, each=4, utterances=20)
    first, second, other = (simulate_ratings(trials, systems_of(3), SCALE, generator(seed)) for seed in (1, 1, 2))
    assert first.tolist() == second.tolist() != other.tolist()
    assert (first.min(), first.max()) == (1, 10)
    assert first.dtype == np.int64
    assert simulate_ratings([], {}, SCALE, generator()).size == 0


def test_voices_of_originals_are_told_apart_and_hidden_ones_are_not():
    for system, least, most in ((ORIGINAL, 3.5, 6), ("hidden", -0.5, 0.7)):
        values = rated("verifiability", system)
        assert least < values[:, 1::2].mean() - values[:, ::2].mean() < most


def board(listeners=30, system="hidden", samples=12):
    return [
        PlacedSample(
            listener, f"board-{listener % 3}", system if number % 2 else ORIGINAL, f"u{number}", f"p{number % 3}"
        )
        for listener in range(listeners)
        for number in range(samples)
    ]


@pytest.mark.parametrize("dimensions", [1, 2])
def test_boards_are_filled_within_bounds_with_as_many_groups_as_declared(dimensions):
    samples = board()
    placed = simulate_boards(samples, SYSTEMS, generator(), dimensions=dimensions)
    assert placed == simulate_boards(samples, SYSTEMS, generator(), dimensions=dimensions)
    by_listener = {}
    for sample, one in zip(samples, placed, strict=True):
        assert len(one.at) == dimensions
        assert all(0 <= value <= 1 for value in one.at)
        by_listener.setdefault(sample.listener, []).append(one)
    for placements in by_listener.values():
        assert {one.declared for one in placements} == {len({one.group for one in placements})}
        assert {one.group for one in placements} <= set(GROUPS)
    assert {one.declared for one in placed} == {2, 3, 4}


def test_transcripts_have_about_the_errors_of_the_system():
    words = " ".join(f"word{number}" for number in range(20))
    heard = [HeardSentence(listener, system, "u", words) for listener in range(200) for system in SYSTEMS]
    typed = simulate_transcripts(heard, SYSTEMS, generator(), ListenerModel(rate_sd=0.0))
    assert typed == simulate_transcripts(heard, SYSTEMS, generator(), ListenerModel(rate_sd=0.0))
    for system, rate in ((ORIGINAL, 0.04), ("hidden", 0.3)):
        own = [text.split() for text, one in zip(typed, heard, strict=True) if one.system == system]
        kept = np.mean([sum(word in set(text) for word in words.split()) / 20 for text in own])
        # Words too many keep the word itself, and a mistaken word may stand elsewhere in the sentence.
        assert 1 - kept == pytest.approx(0.85 * rate, abs=0.25 * rate)
