"""A listener model: what simulated evaluators answer. Every number that comes from here is *simulated*.

Nobody listened. The model serves a demonstration whose results are marked as simulated, and experiments that need to
know the truth, such as whether intervals cover it. Its form follows what is known of listening tests; its default
spreads give listeners' means, standard errors and correlations of the size seen in public ratings of converted voices.

**Ratings.** Each system has a latent quality q in [0, 1] for a task. For naturalness and intelligibility it is given;
for verifiability it is one minus the latent distance of the two voices, which has one mean for pairs of one speaker and
another for pairs of two. A listener l rates utterance u of speaker p, processed by system s, as

    x = q + utterance_u + speaker_p + system_utterance_su + noise,
    rating = low + (high − low) · (1/2 + bias_l + stretch_l · (x − 1/2)), rounded and kept on the scale.

Every effect but the noise is drawn once for what it is named after and for each task, all normal; effects of one thing
in two tasks have the correlation `between_tasks`, and ln(stretch_l) is normal.

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


class RatedTrial(NamedTuple):
    """What a listener is asked; `is_target` matters for verifiability alone."""

    listener: int
    system: str
    is_target: int
    utterance: str
    speaker: str
    task: str


class PlacedSample(NamedTuple):
    """A sample on the board of a listener."""

    listener: int
    board: str
    system: str
    utterance: str
    speaker: str


class HeardSentence(NamedTuple):
    """What a listener is to type; `words` were said."""

    listener: int
    system: str
    utterance: str
    words: str


class SimulatedPlacement(NamedTuple):
    """Where a sample was put: `at` has as many coordinates in [0, 1] as dimensions; `declared` speakers were heard."""

    at: tuple[float, ...]
    group: str
    declared: int


@dataclass(frozen=True, slots=True)
class SystemModel:
    """How a system sounds.

    Attributes:
        naturalness, intelligibility: latent quality, in [0, 1].
        same_distance, different_distance: mean latent distance of pairs of one speaker and of two, in [0, 1].
        voice_kept: share of the speaker in the voice, in [0, 1].
        is_voice_by_speaker: whether all utterances of a speaker get one new voice, else each its own.
        word_error_rate: of an average listener, in [0, 1].
    """

    naturalness: float = 0.85
    intelligibility: float = 0.88
    same_distance: float = 0.22
    different_distance: float = 0.75
    voice_kept: float = 1.0
    is_voice_by_speaker: bool = True
    word_error_rate: float = 0.04

    def quality(self, task: str) -> tuple[float, float]:
        """Return the latent quality of nontargets and of targets."""
        if task == "verifiability":
            return 1 - self.different_distance, 1 - self.same_distance
        value = self.naturalness if task == "naturalness" else self.intelligibility
        return value, value


ORIGINAL_SPEECH = SystemModel()


@dataclass(frozen=True, slots=True)
class ListenerModel:
    """How listeners and material vary.

    Attributes:
        bias_sd, noise_sd: of a listener, and of a single rating, as shares of the scale.
        stretch_sd: of the logarithm of how much of the scale a listener uses.
        utterance_sd, speaker_sd, system_utterance_sd: of the material, as shares of the scale.
        between_tasks: correlation of each of these effects between two tasks, in [0, 1].
        perception_sd, speaking_sd: on boards, of a listener's perception and of a speaker's utterances; the distance
            of two speakers is about 3.5.
        rate_sd: of the logarithm of a listener's factor of word errors.
    """

    bias_sd: float = 0.10
    stretch_sd: float = 0.25
    noise_sd: float = 0.16
    utterance_sd: float = 0.06
    speaker_sd: float = 0.03
    system_utterance_sd: float = 0.06
    between_tasks: float = 0.5
    perception_sd: float = 0.6
    speaking_sd: float = 0.5
    rate_sd: float = 0.4


def simulate_ratings(
    trials: Sequence[RatedTrial],
    systems: Mapping[str, SystemModel],
    scale: Scale,
    numbers: np.random.Generator,
    model: ListenerModel | None = None,
) -> Ints:
    """Simulate ratings, one for each trial, in their order: whole numbers on the scale of the task.

    Args:
        trials: all of a study at once, for effects are newly drawn in each call.
        systems: by name; `inputs.ORIGINAL` too where it is rated.
        scale: lowest and highest rating by task.

    Raises:
        KeyError: a trial of a system or a task that is not given.
    """
    model = model or ListenerModel()
    if not trials:
        return np.empty(0, np.int64)
    columns = [np.array(column) for column in zip(*trials, strict=True)]
    listener, system, is_target, utterance, speaker, task = columns
    task_names, number = np.unique(task, return_inverse=True)
    ends = np.array([scale[name] for name in task_names.tolist()])
    low, high = ends[number].T
    heard = _qualities(system, is_target, task_names.tolist(), number, systems)
    pair = np.char.add(np.char.add(system, "\t"), utterance)
    for names, spread in (
        (utterance, model.utterance_sd),
        (speaker, model.speaker_sd),
        (pair, model.system_utterance_sd),
    ):
        heard = heard + spread * _effects(names, number, model.between_tasks, numbers)
    heard = heard + model.noise_sd * numbers.standard_normal(len(trials))
    bias = model.bias_sd * _effects(listener, number, model.between_tasks, numbers)
    stretch = np.exp(model.stretch_sd * _effects(listener, number, model.between_tasks, numbers))
    share = np.clip(0.5 + bias + stretch * (heard - 0.5), 0, 1)
    return np.asarray(np.rint(low + (high - low) * share), np.int64)


def simulate_boards(
    samples: Sequence[PlacedSample],
    systems: Mapping[str, SystemModel],
    numbers: np.random.Generator,
    *,
    dimensions: int = 2,
    model: ListenerModel | None = None,
) -> list[SimulatedPlacement]:
    """Simulate where listeners put the samples of their boards, in their order, and the groups that they draw.

    Each listener draws as many groups as speakers are declared: the true number, or one beside it, at most 16.

    Args:
        systems: by name; `inputs.ORIGINAL` too where it is on a board.
        dimensions: 1 or 2.

    Raises:
        KeyError: a sample of a system that is not given.
    """
    model = model or ListenerModel()
    if not samples:
        return []
    voices = _voices(samples, systems, numbers, model)
    boards: dict[tuple[int, str], list[int]] = {}
    for place, sample in enumerate(samples):
        boards.setdefault((sample.listener, sample.board), []).append(place)
    placed: dict[int, SimulatedPlacement] = {}
    for places in boards.values():
        perceived = voices[places] + model.perception_sd * numbers.standard_normal((len(places), _AXES))
        speakers = len({samples[place].speaker for place in places})
        declared = int(np.clip(speakers + numbers.choice([-1, 0, 0, 1]), 1, min(len(places), _MOST_GROUPS)))
        where, groups = _map(perceived, dimensions, numbers), _groups(perceived, declared)
        for place, at, group in zip(places, where, groups, strict=True):
            placed[place] = SimulatedPlacement(at, group, declared)
    return [placed[place] for place in range(len(samples))]


def simulate_transcripts(
    sentences: Sequence[HeardSentence],
    systems: Mapping[str, SystemModel],
    numbers: np.random.Generator,
    model: ListenerModel | None = None,
) -> list[str]:
    """Return what listeners type, in the order of the sentences; empty where nothing was understood.

    Of the errors a half are other words of these sentences, 0.35 are missing words and 0.15 are words too many.

    Args:
        systems: by name; `inputs.ORIGINAL` too where it is heard.

    Raises:
        KeyError: a sentence of a system that is not given.
    """
    model = model or ListenerModel()
    known = sorted({word for sentence in sentences for word in sentence.words.split()})
    people = sorted({sentence.listener for sentence in sentences})
    factor = dict(zip(people, np.exp(model.rate_sd * numbers.standard_normal(len(people))).tolist(), strict=True))
    typed = []
    for sentence in sentences:
        rate = min(systems[sentence.system].word_error_rate * factor[sentence.listener], 0.95)
        words: list[str] = []
        for word in sentence.words.split():
            kind, other = numbers.random(), known[int(numbers.integers(len(known)))]
            if kind < 0.5 * rate:
                words.append(other)
            elif kind >= 0.85 * rate:
                words += [word, other] if kind < rate else [word]
        typed.append(" ".join(words))
    return typed


def _qualities(
    system: Texts, is_target: Ints, task_names: list[str], number: Ints, systems: Mapping[str, SystemModel]
) -> Floats:
    """Return the latent quality of each trial."""
    names, code = np.unique(system, return_inverse=True)
    table = np.array([[systems[name].quality(task) for task in task_names] for name in names.tolist()])
    return np.asarray(table[code, number, (is_target > 0).astype(np.int64)])


def _effects(names: Texts | Ints, task: Ints, correlation: float, numbers: np.random.Generator) -> Floats:
    """Return a standard normal effect of each name in each task, at each trial."""
    different, code = np.unique(names, return_inverse=True)
    shared = numbers.standard_normal((different.size, 1))
    own = numbers.standard_normal((different.size, int(task.max()) + 1))
    return np.asarray((sqrt(correlation) * shared + sqrt(1 - correlation) * own)[code, task])


def _voices(
    samples: Sequence[PlacedSample],
    systems: Mapping[str, SystemModel],
    numbers: np.random.Generator,
    model: ListenerModel,
) -> Floats:
    """Return what each sample sounds like, shape (samples, axes)."""

    def drawn(keys: Sequence[tuple[str, ...]]) -> Floats:
        different = {key: place for place, key in enumerate(sorted(set(keys)))}
        return np.asarray(numbers.standard_normal((len(different), _AXES))[[different[key] for key in keys]])

    speaker = drawn([(one.speaker,) for one in samples])
    given = drawn(
        [
            (one.system, one.speaker if systems[one.system].is_voice_by_speaker else f"{one.speaker} {one.utterance}")
            for one in samples
        ]
    )
    spoken = drawn([(one.system, one.utterance) for one in samples])
    sound = drawn([(one.system,) for one in samples])
    kept = np.array([systems[one.system].voice_kept for one in samples])[:, None]
    changed = np.sqrt(1 - kept**2)
    return np.asarray(kept * speaker + changed * (given + sound) + model.speaking_sd * spoken)


def _map(perceived: Floats, dimensions: int, numbers: np.random.Generator) -> list[tuple[float, ...]]:
    """Return the leading principal axes, turned at random, within [0.05, 0.95], with four decimals."""
    centred = perceived - perceived.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    flat = np.zeros((len(perceived), dimensions))
    flat[:, : min(dimensions, len(axes))] = centred @ axes[:dimensions].T
    turn, _ = np.linalg.qr(numbers.standard_normal((dimensions, dimensions)))
    turned = flat @ turn
    middle = (turned.max(axis=0) + turned.min(axis=0)) / 2
    extent = float(np.max(turned.max(axis=0) - turned.min(axis=0))) or 1.0
    return [tuple(point) for point in np.round(0.5 + 0.9 * (turned - middle) / extent, 4).tolist()]


def _groups(perceived: Floats, count: int) -> list[str]:
    """Return letters of as many groups of the closest samples."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(perceived) == 1:
        return ["A"]
    numbered = fcluster(linkage(perceived, "average"), count, "maxclust")
    letters: dict[int, str] = {}
    return [letters.setdefault(int(number), ascii_uppercase[len(letters)]) for number in numbered]
