"""Reads recognition of the portal evaluation for pages and API: of each recogniser its newest finished run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evaluation.app.models import EvaluationRun
from evaluation.app.runs.kinds import RECOGNITION, EngineText, describe_engine
from evaluation.app.runs.selectors import NumbersOfRuns, list_newest_finished, read_numbers
from evaluation.metrics.word_errors import AlignedWord, align_words, split_words
from evaluation.metrics.word_normalization import RULES, find_rule
from evaluation.objective_results.values import Number
from portal.core.storage import read_stored
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


def list_recognitions(submission: Submission, as_of: datetime | None = None) -> list[RecognitionValues]:
    """Of each recogniser its newest finished run: two queries."""
    runs = list_newest_finished(RECOGNITION, [submission], as_of)
    return read_recognitions(runs, read_numbers(runs))


def read_recognitions(runs: list[EvaluationRun], numbers: NumbersOfRuns) -> list[RecognitionValues]:
    """Return what these finished recognitions heard.

    Args:
        numbers: of these runs at least.
    """
    return [_read_values(run, list(numbers.get(run.pk, {}).values())) for run in runs]


def _read_values(run: EvaluationRun, numbers: list[Number]) -> RecognitionValues:
    result: dict[str, Any] = run.job.result if run.job else {}
    rule = RULES.get(result.get("rule", ""))
    return RecognitionValues(
        run=run,
        engine=describe_engine(run),
        finished_at=run.job.finished_at if run.job else None,
        rule=rule.title if rule else result.get("rule", ""),
        rows=[WordRow(**one) for one in result.get("rows", [])],
        differences=[WordDifference(**one) for one in result.get("differences", [])],
        notes=list(result.get("notes", [])),
        averages=[one for one in numbers if one.is_average],
        numbers=numbers,
    )


def words_key(run: int, data_set: str) -> str:
    """Return the utterances of a recognised data set with their texts and errors, the worst first: JSON."""
    return f"derived/recognition/{run}/{data_set}.json"


def read_utterances(run: EvaluationRun, data_set: str = "") -> list[SpokenRow]:
    """Return the recognised utterances of a data set, or of all, the highest error rate first; one file for each data
    set."""
    rows: list[SpokenRow] = []
    for name in run.parameters.get("data_sets", []):
        key = words_key(run.pk, name)
        if data_set in ("", name) and (stored := read_stored(key)) is not None:
            rows += [SpokenRow(**one) for one in json.loads(stored)]
    return sorted(rows, key=lambda row: (-(row.error_rate or 0.0), row.data_set, row.utterance))


def align_texts(row: SpokenRow, rule: str, *, original: bool = False) -> tuple[AlignedWord, ...]:
    """Reference and hypothesis side by side, in the words that were counted.

    Args:
        rule: name of the text rule of the run (`run.parameters["rule"]`).
        original: of the original recording.

    Raises:
        InputError: there is no such rule any more.
    """
    normalise = find_rule(rule).normalise
    heard = (row.original or "") if original else row.hypothesis
    return align_words(split_words(normalise(row.reference)), split_words(normalise(heard)))
