"""What the page of a leaderboard shows: its one table as asked for, its figures, its method in words."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from django.db.models import Max
from django.urls import reverse

from common.rounding import few_digits
from common.tables import Cell, number_table
from evaluation.app.runs.kinds import describe_evaluators, explain_unlike_papers
from evaluation.figures.tradeoff import SystemPoint
from evaluation.metrics.catalogue import Direction
from evaluation.objective_results.leaderboard_entries import ShownAverage
from evaluation.objective_results.values import SATURATED, is_saturated
from evaluation.protocols.published import is_as_shipped
from evaluation.protocols.published_view import list_tasks
from evaluation.protocols.ranking.entries import MeasuredValue, RankingTable
from evaluation.protocols.ranking.policy import condition_in_words, policy_in_words
from evaluation.protocols.ranking.ranking import is_above_chance
from portal.challenges.models import Edition
from portal.core.labels import decimals
from portal.leaderboard.changes import list_published_changes
from portal.leaderboard.figures import Drawing, describe_figure, figure_key, list_drawings
from portal.leaderboard.selectors import (
    Leaderboard,
    build_leaderboard,
    find_released,
)
from portal.leaderboard.tables import (
    DIGITS,
    LISTENERS,
    leaderboard_table,
    list_lines,
    read_choice,
    round_average,
    summarize_ranking,
    switches,
)


def leaderboard_page(
    leaderboard: Leaderboard,
    query: Mapping[str, str] = MappingProxyType({}),
    unlike: Mapping[str, int] = MappingProxyType({}),
    *,
    own_teams: Container[str] = (),
    with_figures: bool = True,
) -> dict[str, Any]:
    """Return everything on the page.

    Args:
        query: of the address, as `read_choice` takes it.
        unlike: for organizers, how many reported numbers of a system differ from the recomputed ones.
        own_teams: those of the reader.
        with_figures: False where they are not shown, so that none is drawn.
    """
    choice = read_choice(leaderboard, query)
    ranking = choice.ranking
    shown = leaderboard.published if choice.shows_published else []
    private = {
        key: (f"{n:,} reported number{' differs' if n == 1 else 's differ'} from ours (seen by organizers only).",)
        for key, n in unlike.items()
    }
    described, heard = find_released(leaderboard)
    lines = list_lines(leaderboard, ranking, private, shown, described, heard, own_teams)
    drawings = list_drawings(leaderboard) if with_figures else {}
    beside = _find_tradeoff(leaderboard, ranking, drawings)
    order = {"sort": choice.sort, "order": choice.order} if choice.sort != "rank" else {}
    tests = [one for one in drawings.values() if one.tests and one.minimum == (ranking.minimum if ranking else None)]
    det = next((one for one in tests if one.data_set == choice.query.get("set")), tests[0] if tests else None)
    figures: dict[str, dict[str, Any]] = {}
    for one in [*filter(None, (beside, det)), *(one for one in drawings.values() if one.bars)]:
        # Where one cannot be drawn just now, nobody waits for the next ones.
        is_drawn = all(figure["drawn"] for figure in figures.values())
        figures[one.slug] = _figure(leaderboard, one, is_drawn=is_drawn)
    return {
        "leaderboard": leaderboard,
        "edition": leaderboard.edition,
        "changes": list_published_changes(leaderboard.edition),
        "title": condition_in_words(ranking.minimum, ranking.upper, leaderboard.policy) if ranking else "Systems",
        "no_condition": _unknown_condition(ranking, query.get("condition", "")),
        "answer": summarize_ranking(leaderboard, ranking),
        "leaders": [row.entry.key for row in ranking.ranked if row.rank == 1] if ranking else [],
        "switches": switches(leaderboard, choice, has_published=bool(leaderboard.published)),
        "table": leaderboard_table(leaderboard, choice, lines),
        "reasons": [line for line in lines if line.reasons],
        "has_groups": any(line.group for line in lines),
        "tradeoff": figures[beside.slug] if beside else None,
        "det": figures[det.slug] if det else None,
        "det_links": [
            {"text": one.data_set, "address": choice.address(set=one.data_set, **order), "is_current": one is det}
            for one in tests
        ],
        "listeners_link": choice.address(set=LISTENERS, **order),
        "asks_listeners": choice.query.get("set") == LISTENERS,
        "bars": [figures[one.slug] for one in drawings.values() if one.bars],
        "published_key": _published_key(leaderboard),
        "rules": policy_in_words(leaderboard.policy),
        "weights": _weights(leaderboard),
        "computed_by": describe_evaluators(leaderboard.edition.recipe),
        "unlike_papers": explain_unlike_papers(leaderboard.edition.recipe, leaderboard.edition.corpus)
        if any(entry.kind == "baseline" for entry in leaderboard.entries)
        else "",
        "has_reported": any(entry.is_reported for entry in leaderboard.entries),
        "n_systems": sum(entry.kind == "system" for entry in leaderboard.entries),
        "n_teams": len({entry.team for entry in leaderboard.entries if entry.kind == "system"}),
    }


def leaderboard_summary(leaderboard: Leaderboard) -> dict[str, Any]:
    """Return what a leaderboard says first: its answer, privacy against utility, and whose samples can be heard."""
    ranking = read_choice(leaderboard, {}).ranking
    tradeoff = _find_tradeoff(leaderboard, ranking, list_drawings(leaderboard))
    _, heard = find_released(leaderboard)
    return {
        "edition": leaderboard.edition,
        "answer": summarize_ranking(leaderboard, ranking),
        "tradeoff": _figure(leaderboard, tradeoff, is_drawn=True) if tradeoff else None,
        "heard": [entry for entry in leaderboard.entries if entry.key in heard],
        "changes": list_published_changes(leaderboard.edition),
    }


def _find_tradeoff(
    leaderboard: Leaderboard, ranking: RankingTable | None, drawings: Mapping[str, Drawing]
) -> Drawing | None:
    """Return the figure of privacy against the utility that ranks."""
    by = ranking.utility.metric if ranking else next((one.key for one in leaderboard.averages if one.is_utility), "")
    return next((one for one in drawings.values() if one.points and one.column.key == by), None)


def _unknown_condition(ranking: RankingTable | None, asked: str) -> str:
    """Say that the condition of an address is not there, such as one of a former recipe."""
    if ranking is None or not asked or asked == f"{ranking.minimum:g}":
        return ""
    return f"There is no condition of {asked[:12]} % on this leaderboard. Shown is the lowest one."


_drawn_marks: dict[int, str] = {}  # by edition, of what its figures were last drawn for


def draw_ahead() -> None:
    """Draw the figures of leaderboards with new numbers, so that nobody who opens one waits for them."""
    newest = Max("systems__submissions__evaluated_at")
    for edition in Edition.objects.filter(archived_at=None).annotate(newest=newest).exclude(newest=None):
        mark = f"{edition.newest} {edition.frozen_at} {edition.published_at} {edition.leaderboard_policy}"
        mark += f" {edition.recipe_number} {edition.recipe_changed_at}"
        if _drawn_marks.get(edition.pk) != mark:
            _drawn_marks[edition.pk] = mark
            leaderboard_page(build_leaderboard(edition))


def _published_key(leaderboard: Leaderboard) -> str:
    """Return the task of this edition among all published results; empty where its recipe has none."""
    if not is_as_shipped(leaderboard.edition.recipe):
        return ""
    edition, track = leaderboard.edition.recipe.edition, leaderboard.edition.ranked_track.name
    return next((one.key for one in list_tasks() if (one.recipe.edition, one.track.name) == (edition, track)), "")


def _weights(leaderboard: Leaderboard) -> list[tuple[ShownAverage, list[tuple[str, str]]]]:
    """Return how much each data set counts in each average; others have the weights of the EER or of the WER."""
    track, privacy, found = leaderboard.edition.ranked_track, leaderboard.policy.privacy, []
    by_name = {(one.metric, one.estimator): one for one in reversed(track.averages)}
    by_metric = {one.metric: one for one in reversed(track.averages)}
    deciding = by_name.get((privacy.metric, privacy.estimator))
    weighed = [(one, by_name.get((one.metric_name, one.estimator))) for one in leaderboard.averages]
    weighed += [(one, deciding) for one in leaderboard.columns if one.switch in ("privacy", "naturalness")]
    weighed += [(one, by_metric.get("wer")) for one in leaderboard.columns if one.switch == "words"]
    for shown, average in weighed:
        weights = average.weights.get(leaderboard.policy.split, {}) if average else {}
        if weights:
            found.append((shown, [(name, f"{weight:g}") for name, weight in weights.items()]))
    return found


def _figure(leaderboard: Leaderboard, drawing: Drawing, *, is_drawn: bool) -> dict[str, Any]:
    """Return a figure as `components/figure.html` takes it. Its address changes with what it shows.

    Args:
        is_drawn: as a part of the page, and not as an image only.
    """
    mark = figure_key(drawing.description(), "svg").rpartition("/")[2][:12]

    def address(extension: str, **form: str) -> str:
        where = reverse("leaderboard:figure", args=[leaderboard.edition.name, drawing.slug, extension])
        return f"{where}?{urlencode({'v': mark} | form)}"

    make = _tradeoff if drawing.points else _det if drawing.tests else _bars
    words = make(leaderboard, drawing)
    return describe_figure(drawing, words, address, is_drawn=is_drawn)


def _tradeoff(leaderboard: Leaderboard, drawing: Drawing) -> dict[str, Any]:
    points, label, unit = drawing.points, drawing.column.metric.label, drawing.column.metric.unit
    own = {entry.label: (entry.privacy, entry.utilities.get(drawing.column.key)) for entry in leaderboard.entries}
    return {
        "title": "Privacy against utility",
        "caption": _tradeoff_caption(leaderboard, drawing),
        "alt": f"EER against {label} of {len(points)} points, one for each system; the numbers follow as a table.",
        "numbers": number_table(
            "Privacy and utility of each system",
            ["System", "EER, %", drawing.column.heading],
            (
                (one.name, _digits_of(one.eer, eer, "%"), _digits_of(one.utility, utility, unit))
                for one in points
                for eer, utility in [own.get(one.name, (None, None))]
            ),
            styles="",
        ),
    }


def _det(leaderboard: Leaderboard, drawing: Drawing) -> dict[str, Any]:
    """Return title, caption and alternative text of the DET curves on a data set."""
    count = sum(not one.is_original for one in drawing.tests)
    systems = f"{count} system{'s' if count > 1 else ''}"
    return {
        "title": f"DET curves of {leaderboard.policy.attack_model} attackers on {drawing.data_set}",
        "caption": "Upper right: more private. Markers: EERs of this set alone; ranks use the average. "
        "Original: unprotected test.",
        "scrolls": True,
        "alt": f"Miss rate against false alarm rate of {systems}; each is named with its equal error rate.",
    }


def _bars(leaderboard: Leaderboard, drawing: Drawing) -> dict[str, Any]:
    key = drawing.column.key
    unit = drawing.column.metric.unit
    measured = {entry.label: entry.averages.get(key) for entry in leaderboard.entries}
    doubted = {name for name, one in measured.items() if one and not one.is_reported and is_saturated(key, one.value)}
    dashed = " Dashed: minimum." if drawing.minimum is not None else ""
    is_gated = any(bar.least is not None for bar in drawing.bars)
    diamond = " Diamond: lowest data set, genders averaged; dashed: its minimum." if is_gated else dashed
    return {
        "title": drawing.column.metric.label,
        "caption": "Baselines are hatched; thin lines are 95 % intervals."
        + diamond
        + (f" {SATURATED}." if doubted else ""),
        "alt": f"A bar for each of {len(drawing.bars)} systems; the numbers follow as a table.",
        "numbers": number_table(
            f"{drawing.column.metric.label} of each system",
            ["System", drawing.column.heading, *["Lowest data set, genders averaged"] * is_gated],
            (
                (
                    bar.name,
                    Cell(
                        _digits_of(bar.value, measured.get(bar.name), unit),
                        value=bar.value,
                        note=SATURATED if bar.name in doubted else "",
                    ),
                    *[_few_decimals(bar.least, unit)] * is_gated,
                )
                for bar in drawing.bars
            ),
            styles="",
        ),
    }


def _few_decimals(value: float | None, unit: str) -> str:
    return decimals(value, DIGITS if value is None else few_digits(value, unit, DIGITS))


def _digits_of(value: float, measured: MeasuredValue | None, unit: str) -> str:
    """Return a number in the digits of its row above."""
    return round_average(measured, unit)[0] if measured else decimals(value, DIGITS)


def _tradeoff_caption(leaderboard: Leaderboard, drawing: Drawing) -> str:
    """In at most 20 words, without those on EERs above 50 %."""
    side = "down" if drawing.column.metric.direction == Direction.LOWER else "up"
    lines = " Dashed: minimum EERs." if leaderboard.policy.minimum_eers else ""
    above = above_chance_note(drawing.points)
    return f"Right: more private; {side}: more useful.{above} Grey: baselines.{lines} Thin lines: intervals."


def above_chance_note(points: Iterable[SystemPoint]) -> str:
    """Return what the caption of a figure of EERs says where one is above 50 %, and not by chance."""
    is_above = any(is_above_chance(one.eer, one.eer_interval) for one in points)
    return " Above 50 %, the attacker is likely at fault." if is_above else ""
