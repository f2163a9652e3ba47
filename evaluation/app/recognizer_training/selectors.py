"""Reads what retrained recognisers understood.

Rates are in per cent. A run has three rows for each data set: *ceiling* (trained on and heard originals), *retrained*
(trained on and heard anonymised speech) and *frozen* (trained on originals, heard anonymised speech).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q

from common.errors import InputError
from evaluation.app.models import EvaluationRun
from evaluation.app.runs.kinds import PHONES_TEXT, RETRAINED, EngineText
from evaluation.app.runs.selectors import NumbersOfRuns, list_newest_finished, read_numbers
from evaluation.formats.results import Speech
from evaluation.metrics.averages import weighted_average
from evaluation.objective_results.values import AVERAGE, Number
from portal.challenges.models import Edition
from portal.submissions.models import Submission

METRIC = "per"
# What a number is called, by the speech that the recogniser was trained on and the speech that it heard.
ROW_OF = {
    (Speech.ORIGINAL, Speech.ORIGINAL): "ceiling",
    (Speech.ANONYMISED, Speech.ANONYMISED): "retrained",
    (Speech.ORIGINAL, Speech.ANONYMISED): "frozen",
}


@dataclass(frozen=True)
class PhoneTraining:
    """How one of the two recognisers was trained. error_rate: of utterances held out, in per cent."""

    speech: str
    utterances: int
    seconds: float
    epochs: int
    error_rate: float | None


@dataclass(frozen=True)
class RetrainedValues:
    """What the recognisers of a run understood.

    Attributes:
        numbers: of all data sets and averages, by data set and row.
        changes: by data set: frozen less ceiling (``damage``) and retrained less frozen (``retraining``), in points,
            each with its limits.
        regained: by data set the share of the damage that training again takes back, in per cent.
    """

    run: EvaluationRun
    engine: EngineText
    finished_at: datetime | None
    trainings: list[PhoneTraining]
    numbers: dict[tuple[str, str], Number]
    changes: dict[str, dict[str, list[float] | None]]
    regained: dict[str, float | None]

    @property
    def data_sets(self) -> list[str]:
        """Those with numbers, in the order in which they were counted, averages last."""
        averages = dict.fromkeys(name for name, _ in self.numbers if name not in self.changes)
        return [*self.changes, *averages]


def list_retrained(submission: Submission, as_of: datetime | None = None) -> list[RetrainedValues]:
    """The newest finished run of a submission, if any: two queries."""
    runs = list_newest_finished(RETRAINED, [submission], as_of)
    return read_retrained(runs, read_numbers(runs))


def read_retrained(runs: Iterable[EvaluationRun], numbers: NumbersOfRuns) -> list[RetrainedValues]:
    """What these finished runs hold.

    Args:
        numbers: of these runs at least.
    """
    return [_read(run, numbers.get(run.pk, {}).values()) for run in runs]


def _read(run: EvaluationRun, numbers: Iterable[Number]) -> RetrainedValues:
    result: dict[str, Any] = run.job.result if run.job else {}
    return RetrainedValues(
        run=run,
        engine=PHONES_TEXT,
        finished_at=run.job.finished_at if run.job else None,
        trainings=[PhoneTraining(**one) for one in result.get("trainings", [])],
        numbers={(one.identity.data_set, row): one for one in numbers if (row := name_row(one))},
        changes=result.get("changes", {}),
        regained=result.get("regained", {}),
    )


def read_phone_averages(
    submissions: Iterable[Submission], split: str, as_of: datetime | None = None
) -> dict[int, dict[str, Number]]:
    """The average of a split of each of the three rows, by submission: two queries whatever their number.

    By the weights of the recipe at hand; an average that was stored by other weights has no interval.
    """
    runs = list_newest_finished(RETRAINED, submissions, as_of)
    numbers = read_numbers(runs, Q(metric=METRIC))
    return {run.submission_id: dict(_list_averages(run, numbers.get(run.pk, {}).values(), split)) for run in runs}


def _list_averages(run: EvaluationRun, numbers: Iterable[Number], split: str) -> Iterator[tuple[str, Number]]:
    rows: dict[str, dict[str, Number]] = {}
    for one in numbers:
        if row := name_row(one):
            rows.setdefault(row, {})[one.identity.data_set] = one
    edition, name = run.submission.system.edition, f"{AVERAGE}{split}"
    weights = _find_weights(edition, split) if edition is not None else {}
    for row, by_set in rows.items():
        stored = by_set.get(name)
        if stored is not None and weights:
            stored = _weigh_again(stored, by_set, weights)
        if stored is not None:
            yield row, stored


def _find_weights(edition: Edition, split: str) -> Mapping[str, float]:
    averages = (one for one in edition.ranked_track.averages if one.metric == "wer" and split in one.weights)
    return next((one.weights[split] for one in averages), {})


def _weigh_again(stored: Number, by_set: Mapping[str, Number], weights: Mapping[str, float]) -> Number | None:
    """An average by these weights: the stored one where it is by them, too; None where a data set was not heard."""
    present = [(name, by_set[name].value) for name in weights if name in by_set]
    try:
        value = weighted_average(present, dict(weights)).value
    except InputError:
        return None
    return stored if math.isclose(value, stored.value) else replace(stored, value=value, low=None, high=None)


def name_row(number: Number) -> str:
    """Which of the three rows a number belongs to; empty for others."""
    identity = number.identity
    if identity.metric != METRIC or identity.training is None:
        return ""
    return ROW_OF.get((identity.training, identity.speech), "")
