"""How systems were rated, as figures: distributions, and which systems differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from evaluation.figures.histogram import Bin, HistogramPanel, HistogramPlot
from evaluation.figures.row_plots import Rows, Violin, ViolinPlot
from listening.analysis.figures.labels import count, interval, listed, number, percent, sentence, short_group
from listening.analysis.figures.view import (
    Record,
    ResultsView,
    StudyFigure,
    group_rows,
    has_interval,
    ordered,
    plot_matrix,
    weigh_pairs,
)
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import Scores, choice_in_words

_BOX = ("low_whisker", "q1", "median", "q3", "high_whisker")
_SPLIT_WORDS = "Pairs of the same speaker above each line, of different speakers below; sorted by the mean of the same."
_TOPS_PERCENT = (10, 20, 30, 40, 60, 80, 100)
_MANY_PANELS = 16
_LITTLE_HIGHER = 2.0
_LEVELS = (0.05, 0.01, 0.001)


def violin_figures(view: ResultsView, scores: Scores, task: str) -> Iterator[StudyFigure]:
    """Yield how the scores of each system are distributed: violin, box, median, and mean with its interval.

    For verifiability violins are split: pairs of one speaker above the line, of two speakers below it. As figure 6 of
    the results of VoicePrivacy 2022, boxes with median and mean, turned so that names stay readable. A line through all
    is the mean of the originals.
    """
    found = (row for row in view.rows(scores, "summary", task) if row["mean"] is not None)
    summaries = {(str(row["system"]), str(row["kind"])): row for row in found}
    if not summaries:
        return
    is_split = any(kind == "target" for _, kind in summaries)
    kinds = (("target", -1), ("nontarget", 1)) if is_split else (("all", 0),)
    leaders = {system: row for (system, kind), row in summaries.items() if kind == kinds[0][0]}
    systems = ordered(leaders, "mean", highest_first=not is_split)
    leading = [leaders[system] for system in systems]
    has_groups = any(row["group"] for row in summaries.values())

    def tell(system: str) -> str:
        row = leaders[system]
        text = f"{view.labels[system]} mean {number(row['mean'])}{interval(row, 'mean', number)}"
        if is_split and (other := summaries.get((system, "nontarget"))):
            return f"{text} for the same speaker, {number(other['mean'])} for different ones"
        return f"{text}, median {number(row['median'])}"

    columns = [("mean", [number(row["mean"]) for row in leading])]
    if is_split:
        others = [summaries.get((system, "nontarget"), {}).get("mean") for system in systems]
        columns = [("same", columns[0][1]), ("diff.", [number(mean) for mean in others])]
    elif has_groups:
        columns.append(("group", [short_group(row["group"]) for row in leading]))
    bins = group_rows(view.rows(scores, "histogram", task), "system", "kind")
    violins = [
        _make_violin(place, summaries[system, kind], bins.get((system, kind), []), side)
        for place, system in enumerate(systems)
        for kind, side in kinds
        if (system, kind) in summaries
    ]
    low, high = view.scale(scores, task)
    edges = [end for one in bins.values() for row in one for end in (float(row["lower"]), float(row["upper"]))]
    beyond = max(low - min(edges, default=low), max(edges, default=high) - high)
    is_first = ORIGINAL in systems
    compared = None if is_split else summaries.get((ORIGINAL, "all"))
    yield view.figure(
        scores,
        f"violin-{task}",
        f"{sentence(task)} of each system",
        "Outline: share of ratings, equally wide for all.",
        "" if is_split else "Box: quartiles and median; whiskers: within 1.5 interquartile ranges.",
        _SPLIT_WORDS if is_split else "Sorted by mean.",
        "Dashed line: mean of the originals." if compared else "",
        "Systems that share a letter do not differ significantly." if has_groups and not is_split else "",
        view.size_words([row for row in view.rows(scores, "summary", task) if row["kind"] == "all"], "n"),
        intervals=has_interval(summaries.values(), "mean"),
        alt=f"{sentence(task)}, {view.level_words} intervals in brackets: {listed([*map(tell, systems)])}.",
        plot=ViolinPlot(
            Rows(
                [view.short[system] for system in systems],
                columns,
                bold=[0] if is_first else [],
                breaks=[1] if is_first and len(systems) > 1 else [],
                roomy=0.4,
                told=[view.told(system) for system in systems],
            ),
            violins,
            (low, high),
            view.score_words(scores, task),
            ("same speaker", "different speakers") if is_split else None,
            (float(compared["mean"]), "originals") if compared else None,
            max(0.02 * (high - low), beyond),
        ),
        task=task,
    )


def _make_violin(place: int, row: Record, bins: Sequence[Record], side: int) -> Violin:
    box = [row[name] for name in _BOX]
    return Violin(
        place,
        [(low, high, share / 100) for low, high, share in _list_bins(bins)],
        float(row["mean"]),
        None if row["mean_low"] is None or row["mean_high"] is None else (row["mean_low"], row["mean_high"]),
        None if side or None in box else (box[0], box[1], box[2], box[3], box[4]),
        side,
        row["system"] == ORIGINAL,
    )


def _list_bins(rows: Sequence[Record]) -> list[Bin]:
    """List lower and upper edges with shares in per cent, ascending."""
    return sorted((float(row["lower"]), float(row["upper"]), 100 * float(row["share"] or 0)) for row in rows)


def histogram_figures(view: ResultsView, scores: Scores, task: str) -> Iterator[StudyFigure]:
    """Yield scores as small multiples: same and different speakers of each system, or the originals beside each.

    As figures 7 and 8 of the results of VoicePrivacy 2022.
    """
    bins = group_rows(view.rows(scores, "histogram", task), "system", "kind")
    if not bins:
        return
    rates = view.by_system(scores, "detection", task)
    is_split = any(kind == "target" for _, kind in bins)
    systems = {system for system, _ in bins}
    if is_split:  # as in the figure of equal error rates
        order = ordered({name: rates.get(name, {"eer": None}) for name in systems}, "eer")
    else:
        means = view.by_system(scores, "summary", task, kind="all")
        order = ordered({name: means.get(name, {"mean": None}) for name in systems}, "mean")
    if not is_split and len(order) > 1 and ORIGINAL in order:
        order.remove(ORIGINAL)  # it stands in every panel
    filled = {system: bins.get((system, "target" if is_split else "all"), []) for system in order}
    line = {system: bins.get((system, "nontarget") if is_split else (ORIGINAL, "all"), []) for system in order}
    eers = {system: rates.get(system, {}).get("eer") for system in order}
    words = ("same speaker", "different speakers") if is_split else ("system", "originals")

    def tell(system: str) -> str:
        text = f"{view.labels[system]}: most often {_find_mode(filled[system])} for {words[0]}"
        if line[system]:
            text += f", {_find_mode(line[system])} for {words[1]}"
        return text if eers[system] is None else f"{text}, EER {percent(eers[system])} %"

    panels = [
        HistogramPanel(
            view.short[system],
            "" if eers[system] is None else f"EER {percent(eers[system])} %",
            _list_bins(filled[system]),
            _list_bins(line[system]),
            is_bold=system == ORIGINAL,
        )
        for system in order
    ]
    columns = 1 if len(panels) == 1 else 2 if len(panels) <= _MANY_PANELS else 3
    summary = [row for row in view.rows(scores, "summary", task) if row["kind"] == "all"]
    beside = (
        "scores of same speaker and different speakers" if is_split else "scores of each system beside the originals"
    )
    yield view.figure(
        scores,
        f"histogram-{task}",
        f"{sentence(task)}: {beside}",
        f"Filled: {words[0]}; line: {words[1]}; shares of the ratings of each kind.",
        "Sorted by equal error rate, the originals first." if is_split else "Sorted by mean.",
        "Beside each name its EER." if any(eer is not None for eer in eers.values()) else "",
        f"▲: higher than its panel. {view.size_words(summary, 'n')}",
        alt=f"{sentence(task)}. {listed([*map(tell, order)])}.",
        plot=HistogramPlot(
            panels,
            view.scale(scores, task),
            _choose_top([panel for panel in panels if not panel.is_bold] or panels, panels, is_split=is_split),
            view.score_words(scores, task),
            filled_words=words[0],
            line_words=words[1],
            columns=columns,
            panel_inches=0.9 if columns == 3 else 1.1,
        ),
        task=task,
    )


def _choose_top(systems: Sequence[HistogramPanel], panels: Sequence[HistogramPanel], *, is_split: bool) -> int:
    """Return where every panel ends, in per cent: above all bars of systems; what is higher of the originals is cut."""
    bins = [one for panel in systems for one in (*panel.filled, *(panel.line if is_split else ()))]
    highest = max((share for *_, share in bins), default=100.0)
    overall = max((share for panel in panels for *_, share in (*panel.filled, *panel.line)), default=100.0)
    if overall <= _LITTLE_HIGHER * highest:
        highest = overall
    return next(top for top in _TOPS_PERCENT if highest <= top + 1e-9)


def _find_mode(bins: Sequence[Record]) -> str:
    """Return the fullest bin in words."""
    if not bins:
        return "nothing"
    fullest = max(bins, key=lambda row: float(row["share"] or 0))
    middle = (float(fullest["lower"]) + float(fullest["upper"])) / 2
    return f"{number(middle, 0 if middle == round(middle) else 2)} ({percent(fullest['share'], 0)} %)"


def significance_figures(view: ResultsView, scores: Scores, task: str) -> Iterator[StudyFigure]:
    """Yield which systems differ: every system against every other, by the p-values that decide."""
    rows = [row for row in view.rows(scores, "differences", task) if None not in (row["difference"], row["decisive_p"])]
    if not rows:
        return
    settings = view.results.settings
    means = view.by_system(scores, "summary", task, kind="all")
    found = group_rows([row for row in view.rows(scores, "summary", task) if row["mean"] is not None], "system")
    levels_of = {name: np.mean([float(row["mean"]) for row in rows_of]) for (name,), rows_of in found.items()}
    alpha = round(1 - view.results.level, 10)
    levels = [alpha, *(level for level in _LEVELS if level < alpha - 1e-9)][:3]
    strengths = weigh_pairs(
        ((row["first"], row["second"], row["difference"], row["decisive_p"]) for row in rows), levels
    )
    systems = sorted({name for name, _ in strengths}, key=lambda name: (-levels_of.get(name, 0.0), name))
    pairs = [pair for pair in combinations(systems, 2) if pair in strengths]
    alike = [f"{view.labels[a]} and {view.labels[b]}" for a, b in pairs if not strengths[a, b]]
    shown_apart = f"{sentence(task)}: {len(pairs) - len(alike)} of {len(pairs)} pairs differ at {percent(alpha, 0)} %."
    correction = choice_in_words("correction", view.results.settings)
    n = sum(int(means[name]["n"] or 0) for name in systems if name in means)
    listeners = max(int(row["listeners"] or 0) for row in rows)
    yield view.figure(
        scores,
        f"significance-{task}",
        f"{sentence(task)}: which systems differ",
        "Each row against the systems of the columns, both sorted by mean, highest first.",
        "The larger p of a permutation test within listeners and a t test clustered by listener and utterance, "
        f"corrected over all {count(len(rows))} pairs{f' ({correction})' if correction else ''}.",
        f"n = {count(n)} ratings by {count(listeners)} listeners (the clusters), seed {settings.get('seed')}.",
        alt=f"{shown_apart} Not significant: {listed(alike)}." if 0 < len(alike) < len(pairs) else shown_apart,
        plot=plot_matrix(strengths, systems, "p < " + ", ".join(f"{level:g}" for level in levels), view),
        task=task,
    )
