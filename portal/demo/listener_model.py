"""Simulates what listeners hear and answer. Every number that comes from here is *simulated*: nobody listened.

**Ratings.** Each system has a latent quality q in [0, 1] for a task. For naturalness and intelligibility it is given;
for verifiability it is one minus the latent distance of the two voices, which has one mean for pairs of one speaker and
another for pairs of two. A listener l rates utterance u of speaker p, processed by system s, as

    x = q + utterance_u + speaker_p + system_utterance_su + noise,
    rating = low + (high − low) · (1/2 + bias_l + stretch_l · (x − 1/2)), rounded and kept on the scale.

Every effect but the noise is drawn once for what it is named after and for each task, all normal; effects of one thing
in two tasks are correlated, and ln(stretch_l) is normal.

**Boards.** A speaker is a vector, and so is a voice that a system gives; a sample is a mixture of both, with what the
system sounds like and how the utterance happens to be spoken. A listener perceives it with noise, places samples by the
leading principal axes in any orientation, and groups the closest into as many groups as speakers are guessed.

**Transcripts.** Each word is missed, mistaken or doubled independently, at a rate of the system times one of the
listener.

Conventions: everything is drawn from the generator that is passed in, in an order that depends on the names alone, so
that equal input and an equal state give equal answers.

Sources: Rosenberg & Ramabhadran, "Bias and statistical significance in evaluating speech synthesis with mean opinion
scores", Interspeech 2017 (listeners' biases); ITU-T P.913, Annex E (bias and inconsistency of a listener).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np

from common.arrays import Floats, Ints, Texts
from listening.analysis.reading.inputs import Scale

_AXES = 6  # of a voice
_MOST_GROUPS = 16
_BETWEEN_TASKS = 0.5  # correlation of an effect between two tasks
_PERCEPTION_SD, _SPEAKING_SD = 0.6, 0.5  # of listeners and utterances on boards, where speakers lie about 3.5 apart
_RATE_SD = 0.4  # of the logarithm of a listener's factor of word errors


class RatedTrial(NamedTuple):
    """Asks a listener about one utterance; `is_target` matters for verifiability alone."""

    listener: int
    system: str
    is_target: int
    utterance: str
    speaker: str
    task: str


@dataclass(frozen=True, slots=True)
class SystemModel:
    """Describes how a system sounds.

    Attributes:
        naturalness, intelligibility: latent quality, in [0, 1].
        same_distance, different_distance: mean latent distance of pairs of one speaker and of two, in [0, 1].
        voice_kept: share of the speaker in the voice, in [0, 1].
        word_error_rate: of an average listener, in [0, 1].
    """

    naturalness: float = 0.85
    intelligibility: float = 0.88
    same_distance: float = 0.22
    different_distance: float = 0.75
    voice_kept: float = 1.0
    word_error_rate: float = 0.04

    def quality(self, task: str) -> tuple[float, float]:
        """Return the latent quality of nontargets and of targets."""
        if task == "verifiability":
            return 1 - self.different_distance, 1 - self.same_distance
        value = self.naturalness if task == "naturalness" else self.intelligibility
        return value, value


ORIGINAL_SPEECH = SystemModel()


class Spreads(NamedTuple):
    """Standard deviations of listeners and material as shares of the scale; `stretch`: of its logarithm."""

    bias: float = 0.10
    stretch: float = 0.25
    noise: float = 0.16
    utterance: float = 0.06
    speaker: float = 0.03
    system_utterance: float = 0.06


USUAL = Spreads()


def simulate_ratings(
    trials: Sequence[RatedTrial],
    systems: Mapping[str, SystemModel],
    scale: Scale,
    numbers: np.random.Generator,
    spreads: Spreads = USUAL,
) -> Ints:
    """Simulate ratings, one for each trial, in their order: whole numbers on the scale of the task.

    Args:
        trials: all of a study at once, for effects are newly drawn in each call.
        systems: by name; `inputs.ORIGINAL` too where it is rated.
        scale: lowest and highest rating by task.
    """
    columns = [np.array(column) for column in zip(*trials, strict=True)]
    listener, system, is_target, utterance, speaker, task = columns
    task_names, number = np.unique(task, return_inverse=True)
    low, high = np.array([scale[name] for name in task_names.tolist()])[number].T
    names, code = np.unique(system, return_inverse=True)
    quality = np.array([[systems[name].quality(task) for task in task_names.tolist()] for name in names.tolist()])
    heard = quality[code, number, (is_target > 0).astype(np.int64)]
    pair = np.char.add(np.char.add(system, "\t"), utterance)
    for named, spread in (
        (utterance, spreads.utterance),
        (speaker, spreads.speaker),
        (pair, spreads.system_utterance),
    ):
        heard = heard + spread * _effects(named, number, numbers)
    heard = heard + spreads.noise * numbers.standard_normal(len(trials))
    bias = spreads.bias * _effects(listener, number, numbers)
    stretch = np.exp(spreads.stretch * _effects(listener, number, numbers))
    share = np.clip(0.5 + bias + stretch * (heard - 0.5), 0, 1)
    return np.asarray(np.rint(low + (high - low) * share), np.int64)


def _effects(names: Texts | Ints, task: Ints, numbers: np.random.Generator) -> Floats:
    """Return a standard normal effect of each name in each task, at each trial."""
    different, code = np.unique(names, return_inverse=True)
    shared = numbers.standard_normal((different.size, 1))
    own = numbers.standard_normal((different.size, int(task.max()) + 1))
    return np.asarray((sqrt(_BETWEEN_TASKS) * shared + sqrt(1 - _BETWEEN_TASKS) * own)[code, task])


def draw_voices(
    samples: Sequence[tuple[str, str, str]], systems: Mapping[str, SystemModel], numbers: np.random.Generator
) -> Floats:
    """Return what each sample of a study sounds like, shape (samples, axes).

    Args:
        samples: system, utterance and speaker of each.
    """

    def drawn(keys: Sequence[tuple[str, ...]]) -> Floats:
        different = {key: place for place, key in enumerate(sorted(set(keys)))}
        return np.asarray(numbers.standard_normal((len(different), _AXES))[[different[key] for key in keys]])

    speaker = drawn([(speaker,) for _, _, speaker in samples])
    given = drawn([(system, speaker) for system, _, speaker in samples])
    spoken = drawn([(system, utterance) for system, utterance, _ in samples])
    sound = drawn([(system,) for system, _, _ in samples])
    kept = np.array([systems[system].voice_kept for system, _, _ in samples])[:, None]
    return np.asarray(kept * speaker + np.sqrt(1 - kept**2) * (given + sound) + _SPEAKING_SD * spoken)


def simulate_board(
    voices: Floats, speakers: int, dimensions: int, numbers: np.random.Generator
) -> tuple[list[list[float]], list[str], int]:
    """Return where a listener puts the samples of a board, their groups, and how many speakers were heard.

    Speakers are heard in their true number, or one beside it, at most 16.

    Args:
        voices: of `draw_voices`, those of the board.
        speakers: how many there are.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    perceived = voices + _PERCEPTION_SD * numbers.standard_normal(voices.shape)
    declared = int(np.clip(speakers + numbers.choice([-1, 0, 0, 1]), 1, min(len(voices), _MOST_GROUPS)))
    places = _map(perceived, dimensions, numbers)
    numbered = fcluster(linkage(perceived, "average"), declared, "maxclust") if len(voices) > 1 else [0]
    letters: dict[int, str] = {}
    return places, [letters.setdefault(int(one), ascii_uppercase[len(letters)]) for one in numbered], declared


