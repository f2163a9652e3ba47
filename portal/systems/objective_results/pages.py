"""What the page of a system in an edition shows: its numbers, conditions and figures; what is its own only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from django.core.files.storage import default_storage
from django.http import HttpRequest

from evaluation.app.audio_measures import selectors
from evaluation.app.models import ScoreSet
from evaluation.app.objective_results.selectors import (
    ReadExtent,
    det_key,
    exposure_key,
    find_known,
    group_curves,
    read_objective_values,
)
from evaluation.app.runs.context import pitch_minimum
from evaluation.app.runs.kinds import explain_unlike_papers
from evaluation.figures import exposure
from evaluation.figures.det import size_of
from evaluation.metrics.catalogue import find_metric
from evaluation.objective_results.leaderboard_entries import make_entry
from evaluation.objective_results.track_averages import estimator_of
from evaluation.objective_results.values import ObjectiveValues
from evaluation.protocols.ranking.ranking import list_exclusion_reasons
from listening.app.results.pages import chosen_scores
from portal.leaderboard.listeners import system_listeners
from portal.leaderboard.selectors import columns_of, describe_system, rank_leaderboard
from portal.submissions.selectors import explain_hold
from portal.systems.objective_results.answer import answer
from portal.systems.objective_results.tables import (
    Standing,
    TableMaker,
    find_standing,
    list_mismatches,
)
from portal.systems.pages import (
    Figure,
    contours_figure,
    describe_progress,
    describe_provenance,
    drawn_in_page,
    set_figure,
    sign_figure,
)
from portal.systems.selectors import View, edition_of
from portal.systems.tables import extremes_tables

SHOWN_MISMATCHES = 20


def edition_system_page(request: HttpRequest, view: View) -> dict[str, Any]:
    """Return the page of a system in an edition, in a fixed number of queries."""
    system, submission = view.system, view.submission
    edition = edition_of(system)
    values = load_numbers(view)
    runs = selectors.select_finished_runs(view.evaluation_runs) if system.corpus else []
    judged = selectors.select_trial_runs(runs) or runs
    audio = selectors.read_values(judged)
    worst, best = selectors.find_extremes(judged) if judged and view.is_own else ([], [])
    minimum = pitch_minimum(edition)
    maker = TableMaker(values, edition.recipe, edition.ranked_track, with_reported=view.is_own)
    privacy, utility, tables = maker.averages(of_privacy=True), maker.averages(of_privacy=False), maker.tables()
    listeners = listeners_of(request, view, values)
    joint = listeners.get("figure")
    mismatches = list_mismatches(values) if view.is_own else []
    standing = read_standing(view, values)
    policy = standing.policy
    figures = det_figures(request, values, estimator_of(edition.recipe), values.score_sets)
    first = shown = next((one for one in figures if policy.split in one.title), figures[0] if figures else None)
    if joint is not None:
        first = shown = None
    elif first is not None:
        key = det_key(values.run or 0, first.stored_as, "light", "svg")
        shown = replace(first, drawn=drawn_in_page(key, "det", first.alt))
    return view.context | {
        "answer": summarize(view, values, standing),
        "unlike_papers": explain_unlike_papers(edition.recipe, edition.corpus) if view.system.is_baseline else "",
        "first_figure": shown,
        "versions": view.versions,
        "progress": describe_progress(submission) if view.is_own else None,
        "provenance": describe_provenance(submission, request.user) if view.is_own and system.is_baseline else None,
        "runs": runs,
        "values": values,
        "hold": explain_hold(submission) if view.is_own else "",
        "privacy": privacy,
        "utility": utility,
        "tables": tables,
        "joint_figure": joint,
        "notes": {
            note
            for table in (privacy, utility, *tables)
            for row in table.rows
            for cell in row.cells
            for note in cell.note.split("; ")
        },
        "beyond": maker.beyond(),
        "beyond_figures": beyond_figures(request, values, estimator_of(edition.recipe), values.score_sets),
        "standing": standing,
        "missing": values.missing if view.is_own and values.run else (),
        "mismatches": mismatches[:SHOWN_MISMATCHES],
        "more_mismatches": max(0, len(mismatches) - SHOWN_MISMATCHES),
        "det_figures": [one for one in figures if one is not first],
        "listeners": listeners,
        "figures": [figure for run in judged if (figure := set_figure(request, run, audio, minimum))],
        "contours": contours_figure(request, judged),
        "minimum": minimum,
        "extremes": extremes_tables(view.system, worst, best),
    }


def listeners_of(request: HttpRequest, view: View, values: ObjectiveValues) -> dict[str, Any]:
    """Return what listeners said of the submission shown."""
    scores = chosen_scores(request.GET)
    return system_listeners(request.user, edition_of(view.system), view.submission, values, scores, view.query)


def load_numbers(view: View) -> ObjectiveValues:
    """Return all objective numbers of the submission shown; a public page of a frozen leaderboard shows those of its
    time."""
    found = read_objective_values([view.submission], as_of=view.as_of, runs_at_hand=view.evaluation_runs)
    return found[view.submission.pk]


def read_standing(view: View, values: ObjectiveValues) -> Standing:
    """Return how the submission shown stands to the conditions of its edition."""
    edition = edition_of(view.system)
    return find_standing(values, edition.policy, list_reasons(view, values))


def summarize(view: View, values: ObjectiveValues, standing: Standing) -> list[str]:
    """Return privacy, utility and rank in sentences; none of what was not evaluated."""
    if not values.run:
        return []
    edition = edition_of(view.system)
    is_on_leaderboard = edition.published_at is not None and not edition.published_recipe and not view.query
    ranked = rank_leaderboard(edition, ReadExtent.RANKED) if is_on_leaderboard else None
    return answer(values, standing, edition.ranked_track, ranked, view.system.name)


def list_reasons(view: View, values: ObjectiveValues) -> list[str]:
    """Return why the submission shown can be ranked in no condition, as the leaderboard says it."""
    edition = edition_of(view.system)
    policy = edition.policy
    of_system = describe_system(view.submission)
    entry = make_entry(values, columns_of(edition), policy, edition.ranked_track, **of_system)
    return [one.text for one in list_exclusion_reasons(entry, policy)] if policy.minimum_eers else []


def beyond_figures(
    request: HttpRequest, values: ObjectiveValues, estimator: str, score_sets: Iterable[ScoreSet], engine: str = ""
) -> list[Figure]:
    """Return what the EER hides, a figure for each data set on the whole set; none of runs that did not measure it.

    Args:
        engine: what attacked, where the portal did.
    """
    measured = {one.data_set for one in values.numbers if one.metric == "better_sign_eer"}
    figures = []
    for data_set, tests in group_curves(score_sets).items():
        _, name = find_known(values, estimator, data_set, tests)
        if data_set in measured and name == data_set:
            of = f"{data_set} by {engine}" if engine else data_set
            alt = f"Targets found, ranks and speakers of {of}; the numbers are in the table."
            key = partial(exposure_key, values.run or 0, data_set)
            figures.append(sign_figure(request, key, title=data_set, alt=alt, size=exposure.SIZE, engine=engine))
    return figures


def det_figures(
    request: HttpRequest, values: ObjectiveValues, estimator: str, score_sets: Iterable[ScoreSet], engine: str = ""
) -> list[Figure]:
    """Return a figure for each data set whose scores were measured, all of them on the whole set.

    Args:
        engine: what attacked, where the portal did.
    """
    metric = find_metric("eer", estimator)
    figures = []
    for data_set, tests in group_curves(score_sets).items():
        numbers, name = find_known(values, estimator, data_set, tests)
        if not numbers:
            continue
        if name != data_set and not default_storage.exists(det_key(values.run or 0, name)):
            continue  # drawn by an earlier version, with the curve of what rests on a part of its set
        said = (f"{attack} {one.rounded()[0]} %" for attack, one in numbers.items())
        of = f"{data_set} by {engine}" if engine else data_set
        alt = f"DET curves of {of}. {metric.label}: {', '.join(said)}."
        key = partial(det_key, values.run or 0, name)
        size = size_of(len(numbers))
        figures.append(sign_figure(request, key, title=data_set, alt=alt, size=size, engine=engine, stored_as=name))
    return figures
