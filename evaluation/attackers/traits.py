"""Attackers who know one trait only: how high a voice is on average, or the words that are said. Neither is trained.

Their scores are measured as those of any attacker; their rank disclosure says what the trait alone gives away. Words
are a floor: an anonymiser that keeps what is said cannot protect better. Conventions: scores grow with likeness.
Sources: rank disclosure of single traits: arXiv 2508.05250; tf-idf: K. Spärck Jones, Journal of Documentation (1972).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from common.arrays import Floats, Samples
from common.errors import InputError
from speech.encoders.contract import Vectors, check_utterances, unusable
from speech.pitch.estimators import track_f0

Pairs = Sequence[tuple[str, str]]

MEAN_F0 = "mean-f0"
WORDS = "words"
TRAITS: Mapping[str, str] = {
    MEAN_F0: "mean F0 of the audio alone",
    WORDS: "words alone, of text files in place of folders of audio",
}
SEMITONES = 12.0
LETTERS = (3, 4, 5)  # lengths of the n-grams of letters, spaces included
WORDS_IN_A_ROW = (1, 2)
_SHORTEST_S = 0.04  # one window of the F0 estimator


class MeanF0:
    """Mean F0 of an utterance as an encoder: one number, in semitones above 1 Hz."""

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """Return the mean over the voiced frames of each utterance, shape (n, 1).

        Raises:
            InputError: as `speech.encoders.contract.SpeakerEncoder`, or an utterance without a voiced frame.
        """
        check_utterances(utterances, rate_hz, shortest_samples=round(_SHORTEST_S * rate_hz), wanted_hz=None)
        means = np.zeros((len(utterances), 1), np.float32)
        for position, samples in enumerate(utterances):
            hz = track_f0(samples, rate_hz).hz
            if not hz.any():
                raise unusable(position, len(utterances), "a voice", "no voiced frame")
            means[position] = SEMITONES * np.log2(hz[hz > 0].mean())
        return means


def score_mean_f0(
    models: Mapping[str, npt.NDArray[np.float32]], tests: Mapping[str, npt.NDArray[np.float32]], pairs: Pairs
) -> Floats:
    """Minus the distance in semitones between a trial utterance and the mean of the model's utterances.

    Args:
        models: of each model shape (utterances, 1), semitones.
        tests: of each utterance shape (1,).
    """
    centres = {name: float(values.astype(np.float64).mean()) for name, values in models.items()}
    return np.array([-abs(centres[model] - float(tests[utterance][0])) for model, utterance in pairs])


def score_words(
    texts: Sequence[str], models: Mapping[str, Sequence[int]], tests: Mapping[str, int], pairs: Pairs
) -> Floats:
    """Return cosine between a trial text and the mean of what a speaker said at enrolment, both as n-grams by tf-idf.

    A term counts 1 + ln(its frequency in the text), times 1 + ln((1 + n) / (1 + n with it)) of the n enrolment texts;
    terms that occur in none of them do not count. Every text has length 1.

    Args:
        texts: everything that was said, at enrolment and in trials.
        models: places in `texts` of what each speaker said at enrolment.
        tests: place in `texts` of each trial utterance.

    Returns:
        Shape (pairs,), 0 to 1; 0 where both share nothing.

    Raises:
        InputError: no enrolment text has a word.
    """
    enrolled = sorted({place for places in models.values() for place in places})
    counted = {place: Counter(count_terms(texts[place])) for place in {*enrolled, *tests.values()}}
    occurs = Counter(term for place in enrolled for term in counted[place])
    if not occurs:
        raise InputError("Expected enrolment texts with words, found none.")
    rarity = {term: 1 + math.log((1 + len(enrolled)) / (1 + number)) for term, number in occurs.items()}
    weighed = {place: _weigh(one, rarity) for place, one in counted.items()}
    means: dict[str, dict[str, float]] = {}
    for name, places in models.items():
        means[name] = {}
        for place in places:
            for term, weight in weighed[place].items():
                means[name][term] = means[name].get(term, 0.0) + weight
        _shorten(means[name])
    return np.array(
        [
            sum(weight * means[model].get(term, 0.0) for term, weight in weighed[tests[utterance]].items())
            for model, utterance in pairs
        ]
    )


def count_terms(text: str) -> Iterator[str]:
    """Yield the n-grams of a text: of its words, and of its letters with the spaces between words; case does not
    count."""
    words = text.lower().split()
    for size in WORDS_IN_A_ROW:
        yield from (f"w {' '.join(words[at : at + size])}" for at in range(len(words) - size + 1))
    letters = f" {' '.join(words)} "
    for size in LETTERS:
        yield from (f"l {letters[at : at + size]}" for at in range(len(letters) - size + 1))


def _weigh(counted: Counter[str], rarity: Mapping[str, float]) -> dict[str, float]:
    known = {term: (1 + math.log(number)) * rarity[term] for term, number in counted.items() if term in rarity}
    return _shorten(known)


def _shorten(terms: dict[str, float]) -> dict[str, float]:
    """To length 1, in place."""
    length = math.sqrt(sum(weight * weight for weight in terms.values()))
    for term in terms:
        terms[term] /= length
    return terms
