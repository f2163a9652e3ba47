"""What a recogniser that was trained again understands of anonymised speech, beside one that never heard any.

Three rows over the same utterances: *ceiling*, trained on and tested on originals; *frozen*, trained on originals and
tested on anonymised speech, as a recogniser that nobody trained again; *retrained*, trained and tested on anonymised
speech. Rates are phone error rates, fractions, and say nothing about words.

Source: VoicePrivacy 2022 evaluation plan, section 3.2.1 (the recogniser that is trained again ranks the systems).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.formats.results import Speech
from evaluation.metrics.bootstrap import Interval
from evaluation.metrics.word_errors import WordErrorCounts
from evaluation.metrics.word_normalization import TextRule
from evaluation.objective_results.recognition import GroupErrors, recognition_report

PHONES = TextRule("phones-1", "phones as they are", "Nothing is changed.", lambda text: " ".join(text.split()))


@dataclass(frozen=True)
class PhoneRow:
    """One of the three rows; interval: of the rate, None with fewer than two speakers."""

    name: str
    training: Speech
    speech: Speech
    counts: WordErrorCounts
    interval: Interval | None

    @property
    def error_rate(self) -> float:
        """Return errors per phone of the transcripts."""
        return self.counts.errors / self.counts.reference_words


@dataclass(frozen=True)
class PhoneComparison:
    """The rows over the utterances of a data set.

    Attributes:
        damage: frozen less ceiling, in fractions; retraining: retrained less frozen. Both over the same utterances and
            the same resampled speakers; None with fewer than two speakers.
        frozen, retrained: in full, with what averages over sets need.
    """

    ceiling_row: PhoneRow
    frozen_row: PhoneRow
    retrained_row: PhoneRow
    damage: Interval | None
    retraining: Interval | None
    utterances: int
    speakers: int
    frozen: GroupErrors
    retrained: GroupErrors

    @property
    def rows(self) -> tuple[PhoneRow, ...]:
        """From the lowest rate to be expected to the highest."""
        return self.ceiling_row, self.retrained_row, self.frozen_row

    @property
    def regained(self) -> float | None:
        """Return the share of the damage that training again takes back; None where there is no damage."""
        ceiling, retrained, frozen = (row.error_rate for row in self.rows)
        return (frozen - retrained) / (frozen - ceiling) if frozen > ceiling else None


def compare_phones(
    references: Mapping[str, str],
    heard: Mapping[tuple[Speech, Speech], Mapping[str, str]],
    speakers: Mapping[str, str],
) -> PhoneComparison:
    """Count the phone errors of the three rows, over the utterances that all three heard.

    Args:
        references: utterance → phones of its transcript, separated by spaces.
        heard: by the speech that the recogniser was trained on and the speech that it heard, utterance → phones.
        speakers: utterance → speaker.

    Raises:
        InputError: no utterance with a phone that all three heard.
    """
    original, anonymised = Speech.ORIGINAL, Speech.ANONYMISED
    ceiling, frozen = heard[original, original], heard[original, anonymised]
    retrained = heard[anonymised, anonymised]
    common = {
        name: text for name, text in references.items() if name in ceiling and name in frozen and name in retrained
    }
    damaged = recognition_report(common, frozen, speakers=speakers, originals=ceiling, rule=PHONES).overall
    again = recognition_report(common, retrained, speakers=speakers, originals=frozen, rule=PHONES).overall
    if damaged.original is None:
        raise AssertionError("every utterance has an original here")
    return PhoneComparison(
        PhoneRow("ceiling", original, original, damaged.original, damaged.original_interval),
        PhoneRow("frozen", original, anonymised, damaged.counts, damaged.interval),
        PhoneRow("retrained", anonymised, anonymised, again.counts, again.interval),
        damaged.difference,
        again.difference,
        damaged.utterances,
        damaged.speakers,
        damaged,
        again,
    )
