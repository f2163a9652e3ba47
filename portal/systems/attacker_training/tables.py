"""The tables of trained attackers: trainings of a system, the report of one, and its seeds.

Errors are shown in per cent, as mean and deviation over the seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.urls import reverse

from common.tables import Cell, Column, Table, number_columns, plain_table
from common.wording import counted
from evaluation.app.attacker_training.selectors import TrainingReport
from evaluation.app.attacks.stored_attackers import list_seeds, speech_of_training
from evaluation.app.models import EvaluationRun
from evaluation.attackers.training.recipe import VARIANTS
from evaluation.attackers.training.report import Spread
from portal.core.labels import MISSING, decimals
from portal.systems.selectors import View

PERCENT_DIGITS = 1


def percent(share: float | None) -> str:
    """Return a share in per cent, without the sign."""
    return decimals(None if share is None else 100 * share, PERCENT_DIGITS)


def spread_text(found: Spread | None) -> str:
    """Such as ``7.5 ± 0.9``, per cent; without a deviation where there is one seed."""
    if found is None:
        return MISSING
    mean = percent(found.mean)
    return mean if found.deviation is None else f"{mean} ± {percent(found.deviation)}"


def trainings_table(view: View, runs: Iterable[EvaluationRun], reports: Mapping[int, TrainingReport]) -> Table:
    columns = [Column("training", "Training"), Column("variant", "Target classifier")]
    columns += [*number_columns("Seeds", "VER_S", "VER_T", "Fresh probe"), Column("state", "State")]
    return plain_table(
        "Trainings on this system",
        columns,
        (_training(view, run, reports[run.pk]) for run in runs),
        caption="Mean ± standard deviation of a sample over the seeds that have ended, per cent of held-out segments.",
        styles="strip",
    )


def _training(view: View, run: EvaluationRun, report: TrainingReport) -> list[Cell | str]:
    address = reverse("systems:training", args=[view.system.name, run.pk]) + view.context["version_query"]
    state = run.job.state if run.job else ""
    errors = (report.spread(name) for name in ("source_error", "target_error", "target_probe"))
    return [
        Cell(f"Training {run.pk}", link=address, aside=f"{run.recipe}, {speech_of_training(run.parameters)} speech"),
        VARIANTS[run.parameters["variant"]].title,
        f"{len(report.seeds)} of {len(list_seeds(run))}",
        *map(spread_text, errors),
        Cell(state, badge=state),
    ]


def report_table(run: EvaluationRun, report: TrainingReport, cells: Sequence[tuple[str, str, str]]) -> Table | None:
    """Return the report of a training beside what a guess would reach; None before a seed has ended.

    Args:
        cells: each column's heading, mean and deviation, and what a guess would reach.
    """
    first = report.first
    if first is None or not cells:
        return None
    n = len(report.seeds)
    over = f" ± standard deviation of a sample over {n} seeds" if n > 1 else " of one seed, so without a deviation"
    people = counted(first.sources, "speaker") + (f" and {counted(first.targets, 'target')}" if first.targets else "")
    heads, means, guesses = zip(*cells, strict=True)
    title = VARIANTS[run.parameters["variant"]].title
    return plain_table(
        "Report of this training",
        [Column("evaluation", "Evaluation"), *number_columns(*heads)],
        [[Cell(title[:1].upper() + title[1:], aside=run.recipe), *means], ["A guess", *guesses]],
        caption=f"Mean{over}, per cent, on {first.held_out:,} held-out segments of {people}.",
        styles="strip",
    )


def seeds_table(report: TrainingReport) -> Table | None:
    """Return the numbers of each seed; None where there is one at most, which the report tells already."""
    if len(report.seeds) < 2:
        return None
    names = ("source_error", "target_error", "target_probe", "target_probe_other_sources")
    return plain_table(
        "Each seed",
        [Column("seed", "Seed"), *number_columns("VER_S", "VER_T", "Fresh probe", "Probe on other speakers")],
        ([str(one.seed), *(percent(getattr(one, name)) for name in names)] for one in report.seeds),
        caption="Each seed, per cent.",
        styles="strip",
    )
