"""Reads own recognition for pages and API: of each recogniser its newest finished run, and its utterances."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.files.storage import default_storage

from evaluation import attack_keys
from evaluation.encoders import EngineText
from evaluation.formats.transcripts import split_words
from evaluation.metrics.word_errors import AlignedWord, align_words
from evaluation.models import EvaluationRun
from evaluation.objective.values import Number
from evaluation.recognizers.texts import RULES, find_rule
from evaluation.selectors_attack import engine_text, finished_of
from evaluation.selectors_objective import numbers_of
from evaluation.selectors_recordings import Ground, SpokenSetState, spoken_sets
from portal.submissions.models import Submission


@dataclass(frozen=True)
class WordRow:
    """Word errors of a data set, gender and form of speech; rates and limits in per cent.

    Attributes:
        honest: with missing hypotheses counted as deleted.
        clipped: no utterance counts more errors than it has words. Both of anonymised speech only.
    """

    data_set: str
    gender: str
    speech: str
    utterances: int
    speakers: int
    words: int
    insertions: int
    deletions: int
    substitutions: int
    error_rate: float
    low: float | None
    high: float | None
    honest: float | None
    clipped: float | None


@dataclass(frozen=True)
class WordDifference:
    """Word error rate of anonymised less that of original speech, in points, over the same utterances."""

    data_set: str
    gender: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RecognitionValues:
    """What one recogniser understood.

    Attributes:
        rule: how texts were made comparable, for people.
        averages: by the weights of the edition.
    """

    run: EvaluationRun
    engine: EngineText
    finished_at: datetime | None
    rule: str
    rows: list[WordRow]
    differences: list[WordDifference]
    notes: list[str]
    averages: list[Number]
    numbers: list[Number]


@dataclass(frozen=True)
class SpokenRow:
    """One utterance: its errors, and the texts as they were written; `original_errors` is None without a hypothesis.

    Attributes:
        file: key of its `SubmittedFile`.
        original: what was understood of the original recording.
        is_runaway: whether the recogniser repeats itself, as on speech that it cannot make out.
    """

    utterance: str
    data_set: str
    speaker: str
    gender: str
    file: int | None
    words: int
    errors: int
    insertions: int
    deletions: int
    substitutions: int
    original_errors: int | None
    is_runaway: bool
    reference: str
    hypothesis: str
    original: str | None

    @property
    def error_rate(self) -> float | None:
        """In per cent; None without a word."""
        return 100 * self.errors / self.words if self.words else None


def recognitions_of(submission: Submission, as_of: datetime | None = None) -> list[RecognitionValues]:
    """Of each recogniser its newest finished run: two queries."""
    runs = finished_of(submission, EvaluationRun.Kind.RECOGNITION, as_of)
    numbers = numbers_of(runs)
    return [_values_of(run, list(numbers.get(run.pk, {}).values())) for run in runs]


def _values_of(run: EvaluationRun, numbers: list[Number]) -> RecognitionValues:
    result: dict[str, Any] = run.job.result if run.job else {}
    rule = RULES.get(result.get("rule", ""))
    return RecognitionValues(
        run=run,
        engine=engine_text(run),
        finished_at=run.job.finished_at if run.job else None,
        rule=rule.title if rule else result.get("rule", ""),
        rows=[WordRow(**one) for one in result.get("rows", [])],
        differences=[WordDifference(**one) for one in result.get("differences", [])],
        notes=list(result.get("notes", [])),
        averages=[one for one in numbers if one.is_average],
        numbers=numbers,
    )


def utterances_of(run: EvaluationRun, data_set: str = "") -> list[SpokenRow]:
    """The recognised utterances of a data set, or of all, the highest error rate first; one file for each data set."""
    rows: list[SpokenRow] = []
    for name in run.parameters.get("data_sets", []):
        key = attack_keys.words_key(run.pk, name)
        if data_set in ("", name) and default_storage.exists(key):
            with default_storage.open(key) as stored:
                rows += [SpokenRow(**one) for one in json.loads(stored.read())]
    return sorted(rows, key=lambda row: (-(row.error_rate or 0.0), row.data_set, row.utterance))


def alignment_of(row: SpokenRow, rule: str, *, original: bool = False) -> tuple[AlignedWord, ...]:
    """Reference and hypothesis side by side, in the words that were counted.

    Args:
        rule: name of the text rule of the run (`run.parameters["rule"]`).
        original: of the original recording.

    Raises:
        MetricInputError: there is no such rule any more.
    """
    normalise = find_rule(rule).normalise
    heard = (row.original or "") if original else row.hypothesis
    return align_words(split_words(normalise(row.reference)), split_words(normalise(heard)))


def spoken_sets_of(submission: Submission) -> list[SpokenSetState]:
    """The data sets of a submission whose words can be recognised, and why others cannot."""
    return spoken_sets(Ground(submission))