def _map(perceived: Floats, dimensions: int, numbers: np.random.Generator) -> list[list[float]]:
    """Return the leading principal axes, turned at random, within [0.05, 0.95], with four decimals."""
    centred = perceived - perceived.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    flat = np.zeros((len(perceived), dimensions))
    flat[:, : min(dimensions, len(axes))] = centred @ axes[:dimensions].T
    turn, _ = np.linalg.qr(numbers.standard_normal((dimensions, dimensions)))
    turned = flat @ turn
    middle = (turned.max(axis=0) + turned.min(axis=0)) / 2
    extent = float(np.max(turned.max(axis=0) - turned.min(axis=0))) or 1.0
    places: list[list[float]] = np.round(0.5 + 0.9 * (turned - middle) / extent, 4).tolist()
    return places


def simulate_transcripts(sentences: Sequence[tuple[int, float, str]], numbers: np.random.Generator) -> list[str]:
    """Return what listeners type, in the order of the sentences; empty where nothing was understood.

    Of the errors a half are other words of these sentences, 0.35 are missing words and 0.15 are words too many.

    Args:
        sentences: listener, word error rate of an average listener, and what was said.
    """
    known = sorted({word for *_, words in sentences for word in words.split()})
    people = sorted({listener for listener, *_ in sentences})
    factor = dict(zip(people, np.exp(_RATE_SD * numbers.standard_normal(len(people))).tolist(), strict=True))
    typed = []
    for listener, word_error_rate, said in sentences:
        rate = min(word_error_rate * factor[listener], 0.95)
        words: list[str] = []
        for word in said.split():
            kind, other = numbers.random(), known[int(numbers.integers(len(known)))]
            if kind < 0.5 * rate:
                words.append(other)
            elif kind >= 0.85 * rate:
                words += [word, other] if kind < rate else [word]
        typed.append(" ".join(words))
    return typed
