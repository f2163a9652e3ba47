"""Reads what retrained recognisers understood.

Rates are in per cent. A run has three rows for each data set: *ceiling* (trained on and heard originals), *retrained*
(trained on and heard anonymised speech) and *frozen* (trained on originals, heard anonymised speech).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evaluation.app.models import EvaluationRun
from evaluation.app.runs.kinds import PHONES_TEXT, RETRAINED, EngineText
from evaluation.app.runs.selectors import NumbersOfRuns, list_newest_finished, read_numbers
from evaluation.objective_results.track_averages import name_row
from evaluation.objective_results.values import Number
from portal.submissions.models import Submission


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
        """Return those with numbers, in the order in which they were counted, averages last."""
        averages = dict.fromkeys(name for name, _ in self.numbers if name not in self.changes)
        return [*self.changes, *averages]


def list_retrained(submission: Submission, as_of: datetime | None = None) -> list[RetrainedValues]:
    """Return the newest finished run of a submission, if any: two queries."""
    runs = list_newest_finished(RETRAINED, [submission], as_of)
    return read_retrained(runs, read_numbers(runs))


def read_retrained(runs: Iterable[EvaluationRun], numbers: NumbersOfRuns) -> list[RetrainedValues]:
    """Return what these finished runs hold.

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
