"""Word error rate as Kaldi's ``compute-wer`` counts it, with the alignment that it counts.

Utterances without a hypothesis are left out by the official recipes (``--mode=present``, printed ``[PARTIAL]``); the
honest count takes all their words as deleted. Both stand side by side.

Conventions: rates are fractions (1.0 is one error per reference word) and may exceed 1; lower is better; words are
compared as written, so both texts are normalised before, once, when data are prepared (`normalise_transcript`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.numba_loops import compiled

_SPACES_FOR_MARKS = str.maketrans(",!?.", "    ")
# The separators of Kaldi's token reader; other Unicode spaces are part of a word there.
_WORD = re.compile(r"[^ \t\n\r\f\v]+")


def normalise_transcript(text: str) -> str:
    """``, ! ? .`` become spaces, runs of spaces become one, letters become capitals; nothing else.

    Source: the data preparation of VoicePrivacy 2022.

    >>> normalise_transcript("Well, isn't it?")
    "WELL ISN'T IT"
    """
    return " ".join(text.translate(_SPACES_FOR_MARKS).split()).upper()


def split_words(text: str) -> list[str]:
    """Return the words of a transcript as Kaldi splits them: at spaces, tabs and line ends, case kept.

    >>> split_words(" THE  CAT ")
    ['THE', 'CAT']
    """
    return _WORD.findall(text)


_MATCHED, _DELETED, _INSERTED = 0, 1, 2


class AlignedWord(NamedTuple):
    """One step of an alignment: a deletion has no hypothesis word, an insertion no reference word."""

    reference: str | None
    hypothesis: str | None

    @property
    def is_correct(self) -> bool:
        return self.reference == self.hypothesis


@dataclass(frozen=True, slots=True)
class WordErrorCounts:
    """Errors against a number of reference words; adding two pools them."""

    reference_words: int
    insertions: int
    deletions: int
    substitutions: int

    @property
    def errors(self) -> int:
        return self.insertions + self.deletions + self.substitutions

    @property
    def error_rate(self) -> float | None:
        """Return errors per reference word; None without a reference word (Kaldi prints nan or inf)."""
        return self.errors / self.reference_words if self.reference_words else None

    def __add__(self, other: WordErrorCounts) -> WordErrorCounts:
        return WordErrorCounts(
            self.reference_words + other.reference_words,
            self.insertions + other.insertions,
            self.deletions + other.deletions,
            self.substitutions + other.substitutions,
        )


@dataclass(frozen=True, slots=True)
class UtteranceWordErrors:
    """Errors of one utterance; `is_missing` where it has no hypothesis and all words are deleted."""

    utterance: str
    counts: WordErrorCounts
    alignment: tuple[AlignedWord, ...]
    is_missing: bool

    @property
    def has_errors(self) -> bool:
        return self.counts.errors > 0


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Errors of a set.

    Attributes:
        utterances: in the order of the references.
        present: pooled over the utterances that have a hypothesis; what the challenge prints.
        honest: pooled over all utterances, missing hypotheses as deletions.
        unexpected: utterances with a hypothesis but no reference; they count nowhere.
    """

    utterances: tuple[UtteranceWordErrors, ...]
    present: WordErrorCounts
    honest: WordErrorCounts
    unexpected: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Return utterances without a hypothesis; with any, Kaldi prints ``[PARTIAL]``, and `present` and `honest`
        differ."""
        return tuple(utterance.utterance for utterance in self.utterances if utterance.is_missing)


def count_word_errors(references: Mapping[str, str], hypotheses: Mapping[str, str]) -> WordErrors:
    """Align and count the words of every utterance of a set.

    An empty hypothesis is one: all words deleted, present. An empty reference adds insertions and
    no words. Nothing in common: every word wrong.

    Args:
        references: utterance → transcript, words at spaces.
        hypotheses: utterance → recognised words.

    Raises:
        InputError: no reference utterance.

    Example:
        >>> errors = count_word_errors({"a": "THE CAT", "b": "A DOG"}, {"a": "THE HAT"})
        >>> errors.present.error_rate, errors.honest.error_rate, errors.missing
        (0.5, 0.75, ('b',))
    """
    if not references:
        raise InputError("A word error rate needs at least one reference transcript, found none.")
    utterances = tuple(
        _compare(utterance, split_words(text), hypotheses.get(utterance)) for utterance, text in references.items()
    )
    return WordErrors(
        utterances=utterances,
        present=pool_word_errors(utterance.counts for utterance in utterances if not utterance.is_missing),
        honest=pool_word_errors(utterance.counts for utterance in utterances),
        unexpected=tuple(utterance for utterance in hypotheses if utterance not in references),
    )


def pool_word_errors(counts: Iterable[WordErrorCounts]) -> WordErrorCounts:
    """Return all errors against all words; no counts at all give zeros."""
    return sum(counts, WordErrorCounts(0, 0, 0, 0))


def clip_word_errors(counts: Iterable[WordErrorCounts]) -> WordErrorCounts:
    """Return all errors against all words, of each utterance at most as many errors as it has words.

    What is too much is taken off the insertions, of which alone there can be too many. SpAnE counts so (Franzreb
    et al., corpus WER with clipped edit counts); an utterance without words then counts nowhere.

    >>> clip_word_errors([WordErrorCounts(2, 5, 0, 1), WordErrorCounts(2, 0, 1, 0)]).error_rate
    0.75
    """
    return pool_word_errors(
        WordErrorCounts(
            one.reference_words,
            min(one.insertions, one.reference_words - one.deletions - one.substitutions),
            one.deletions,
            one.substitutions,
        )
        for one in counts
    )


def align_words(reference: Sequence[str], hypothesis: Sequence[str]) -> tuple[AlignedWord, ...]:
    """Return a cheapest alignment of two word sequences, by Kaldi's rule among equally cheap ones.

    At every pair of words, from the end: an insertion if that is as cheap as any way, else a
    deletion if it is, else the match or substitution (`LevenshteinEditDistance` of Kaldi's
    ``edit-distance-inl.h``). So "A B" against "B A" is an insertion and a deletion.

    The distance is RapidFuzz's. Its own alignment cannot be brought to this rule: it takes two
    substitutions where Kaldi takes an insertion and a deletion, for "C A" against "A B" as it is,
    for "A B" against "C A" with the sides swapped. Only the cells that can lie on a path of that
    distance are visited.
    """
    from rapidfuzz.distance import Levenshtein

    errors = Levenshtein.distance(reference, hypothesis)
    if errors == 0:
        return tuple(map(AlignedWord, reference, hypothesis))
    numbers: dict[str, int] = {}
    reference_ids = np.array([numbers.setdefault(word, len(numbers)) for word in reference], np.int64)
    hypothesis_ids = np.array([numbers.setdefault(word, len(numbers)) for word in hypothesis], np.int64)
    steps = compiled(_kaldi_path)(reference_ids, hypothesis_ids, errors)
    references, hypotheses = iter(reference), iter(hypothesis)
    return tuple(
        AlignedWord(
            None if step == _INSERTED else next(references),
            None if step == _DELETED else next(hypotheses),
        )
        for step in steps.tolist()
    )


def _compare(utterance: str, reference: list[str], hypothesis: str | None) -> UtteranceWordErrors:
    alignment = align_words(reference, [] if hypothesis is None else split_words(hypothesis))
    counts = WordErrorCounts(
        reference_words=len(reference),
        insertions=sum(step.reference is None for step in alignment),
        deletions=sum(step.hypothesis is None for step in alignment),
        substitutions=sum(
            step.reference is not None and step.hypothesis is not None and not step.is_correct for step in alignment
        ),
    )
    return UtteranceWordErrors(utterance, counts, alignment, is_missing=hypothesis is None)


def _kaldi_path(reference: NDArray[np.int64], hypothesis: NDArray[np.int64], errors: int) -> NDArray[np.int8]:
    """Steps of the alignment, first to last: `_MATCHED`, `_DELETED` or `_INSERTED`. Runs compiled.

    Cells further than `errors` from the diagonal lie on no path of that distance: they keep a cost
    too large to matter, and the cells on such paths their exact one.
    """
    rows, columns = hypothesis.size + 1, reference.size + 1
    width = 2 * errors + 1
    costs = np.full((rows, width), rows + columns, np.int32)
    for i in range(rows):
        for j in range(max(0, i - errors), min(columns, i + errors + 1)):
            c = j - i + errors
            if i == 0 or j == 0:
                costs[i, c] = i + j
                continue
            best = costs[i - 1, c] + (hypothesis[i - 1] != reference[j - 1])
            if c + 1 < width:
                best = min(best, costs[i - 1, c + 1] + 1)
            if c > 0:
                best = min(best, costs[i, c - 1] + 1)
            costs[i, c] = best
    steps = np.empty(reference.size + hypothesis.size, np.int8)
    i, j, at = rows - 1, columns - 1, steps.size
    while i > 0 or j > 0:
        c = j - i + errors
        at -= 1
        if i > 0 and (j == 0 or (c + 1 < width and costs[i - 1, c + 1] + 1 == costs[i, c])):
            steps[at] = _INSERTED
            i -= 1
        elif i == 0 or (c > 0 and costs[i, c - 1] + 1 == costs[i, c]):
            steps[at] = _DELETED
            j -= 1
        else:
            steps[at] = _MATCHED
            i, j = i - 1, j - 1
    return steps[at:]
