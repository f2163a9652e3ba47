"""What a recogniser made of the speech of a data set: word error rates with intervals, the worst utterances, originals.

Texts come as they were written; one rule makes both comparable, so that a report says how it counted. Conventions:
rates are fractions, lower is better; intervals are 95 % over speakers; a difference is anonymised less original on the
same utterances and the same resamples. Utterances without a hypothesis are left out of the rates, as the challenge
leaves them out, and named; `honest_error_rate` counts their words as deleted.

Sources: Bisani & Ney, ICASSP 2004 (intervals, paired differences); Franzreb et al., "SpAnE" (the clipped count).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from common.errors import InputError
from common.file_names import fold_names, name_other_capitals
from evaluation.metrics import word_errors
from evaluation.metrics.bootstrap import Interval, Replicates, SpeakerDraws, bootstrap_ratio, difference, draw_speakers
from evaluation.metrics.word_normalization import WRITTEN_ENGLISH, TextRule

GROUPS = {"all": "all", "f": "female", "m": "male"}
RESAMPLES = 1000
_FEWEST_REPEATS, _FEWEST_REPEATED_WORDS, _LONGEST_PHRASE = 4, 8, 10


@dataclass(frozen=True, slots=True)
class RecognizedUtterance:
    """An utterance that has a reference and a hypothesis.

    Attributes:
        speaker, gender: empty where not known.
        errors: counts and alignment of its words after the rule.
        original: the same of the original speech; None where that was not recognised.
        is_runaway: the recogniser says a phrase over and over that the reference does not: it hears what is not there.
    """

    utterance: str
    speaker: str
    gender: str
    errors: word_errors.UtteranceWordErrors
    original: word_errors.UtteranceWordErrors | None
    is_runaway: bool


@dataclass(frozen=True, slots=True)
class GroupErrors:
    """Errors of all utterances, or of those of one gender.

    Attributes:
        group: ``all``, ``f`` or ``m``.
        utterances, speakers: that have reference and hypothesis; speakers 0 where not known.
        counts: pooled over them.
        interval: of the error rate; None with fewer than two speakers.
        clipped_error_rate: with at most as many errors of an utterance as it has words, so that a recogniser that goes
            on and on over noise costs an utterance and no more.
        honest_error_rate: with the words of utterances without hypothesis as deleted.
        original: of the original speech, over the utterances that have both hypotheses.
        original_interval, difference: of its rate, and of anonymised less original over those utterances.
        replicates, original_replicates: the resampled rates, for averages over sets.
    """

    group: str
    utterances: int
    speakers: int
    counts: word_errors.WordErrorCounts
    interval: Interval | None
    clipped_error_rate: float | None
    honest_error_rate: float | None
    original: word_errors.WordErrorCounts | None
    original_interval: Interval | None
    difference: Interval | None
    replicates: Replicates | None = field(default=None, repr=False, compare=False)
    original_replicates: Replicates | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class RecognitionReport:
    """Everything counted once, for pages and commands to show.

    Attributes:
        rule: name of the rule that made texts comparable.
        groups: all first, then the genders that there are.
        utterances: those with reference and hypothesis, in the order of the references.
        without_hypothesis, without_reference: what could not be compared.
        notes: what a reader has to know, a sentence each.
    """

    rule: str
    groups: tuple[GroupErrors, ...]
    utterances: tuple[RecognizedUtterance, ...]
    without_hypothesis: tuple[str, ...]
    without_reference: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def overall(self) -> GroupErrors:
        """Of all utterances."""
        return self.groups[0]

    def worst(self, number: int = 10) -> tuple[RecognizedUtterance, ...]:
        """Return the utterances with most errors, of equally many the one with the higher rate first; none without
        errors."""
        wrong = [one for one in self.utterances if one.errors.has_errors]
        wrong.sort(key=lambda one: (-one.errors.counts.errors, one.errors.counts.reference_words, one.utterance))
        return tuple(wrong[:number])


def recognition_report(
    references: Mapping[str, str],
    hypotheses: Mapping[str, str],
    *,
    random: np.random.Generator | None = None,
    speakers: Mapping[str, str] | None = None,
    genders: Mapping[str, str] | None = None,
    originals: Mapping[str, str] | None = None,
    rule: TextRule = WRITTEN_ENGLISH,
    resamples: int = RESAMPLES,
) -> RecognitionReport:
    """Compare hypotheses with references, overall and by gender, next to those of the original speech.

    Args:
        references: utterance → transcript.
        hypotheses: utterance → what was recognised; empty is a hypothesis (all words deleted), absent is none.
        random: for the resamples; the same state gives the same intervals. Without it they follow from the speakers,
            as `draw_speakers` says.
        speakers: utterance → speaker; without it, or with utterances that have none, there are no intervals.
        genders: speaker → ``f`` or ``m``.
        originals: utterance → what the same recogniser made of the original speech.
        rule: applied to all texts.
        resamples: of the bootstrap.

    Raises:
        InputError: no reference, no utterance that has both texts, or no word in those references.
    """
    errors = _counted(references, hypotheses, rule)
    present = {one.utterance: references[one.utterance] for one in errors.utterances if not one.is_missing}
    heard = {name: text for name, text in (originals or {}).items() if name in present}
    before = _counted({name: present[name] for name in heard}, heard, rule).utterances if heard else ()
    original = {one.utterance: one for one in before}
    who = {one.utterance: (speakers or {}).get(one.utterance, "") for one in errors.utterances}
    everyone = [  # those without a hypothesis included
        RecognizedUtterance(
            utterance=one.utterance,
            speaker=who[one.utterance],
            gender=(genders or {}).get(who[one.utterance], ""),
            errors=one,
            original=original.get(one.utterance),
            is_runaway=_runs_away(one),
        )
        for one in errors.utterances
    ]
    utterances = tuple(one for one in everyone if not one.errors.is_missing)
    if not sum(one.errors.counts.reference_words for one in utterances):
        raise InputError(_explain_no_words(references, hypotheses, len(utterances)))
    groups = [_group("all", everyone, random, resamples)]
    for gender in ("f", "m"):
        members = [one for one in everyone if one.gender == gender]
        if any(not one.errors.is_missing for one in members):
            groups.append(_group(gender, members, random, resamples))
    return RecognitionReport(
        rule=rule.name,
        groups=tuple(groups),
        utterances=utterances,
        without_hypothesis=errors.missing,
        without_reference=errors.unexpected,
        notes=tuple(_notes(utterances, errors, groups[0], originals is not None)),
    )


def _explain_no_words(references: Mapping[str, str], hypotheses: Mapping[str, str], both: int) -> str:
    """Return why there is no word to be wrong: no name in common, or transcripts without words."""
    if not hypotheses:
        return "A word error rate needs hypotheses, found none."
    if not both:
        folded = fold_names(hypotheses)
        first = next((name for name in references if name.casefold() in folded), next(iter(references)))
        other = folded.get(first.casefold(), next(iter(hypotheses)))
        unlike = ", which differs in capitals only" if first.casefold() in folded else ""
        return (
            f"A word error rate needs hypotheses of the utterances that have a transcript, found none of them: there "
            f"are {len(references)} transcripts, such as of “{first}”, and {len(hypotheses)} hypotheses, such as of "
            f"“{other}”{unlike}."
        )
    without = "no words" if not any(text.split() for text in references.values()) else "none that the rule keeps"
    return f"A word error rate needs words in the transcripts, found {without} in the {both} that have a hypothesis."


def _counted(references: Mapping[str, str], hypotheses: Mapping[str, str], rule: TextRule) -> word_errors.WordErrors:
    return word_errors.count_word_errors(
        {name: rule.normalise(text) for name, text in references.items()},
        {name: rule.normalise(text) for name, text in hypotheses.items()},
    )


def _group(
    group: str, members: Sequence[RecognizedUtterance], random: np.random.Generator | None, resamples: int
) -> GroupErrors:
    """Of the members, those without a hypothesis included, which only the honest rate counts."""
    present = [one for one in members if not one.errors.is_missing]
    names = {one.speaker for one in present}
    draws = None
    if "" not in names and len(names) > 1:
        named = tuple(sorted(names))
        draws = draw_speakers(named, resamples, random) if random else _draw(named, resamples)
    every = _replicates([(one.speaker, one.errors.counts) for one in present], draws)
    pairs = [(one.speaker, one.errors.counts, one.original.counts) for one in present if one.original is not None]
    before = _replicates([(speaker, counts) for speaker, _, counts in pairs], draws)
    after = _replicates([(speaker, counts) for speaker, counts, _ in pairs], draws)
    return GroupErrors(
        group=group,
        utterances=len(present),
        speakers=len({one.speaker for one in present} - {""}),
        counts=word_errors.pool_word_errors(one.errors.counts for one in present),
        interval=_interval(every),
        clipped_error_rate=word_errors.clip_word_errors(one.errors.counts for one in present).error_rate,
        honest_error_rate=word_errors.pool_word_errors(one.errors.counts for one in members).error_rate,
        original=word_errors.pool_word_errors(counts for _, _, counts in pairs) if pairs else None,
        original_interval=_interval(before),
        difference=_change(difference(after, before)) if before and after else None,
        replicates=every,
        original_replicates=before,
    )


@lru_cache(maxsize=16)
def _draw(names: tuple[str, ...], resamples: int) -> SpeakerDraws:
    """Return the same draws for all sets of the same speakers, so that their rates vary together in an average."""
    return draw_speakers(names, resamples)


def _replicates(
    counted: Sequence[tuple[str, word_errors.WordErrorCounts]], draws: SpeakerDraws | None
) -> Replicates | None:
    if draws is None or len({speaker for speaker, _ in counted}) < 2:
        return None
    return bootstrap_ratio(
        [counts.errors for _, counts in counted],
        [counts.reference_words for _, counts in counted],
        [speaker for speaker, _ in counted],
        draws,
    )


def _change(replicates: Replicates) -> Interval | None:
    """Return a difference, which is kept where all resamples give the same one, too: readers leave out equal limits."""
    is_defined = np.count_nonzero(np.isfinite(replicates.resampled)) > 1 and np.isfinite(replicates.estimate)
    return replicates.interval() if is_defined else None


def _interval(replicates: Replicates | None) -> Interval | None:
    return replicates.find_interval() if replicates is not None else None


def _runs_away(one: word_errors.UtteranceWordErrors) -> bool:
    heard = [step.hypothesis for step in one.alignment if step.hypothesis is not None]
    said = [step.reference for step in one.alignment if step.reference is not None]
    return _repeats_itself(heard) and not _repeats_itself(said)


def _repeats_itself(words: Sequence[str]) -> bool:
    """Return whether a phrase of up to ten words stands four times or more in a row, over eight words or more."""
    for length in range(1, min(_LONGEST_PHRASE, len(words) // _FEWEST_REPEATS) + 1):
        needed = max(_FEWEST_REPEATS, -(-_FEWEST_REPEATED_WORDS // length))
        same = 0
        for position in range(length, len(words)):
            same = same + 1 if words[position] == words[position - length] else 0
            if same >= (needed - 1) * length:
                return True
    return False


def _explain_no_interval(utterances: Sequence[RecognizedUtterance], overall: GroupErrors) -> str:
    without = [one.utterance for one in utterances if not one.speaker]
    if len(without) == len(utterances):
        return "the speakers of the utterances are not known"
    if without:
        such = without[0] if len(without) == 1 else f"such as {without[0]}"
        return f"{len(without)} of {len(utterances)} utterances without a speaker, {such}"
    if overall.speakers < 2:
        return f"all utterances are of one speaker, {utterances[0].speaker}, and it takes two"
    if not overall.counts.errors:
        return "no utterance has an error, so that every resample of the speakers gives the same rate"
    return "the rate varies too little among resamples of the speakers"


def _notes(
    utterances: Sequence[RecognizedUtterance],
    errors: word_errors.WordErrors,
    overall: GroupErrors,
    with_originals: bool,
) -> list[str]:
    notes = []
    if overall.interval is None:
        notes.append(f"There is no interval: {_explain_no_interval(utterances, overall)}.")
    empty = sum(not any(step.hypothesis for step in one.errors.alignment) for one in utterances)
    if empty:
        notes.append(f"Of {empty} of {len(utterances)} utterances nothing was recognised: all their words are deleted.")
    wild = [one.utterance for one in utterances if one.is_runaway]
    if wild:
        notes.append(
            f"In {len(wild)} of {len(utterances)} utterances, such as {wild[0]}, the recogniser repeats a phrase that "
            "nobody said; the clipped rate counts no more errors in an utterance than it has words."
        )
    if missing := errors.missing:
        unlike = name_other_capitals(missing[0], fold_names(errors.unexpected))
        none = f"no hypothesis{unlike and f'{unlike},'}"
        many = f"{len(missing)} utterances, such as {missing[0]}, have {none} and were"
        one = f"1 utterance, {missing[0]}, has {none} and was"
        notes.append(f"{one if len(missing) == 1 else many} left out.")
    if unexpected := errors.unexpected:
        notes.append(
            f"{len(unexpected)} hypotheses, such as that of {unexpected[0]}, have no transcript and count nowhere."
        )
    lone = sum(one.original is None for one in utterances) if with_originals else 0
    if lone:
        notes.append(
            f"{lone} of {len(utterances)} utterances have no hypothesis of the original speech; rates next to the "
            "original's are over the others."
        )
    return notes
