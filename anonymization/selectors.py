"""The only door to runs of anonymisers for pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404

from anonymization.methods.contract import Anonymizer, OptionValue
from anonymization.methods.errors import MethodError
from anonymization.methods.registry import get_method
from anonymization.models import AnonymizationRun
from portal.submissions.models import Submission


@dataclass(frozen=True)
class Setting:
    """An option of a run: its value, what it is for, and whether it is the usual one."""

    name: str
    value: str
    meaning: str
    is_usual: bool

    @property
    def label(self) -> str:
        return label_of(self.name)


def label_of(name: str) -> str:
    """An option or a choice as a label: ``keep_digital_silence`` reads ``Keep digital silence``."""
    words = name.replace("_", " ").replace("-", " ")
    return words[:1].upper() + words[1:]


def method_of(run: AnonymizationRun) -> Anonymizer | None:
    """The method of a run; None where this portal has it no more."""
    try:
        return get_method(run.method)
    except MethodError:
        return None


def run_for(submission: Submission, data_set: str) -> AnonymizationRun:
    """The run that made a data set of a submission, or "not found"."""
    runs = submission.anonymization_runs.select_related("data_set__corpus", "job", "target_set")
    run = runs.filter(data_set__name=data_set).first()
    if run is None:
        raise Http404
    run.submission = submission
    return run


def runs_of(submission: Submission) -> list[AnonymizationRun]:
    """All runs of a submission without what is long of them, in the order in which they were started."""
    runs = submission.anonymization_runs.select_related("data_set").defer(
        "voices", "report", "targets", "target_recordings"
    )
    return list(runs.order_by("pk"))


def settings_of(run: AnonymizationRun) -> list[Setting]:
    """The options of a run; those of before options were kept are none."""
    method = method_of(run)
    known = {option.name: option for option in method.options} if method else {}
    return [
        Setting(
            name=name,
            value=value_text(value, known[name].unit if name in known else ""),
            meaning=known[name].meaning if name in known else "",
            is_usual=name in known and known[name].default == value,
        )
        for name, value in run.options.items()
    ]


def value_text(value: OptionValue, unit: str = "") -> str:
    """The value of an option in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}".strip()


def findings_of(run: AnonymizationRun) -> list[dict[str, Any]]:
    """What the checks found in the files of a run and in its voices, as problems are stored."""
    problems: list[dict[str, Any]] = run.report.get("problems", [])
    of_voices: list[dict[str, Any]] = run.report.get("voices", {}).get("problems", [])
    return [*problems, *of_voices]
