"""Words that listeners understood: word error rates of what they wrote down, beside those of the recogniser.

Errors are counted as for the recogniser (Kaldi's alignment, `evaluation.metrics.word_errors`), after both texts were
normalised (`normalised_words`). Rates are pooled: all errors against all words, so that a long utterance weighs more.

Conventions: rates are shares, of reference words, and can exceed 1 with many insertions; lower means understood better.
A listener who says that nothing was understood, or writes no word, has deleted every word. Intervals resample listeners
with all their transcripts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.metrics.word_errors import align_words
from listening.analysis.contents import TRANSCRIPTION, TRANSCRIPTS
from listening.analysis.draws import listener_draws, percentile_interval
from listening.analysis.function_words import FUNCTION_WORDS
from listening.analysis.inputs import ORIGINAL, Floats, Ints, Objective, Transcripts
from listening.analysis.normalised_words import ENGLISH, closest_words, is_english
from listening.analysis.objective import ObjectiveMeasures, objective_by_utterance
from listening.analysis.settings import Settings
from listening.analysis.tables import Table

ALL = "all"


@dataclass(frozen=True, slots=True)
class TranscriptErrors:
    """One transcript against what was said.

    Attributes:
        reference, heard: words, normalised, with blanks between.
        words: of the reference. `keywords`: content words among them; `keywords_heard`: those written down.
        is_nothing: no word was written.
    """

    listener: str
    system: str
    utterance: str
    reference: str
    heard: str
    words: int
    substitutions: int
    deletions: int
    insertions: int
    keywords: int
    keywords_heard: int
    is_nothing: bool

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions


def transcription_tables(
    transcripts: Transcripts, objective: Objective | None, settings: Settings, language: str = ENGLISH
) -> list[Table]:
    """The tables ``transcription`` and ``transcripts``.

    Args:
        objective: word errors of the recogniser; None where nothing was computed.
        language: that was spoken; what is not English gets case and punctuation normalised only, and no keywords.

    Raises:
        AnalysisInputError: an utterance with two objective results.
    """
    counting: Transcripts = transcripts.rows(transcripts.excluded == "")
    has_reference = np.char.strip(counting.reference) != ""
    unknown = Counter(counting.system[~has_reference].tolist())
    unknown[ALL] = unknown.total() - unknown[ORIGINAL]
    counted = count_transcripts(counting.rows(has_reference), language)
    recognised = objective_by_utterance(objective)
    listeners = sorted({one.listener for one in counted})
    draws = listener_draws(len(listeners), settings)
    rows = []
    for system, of_system in _by_system(counted).items():
        row, remark = _understood(of_system, listeners, draws, settings)
        rate, missing = _recogniser_rate(of_system, recognised)
        if not is_english(language):
            del row["keyword_accuracy"]
        remarks = (_without_reference(unknown[system]), remark, missing)
        rows.append({"system": system, "recogniser_wer": rate, "remark": " ".join(filter(None, remarks))} | row)
    return [TRANSCRIPTION.table(rows), TRANSCRIPTS.table(map(_row_of_transcript, counted))]


def count_transcripts(transcripts: Transcripts, language: str = ENGLISH) -> list[TranscriptErrors]:
    """Word errors of each transcript, in the order of system (original first), utterance, listener and session."""
    columns = (
        transcripts.system != ORIGINAL, transcripts.system, transcripts.utterance, transcripts.listener,
        transcripts.session, transcripts.item, transcripts.text,
    )  # fmt: skip
    return [_count(transcripts, int(row), language) for row in np.lexsort(columns[::-1])]


def _count(transcripts: Transcripts, row: int, language: str) -> TranscriptErrors:
    heard = "" if transcripts.nothing[row] else str(transcripts.text[row])
    words = closest_words(str(transcripts.reference[row]), heard, language)
    alignment = align_words(words.reference, words.heard)
    keywords = [step for step in alignment if step.reference is not None and step.reference not in FUNCTION_WORDS]
    return TranscriptErrors(
        listener=str(transcripts.listener[row]),
        system=str(transcripts.system[row]),
        utterance=str(transcripts.utterance[row]),
        reference=" ".join(words.reference),
        heard=" ".join(words.heard),
        words=len(words.reference),
        substitutions=sum(None not in (one.reference, one.hypothesis) and not one.is_correct for one in alignment),
        deletions=sum(one.hypothesis is None for one in alignment),
        insertions=sum(one.reference is None for one in alignment),
        keywords=len(keywords),
        keywords_heard=sum(one.is_correct for one in keywords),
        is_nothing=not words.heard,
    )


def _by_system(counted: Sequence[TranscriptErrors]) -> dict[str, list[TranscriptErrors]]:
    """The original first, then every anonymised transcript if there is more than one system, then each system."""
    of_system: dict[str, list[TranscriptErrors]] = {}
    for one in counted:
        of_system.setdefault(one.system, []).append(one)
    anonymised = [one for one in counted if one.system != ORIGINAL]
    original = {ORIGINAL: of_system.pop(ORIGINAL)} if ORIGINAL in of_system else {}
    return original | ({ALL: anonymised} if len(of_system) > 1 else {}) | of_system


def _understood(
    counted: Sequence[TranscriptErrors], listeners: Sequence[str], draws: Ints | None, settings: Settings
) -> tuple[dict[str, Any], str]:
    """What a row of ``transcription`` says of listeners, and its remark."""
    words = sum(one.words for one in counted)
    keywords = sum(one.keywords for one in counted)
    heard_by = {one.listener for one in counted}
    row: dict[str, Any] = {
        "n": len(counted),
        "listeners": len(heard_by),
        "utterances": len({one.utterance for one in counted}),
        "words": words,
        "nothing": sum(one.is_nothing for one in counted) / len(counted),
        "keyword_accuracy": _ratio(sum(one.keywords_heard for one in counted), keywords),
        "wer": _ratio(sum(one.errors for one in counted), words),
        "substitutions": _ratio(sum(one.substitutions for one in counted), words),
        "deletions": _ratio(sum(one.deletions for one in counted), words),
        "insertions": _ratio(sum(one.insertions for one in counted), words),
    }
    if draws is None or len(heard_by) < settings.least_clusters:
        return row, f"Fewer than {settings.least_clusters} listeners: no interval."
    of_listener = np.zeros((len(listeners), 2))
    number_of = {name: number for number, name in enumerate(listeners)}
    for one in counted:
        of_listener[number_of[one.listener]] += one.errors, one.words
    drawn = draws @ of_listener
    with np.errstate(invalid="ignore"):
        rates: Floats = np.where(drawn[:, 1] > 0, drawn[:, 0] / drawn[:, 1], np.nan)
    row["wer_low"], row["wer_high"] = percentile_interval(rates, settings.level)
    return row, ""


def _recogniser_rate(
    counted: Sequence[TranscriptErrors], recognised: Mapping[tuple[str, str], ObjectiveMeasures]
) -> tuple[float | None, str]:
    """WER of the recogniser, each utterance counted as often as it was transcribed, and a remark where some lack it."""
    measures = [recognised.get((one.system, one.utterance)) for one in counted]
    known = [one for one in measures if one is not None and np.isfinite(one.one_minus_wer)]
    if not known:
        return None, ""
    rate = _ratio(sum(one.errors for one in known), sum(one.words for one in known))
    if len(known) == len(counted):
        return rate, ""
    return rate, f"The recogniser's result is known for {len(known)} of {len(counted)} transcripts."


def _without_reference(transcripts: int) -> str:
    if not transcripts:
        return ""
    return f"{transcripts} transcript{'' if transcripts == 1 else 's'} left out: what was said is not known."


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _row_of_transcript(one: TranscriptErrors) -> dict[str, Any]:
    return {
        "system": one.system,
        "utterance": one.utterance,
        "listener": one.listener,
        "words": one.words,
        "errors": one.errors,
        "reference": one.reference,
        "heard": one.heard,
    }
