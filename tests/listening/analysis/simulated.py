"""Simulated ratings for tests: a small balanced study, with the columns of an analysis."""

import numpy as np

from listening.analysis.reading.inputs import ORIGINAL, Ratings, Settings
from listening.analysis.scoring.normalisation import score_ratings
from portal.demo.listener_model import ORIGINAL_SPEECH, USUAL, RatedTrial, SystemModel, simulate_ratings
from tests.listening.rated import RATED

SCALE = dict.fromkeys(RATED, (1.0, 10.0))
SETTINGS = Settings(resamples=300)


def systems_of(count):
    """From bad to good."""
    places = np.linspace(0, 1, count) if count > 1 else [0.5]
    return {ORIGINAL: ORIGINAL_SPEECH} | {
        f"T{number:02}-p1": SystemModel(
            naturalness=0.25 + 0.5 * place, intelligibility=0.4 + 0.4 * place, same_distance=0.3 + 0.4 * place
        )
        for number, place in enumerate(places, 1)
    }


def trials_of(systems, listeners, each, utterances, tasks=RATED):
    """Each listener rates each system `each` times, and as many originals as all of them; half are targets."""
    trials = []
    for listener in range(listeners):
        for place, system in enumerate(systems):
            count = each * (len(systems) - 1) if system == ORIGINAL else each
            for number in range(count):
                utterance = (listener * 3 + number * 5 + place * 7) % utterances
                speaker = f"speaker-{utterance % 8}"
                trials.append((listener, system, number % 2, f"utterance-{utterance}", speaker))
    return [RatedTrial(*trial, task) for trial in trials for task in tasks]


def ratings_of(seed=0, listeners=20, count=3, each=4, utterances=24, spreads=USUAL, tasks=RATED):
    """The ratings of a simulated study."""
    systems = systems_of(count)
    return simulated(trials_of(systems, listeners, each, utterances, tasks), systems, seed, spreads)


def null_study(seed, listeners=12, systems=6, utterances=8, task="naturalness", is_shared=True):
    """All rate the same utterances of equal systems, or other ones of each; verifiability: one pair of each class."""
    equal = {f"T{number:02}-p1": SystemModel(0.5, 0.5, 0.4, 0.6) for number in range(systems)}
    classes = (0, 1) if task == "verifiability" else (0,)
    trials = [
        RatedTrial(
            listener, system, is_target, f"utterance-{number}{'' if is_shared else system}", f"speaker-{number}", task
        )
        for listener in range(listeners)
        for system in equal
        for number in range(utterances)
        for is_target in classes
    ]
    return simulated(trials, equal, seed)


def simulated(trials, systems, seed, spreads=USUAL):
    """The ratings of these trials."""
    rating = simulate_ratings(trials, systems, SCALE, np.random.default_rng(seed), spreads)
    listener, system, is_target, utterance, speaker, task = (np.array(column) for column in zip(*trials, strict=True))
    name = np.char.add("listener-", np.char.zfill(listener.astype(str), 2))
    blank = np.full(rating.size, "")
    return Ratings(
        name,
        name,
        task,
        system,
        is_target,
        utterance,
        utterance,
        blank,
        speaker,
        blank,
        rating.astype(float),
        np.arange(rating.size) % 50 + 1,
        np.full(rating.size, "scored"),
        np.ones(rating.size, bool),
        blank,
    )


def scored_of(kind="raw", settings=SETTINGS, **study):
    return score_ratings(ratings_of(**study), SCALE, settings, kind)
