"""What the page of a system in an edition shows: its numbers, conditions and figures; claims and speech for its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from evaluation import selectors
from evaluation.figures.det import size_of
from evaluation.figures.style import ImageFormat, Size
from evaluation.formats.claims import AttackModel
from evaluation.metrics.catalogue import find_metric
from evaluation.models import ScoreSet
from evaluation.objective.values import ObjectiveValues
from evaluation.objective_figures import curves_by_set, det_key, estimator_of
from evaluation.selectors_objective import objective_values, pitch_minimum, score_sets_of, track_of
from portal.challenges.models import Edition
from portal.core.media import signed_address
from portal.core.panels import panels_of
from portal.core.wording import decimals
from portal.results.board import policy_by
from portal.results.disagreements import disagreements_of
from portal.results.objective_tables import TableMaker, standing_of
from portal.results.pages import progress_of, provenance_of, set_figure
from portal.results.shown import SystemNumbers, View, edition_of

SHOWN_DISAGREEMENTS = 20
KINDS: tuple[ImageFormat, ...] = ("svg", "png", "pdf")


@dataclass(frozen=True)
class DetFigure:
    """The DET curves of a data set for light and dark pages, with their size, words and files."""

    data_set: str
    size: Size
    image: str
    dark: str
    alt: str
    downloads: list[dict[str, str]]


def edition_system_page(request: HttpRequest, view: View) -> dict[str, Any]:
    """The page of a system in an edition, in a fixed number of queries."""
    system, submission = view.system, view.submission
    edition = edition_of(system)
    values = numbers_of(view)
    runs = selectors.finished_runs(submission) if system.corpus else []
    judged = selectors.trial_runs(runs) or runs
    audio = selectors.values_of(judged)
    worst, best = selectors.extremes(judged) if judged and view.is_own else ([], [])
    minimum = pitch_minimum(edition)
    score_sets = score_sets_of(values)
    targets = {(one.data_set, one.attack_model): one.target_count for one in score_sets}
    maker = TableMaker(values, edition.recipe, track_of(edition), with_claims=view.is_own, targets=targets)
    disagreements = disagreements_of(values) if view.is_own else []
    return {
        "system": system,
        "edition": edition,
        "corpus": system.corpus,
        "submission": submission,
        "versions": view.versions,
        "is_own": view.is_own,
        "version_query": view.query,
        "progress": progress_of(system) if view.is_own else None,
        "provenance": provenance_of(submission) if view.is_own and system.is_baseline else None,
        "runs": runs,
        "values": values,
        "averages": maker.averages(),
        "tables": maker.tables(),
        "standing": standing_of(values, policy_by(edition, edition.board_policy)),
        "missing": values.missing if view.is_own and values.run else (),
        "disagreements": disagreements[:SHOWN_DISAGREEMENTS],
        "more_disagreements": max(0, len(disagreements) - SHOWN_DISAGREEMENTS),
        "det_figures": det_figures(request, values, edition, score_sets),
        "panels": panels_of("system", request, SystemNumbers(view, values)),
        "figures": [figure for run in judged if (figure := set_figure(request, run, audio, minimum))],
        "minimum": minimum,
        "worst": worst,
        "best": best,
    }


def numbers_of(view: View) -> ObjectiveValues:
    """All objective numbers of the submission shown; a public page of a frozen board shows those of its time."""
    edition = view.system.edition
    as_of = edition.frozen_at if edition and not view.is_own else None
    return objective_values([view.submission], as_of=as_of)[view.submission.pk]


def det_figures(
    request: HttpRequest, values: ObjectiveValues, edition: Edition, score_sets: list[ScoreSet]
) -> list[DetFigure]:  # fmt: skip
    """A figure for each data set whose scores were measured."""
    estimator = estimator_of(edition.recipe)
    metric = find_metric("eer", estimator)
    figures = []
    for data_set, tests in curves_by_set(score_sets).items():
        said = []
        for attack in tests:
            number = values.number("eer", estimator, data_set=data_set, attack_model=AttackModel(attack))
            if number is not None:
                said.append(f"{attack} {decimals(number.value, metric.decimals)} %")
        run = values.run or 0
        svg, png, pdf = (signed_address(request, det_key(run, data_set, "light", kind)) for kind in KINDS)
        figures.append(
            DetFigure(
                data_set=data_set,
                size=size_of(len(tests)),
                image=svg,
                dark=signed_address(request, det_key(run, data_set, "dark")),
                alt=f"DET curves of {data_set}. {metric.label}: {', '.join(said)}.",
                downloads=[{"label": label, "url": url} for label, url in (("SVG", svg), ("PDF", pdf), ("PNG", png))],
            )
        )
    return figures
