"""The planner of a study: whether its numbers can be met, how precise results will be, how long it takes, the cost."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from math import isnan
from typing import Any

from listening.design.plan import DesignError
from listening.design.precision import SystemPrecision, plan_precision
from listening.models import Study, Task
from listening.studies import designs
from listening.studies.pools import make_pool
from listening.studies.study_fields import PLAN_SECTIONS, SAVED
from listening.studies.study_forms import StudyForm

SECONDS_TO_RATE, SECONDS_TO_PLACE, SECONDS_TO_WRITE = 4.0, 6.0, 20.0
HEARD_ON_A_BOARD = 3
NOTE = (
    "Half the width of a 95 % interval, where the EER is near {eer} %, with the likeness of one person's ratings "
    "counted in. Two systems that lie closer together cannot be told apart."
)


def planner(study: Study, form: StudyForm) -> dict[str, Any]:
    """What the planner shows: of the form where it was filled in and can be read, else of the study as it is."""
    faults: list[str] = []
    tried = copy(study)
    systems = list(study.systems.select_related("submission__system").order_by("code"))
    submissions = [one.submission for one in systems]
    data_sets = list(study.data_sets.all())
    if form.is_bound:
        form.is_valid()
        given = form.cleaned_data
        faults = _faults(form)
        for name in SAVED:
            if name in given and name not in form.errors:
                setattr(tried, name, given[name])
        submissions = list(given.get("systems", submissions))
        data_sets = list(given.get("data_sets", data_sets))
    problems = faults or designs.plan_problems(tried, systems=submissions, data_sets=data_sets)
    pool = make_pool(data_sets, {str(one.pk): one for one in submissions})
    page: dict[str, Any] = {"plan_problems": problems}
    try:
        return page | _effort(tried, [str(one.system) for one in submissions], pool.mean_s)
    except DesignError as error:  # no system, or hardly a rating
        return page | {"plan_problems": problems or error.problems}


def _faults(form: StudyForm) -> list[str]:
    """What is wrong with the fields that a plan is made of."""
    names = set().union(*(part.names for part in form.sections if part.name in PLAN_SECTIONS))
    return [
        f"{form.fields[name].label}: {sentence}"
        for name, sentences in form.errors.items()
        if name in names
        for sentence in sentences
    ]


def _effort(tried: Study, systems: list[str], mean_s: float) -> dict[str, Any]:
    """Minutes, hours and cost; and for ratings how precise each system's results will be."""
    beside = tried.practice_trials + tried.gold_trials + tried.bridge_trials
    plan = plan_precision(
        evaluators=tried.evaluators,
        trials=tried.trials_per_evaluator,
        originals=min(tried.originals_per_evaluator, tried.trials_per_evaluator),
        systems=systems,
        tasks=tried.tasks,
        scale_points=tried.scale_points,
        seconds_per_trial=seconds_of_trial(tried, mean_s),
        other_trials=beside if tried.form == Study.Form.RATING else 0,
        pay_per_hour=float(tried.pay_per_hour),
    )
    notes = [f"A trial counts as {seconds_of_trial(tried, mean_s):.0f} s: its recordings of {mean_s:.1f} s on average."]
    if plan.rows:
        notes.insert(0, NOTE.format(eer=round(100 * plan.expected_eer)))
    return {
        "stats": [
            {"label": "One evaluator", "value": f"{plan.minutes:.0f}", "unit": "min"},
            {"label": "All together", "value": f"{plan.hours:.1f}", "unit": "h"},
            {"label": "Pay", "value": f"{plan.cost:,.0f}", "unit": tried.currency},
        ],
        "tasks": [task for task in tried.tasks if plan.rows],
        "precision": [_precision_row(name, plan.rows) for name in systems] if plan.rows else [],
        "notes": notes,
    }


def seconds_of_trial(study: Study, mean_s: float) -> float:
    """About how long a trial takes: every sample as often as it has to be heard, and some seconds for each answer."""
    if study.form == Study.Form.LINKABILITY:
        return study.board_samples * (HEARD_ON_A_BOARD * mean_s + SECONDS_TO_PLACE)
    if study.form == Study.Form.TRANSCRIPTION:
        return 2 * mean_s + SECONDS_TO_WRITE
    samples = 1 + (Task.VERIFIABILITY in study.tasks) + (Task.INTELLIGIBILITY in study.tasks and len(study.tasks) > 1)
    return samples * mean_s + len(study.tasks) * SECONDS_TO_RATE


def _precision_row(name: str, rows: Iterable[SystemPrecision]) -> dict[str, Any]:
    of_system = {row.task: row for row in rows if row.system == name}
    any_row = next(iter(of_system.values()))
    return {
        "name": name,
        "ratings": any_row.ratings,
        "eer": [(task, _points(row.eer_half_width)) for task, row in of_system.items()],
        "mean": f"± {any_row.raw_mean_half_width:.2f}",
        "normalised": f"± {any_row.mean_half_width:.3f}",
    }


def _points(share: float) -> str:
    """A half-width in percentage points; a dash where there is nothing to compare with."""
    return "–" if isnan(share) else f"± {100 * share:.1f}"
