"""Ratings for tests: written out row by row, or drawn from a model of listeners with known truth."""

import numpy as np

from listening.analysis.reading.inputs import ORIGINAL, Ratings, Settings
from listening.analysis.scoring.normalisation import score_ratings
from tests.listening.analysis.made_ratings import columns_of

SCALE = {"verifiability": (1.0, 10.0), "naturalness": (1.0, 10.0), "intelligibility": (1.0, 10.0)}
QUICK = Settings(resamples=200, permutations=200)


def ratings_of(listener, system, rating, **others):
    """Columns of equal length, or one value for all; what is not given is filled plainly."""
    listener, system = np.asarray(listener, np.str_), np.asarray(system, np.str_)
    own = {"session": np.char.add("of-", listener), "item": np.char.add(system, "-item")}
    given = {"listener": listener, "system": system, "rating": rating} | own | others
    columns = [np.broadcast_to(np.asarray(values), len(rating)) for values in given.values()]
    rows = [dict(zip(given, row, strict=True)) for row in zip(*columns, strict=True)]
    return columns_of(rows, utterance="u1", speaker="s1")


def joined(*parts):
    """Ratings one after the other."""
    names = list(parts[0].__dataclass_fields__)
    return Ratings(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def scored_of(ratings, kind="raw", settings=QUICK, **how):
    return score_ratings(ratings, SCALE, settings, kind, **how)


def drawn(
    listeners=20,
    systems=4,
    utterances=12,
    speakers=4,
    each=4,
    seed=0,
    *,
    task="naturalness",
    listener_sd=1.0,
    utterance_sd=0.5,
    speaker_sd=0.3,
    noise_sd=1.0,
    position_effect=0.0,
    step=0.5,
    points=None,
):
    """Every listener rates `each` utterances of each system; system i is `step` worse than the one before.

    Continuous, or whole numbers from 1 to `points`. Utterances belong to speakers; an item is an utterance of a system.
    """
    numbers = np.random.default_rng(seed)
    names = [ORIGINAL, *(f"T{number:02}" for number in range(1, systems))]
    of_listener = numbers.normal(0, listener_sd, listeners)
    of_utterance, of_speaker = numbers.normal(0, utterance_sd, utterances), numbers.normal(0, speaker_sd, speakers)
    rows = []
    for listener in range(listeners):
        trials = [
            (system, int(one))
            for system in range(systems)
            for one in numbers.choice(utterances, each, replace=each > utterances)
        ]
        for position, place in enumerate(numbers.permutation(len(trials)), start=1):
            system, utterance = trials[place]
            speaker = utterance % speakers
            value = 7 - step * system + of_listener[listener] + of_utterance[utterance] + of_speaker[speaker]
            value += position_effect * position + numbers.normal(0, noise_sd)
            rows.append((listener, system, utterance, speaker, position, value))
    listener, system, utterance, speaker, position, value = (np.array(column) for column in zip(*rows, strict=True))
    if points is not None:
        value = np.clip(np.round(value), 1, points)
    named = np.array(names)[system]
    return ratings_of(
        [f"L{one:03}" for one in listener],
        named,
        value,
        task=task,
        utterance=np.array([f"u{one:03}" for one in utterance]),
        speaker=np.array([f"s{one}" for one in speaker]),
        item=np.array([f"{a}-u{b:03}" for a, b in zip(named, utterance, strict=True)]),
        position=position,
        is_target=np.where(utterance % 2 == 0, 1, 0),
    )
