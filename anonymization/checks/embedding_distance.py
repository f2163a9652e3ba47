"""Whether pseudo-speakers can be distinguished by their sound: similarity within one and between two.

Any engine that turns an utterance into a vector can listen; the one that is always there is the long-term spectrum, a
weak measure. Conventions: an ear is a function (samples int16 of shape (n,), rate in hertz) → vector of shape (d,);
likeness is the cosine of two vectors, from −1 to 1, each dimension centred and scaled by all vectors that are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import MethodError, Samples
from common.errors import MetricInputError
from common.problems import Problem, Severity
from evaluation.metrics.detection import speechbrain_eer
from speech.encoders.long_term_spectrum import speaker_vector

Vector = npt.NDArray[np.floating]
Ear = Callable[[Samples, int], Vector]
T = TypeVar("T")

LONG_TERM_SPECTRUM = "long-term spectrum"
# All pairs of so many utterances are compared, two million; of more, as many of each voice as go.
MOST_UTTERANCES = 2000
_LIMITS = {
    LONG_TERM_SPECTRUM: (
        "The long-term spectrum is a weak measure: it reflects the timbre of a voice and the channel, not intonation "
        "or speaking style. Voices with similar spectra may still differ, and a difference may come from the "
        "recording."
    )
}
_OTHER_LIMITS = (
    "An encoder trained on natural speech may miss differences between artificial voices, or respond to the recording "
    "instead of the voice."
)


@dataclass(frozen=True, slots=True)
class EmbeddingDistance:
    """How alike utterances sound within a pseudo-speaker and between two.

    Attributes:
        engine: who listened.
        n_utterances, n_voices: compared.
        n_left_out: utterances beyond `MOST_UTTERANCES`, or of voices beyond half as many.
        n_same, n_different: pairs of utterances of one voice, and of two.
        same_mean, same_sd, different_mean, different_sd: likeness of these pairs, −1 to 1.
        equal_error_rate: of telling the one kind from the other by likeness, in [0, 1] (SpeechBrain's definition); near
            0 where each voice is a voice of its own, 0.5 where nobody could tell.
    """

    engine: str
    n_utterances: int
    n_voices: int
    n_left_out: int
    n_same: int
    n_different: int
    same_mean: float
    same_sd: float
    different_mean: float
    different_sd: float
    equal_error_rate: float

    @property
    def limits(self) -> str:
        """What this ear cannot tell."""
        return _LIMITS.get(self.engine, _OTHER_LIMITS)

    def sentence(self) -> str:
        """What was heard, in words, with its limits."""
        rate = self.equal_error_rate
        if rate < 0.2:
            verdict = "It distinguishes the pseudo-speakers well"
        elif rate < 0.4:
            verdict = "It distinguishes some of the pseudo-speakers"
        else:
            verdict = "It hardly distinguishes the pseudo-speakers"
        left_out = f" {self.n_left_out} further utterances were left out." if self.n_left_out else ""
        return (
            f"By {self.engine}, {self.n_utterances} utterances of {self.n_voices} pseudo-speakers: similarity of two "
            f"utterances {self.same_mean:.2f} ± {self.same_sd:.2f} ({self.n_same} pairs) within one, "
            f"{self.different_mean:.2f} ± {self.different_sd:.2f} ({self.n_different} pairs) between two; EER "
            f"{rate:.1%}. {verdict}.{left_out} {self.limits}"
        )


def embed_utterances(
    utterances: Iterable[tuple[str, Samples, int]], ear: Ear | None = None
) -> tuple[dict[str, Vector], list[Problem]]:
    """The vector of each utterance, and a note on each that the ear cannot use, such as one that is too short.

    Args:
        utterances: name, samples (int16, shape (n,)) and rate in hertz of each.
        ear: the long-term spectrum where none is named.
    """
    listen = ear or speaker_vector
    vectors: dict[str, Vector] = {}
    problems = []
    for name, samples, rate in utterances:
        try:
            vectors[name] = listen(samples, rate)
        except (MetricInputError, MethodError) as error:
            problems.append(
                Problem(
                    "not-heard",
                    name,
                    expected="an utterance that the encoder can use",
                    found=str(error),
                    remedy="It was left out of this check; nothing to do.",
                    severity=Severity.NOTE,
                )
            )
    return vectors, problems


def compare_embeddings(
    vectors: Mapping[str, Vector], speaker_of: Mapping[str, str], *, engine: str = LONG_TERM_SPECTRUM
) -> EmbeddingDistance:
    """How alike utterances are within a pseudo-speaker and between two.

    Args:
        vectors: of each utterance, all of one shape (d,), from `embed_utterances` or any engine.
        speaker_of: the pseudo-speaker of each utterance, by any name, such as the key of the voice. Real speakers do as
            well: the same check on original speech tells what the ear is worth.
        engine: who listened, for the report.

    Raises:
        MethodError: an utterance without a pseudo-speaker, vectors of several shapes or not finite, fewer than two
            pseudo-speakers, or none with two utterances.
    """
    named = _utterances_by_voice(vectors, speaker_of)
    chosen = _choose(named)
    labels = np.repeat(np.arange(len(chosen)), [len(names) for names in chosen])
    if len(chosen) < 2 or labels.size == len(chosen):
        raise MethodError(
            "Comparing voices needs two pseudo-speakers, one of them with two utterances; found "
            f"{len(chosen)} with {labels.size} utterances."
        )
    directions = _directions([vectors[name] for names in chosen for name in names])
    above = np.triu_indices(labels.size, 1)
    likeness = (directions @ directions.T)[above]
    is_same = labels[above[0]] == labels[above[1]]
    same, different = likeness[is_same], likeness[~is_same]
    return EmbeddingDistance(
        engine=engine,
        n_utterances=labels.size,
        n_voices=len(chosen),
        n_left_out=len(vectors) - labels.size,
        n_same=same.size,
        n_different=different.size,
        same_mean=float(same.mean()),
        same_sd=float(same.std()),
        different_mean=float(different.mean()),
        different_sd=float(different.std()),
        equal_error_rate=speechbrain_eer(same, different),
    )


def _utterances_by_voice(vectors: Mapping[str, Vector], speaker_of: Mapping[str, str]) -> list[list[str]]:
    named: dict[str, list[str]] = defaultdict(list)
    for utterance in sorted(vectors):
        if utterance not in speaker_of:
            raise MethodError(f'Expected the pseudo-speaker of each utterance; found none of "{utterance}".')
        named[speaker_of[utterance]].append(utterance)
    return [named[voice] for voice in sorted(named)]


def _choose(named: Sequence[Sequence[str]]) -> list[list[str]]:
    """All utterances, or of too many as many of each voice as go, evenly from their order."""
    if sum(map(len, named)) <= MOST_UTTERANCES:
        return [list(names) for names in named]
    voices = _evenly(named, MOST_UTTERANCES // 2)
    return [_evenly(names, MOST_UTTERANCES // len(voices)) for names in voices]


def _evenly(items: Sequence[T], count: int) -> list[T]:
    if len(items) <= count:
        return list(items)
    return [items[i * len(items) // count] for i in range(count)]


def _directions(vectors: Sequence[Vector]) -> npt.NDArray[np.float64]:
    """Shape (utterances, d): each dimension centred and scaled, each vector of length 1, or 0 where it is the mean."""
    shapes = {vector.shape for vector in vectors}
    if len(shapes) > 1 or any(len(shape) != 1 or shape[0] == 0 for shape in shapes):
        raise MethodError(f"Expected vectors of one shape (d,); found {', '.join(sorted(map(str, shapes)))}.")
    values = np.stack(vectors).astype(np.float64)
    if not np.isfinite(values).all():
        raise MethodError("Expected vectors of finite numbers; found NaN or infinity. Check the engine.")
    rounding = 1e-12 * np.abs(values).max(axis=0)
    values -= values.mean(axis=0)
    spread = values.std(axis=0)
    values = np.where(spread > rounding, values / np.where(spread > rounding, spread, 1.0), 0.0)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.where(lengths > 0, lengths, 1.0))
