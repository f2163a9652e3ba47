"""Rates and DET curves of systems: of listeners, of pairs on boards, and word error rates.

Overlapping systems are not ranked: rows are sorted, and letters say which do not differ significantly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evaluation.figures.det import Curve, plot_curves, spread_curves, spread_systems
from evaluation.figures.row_plots import HOLLOW, Marks, RowPlot, Rows
from evaluation.figures.style import hold_spans
from listening.analysis.figures.labels import interval, listed, percent, sentence, short_group
from listening.analysis.figures.view import (
    ALL_FORMATS,
    EVERY_SYSTEM,
    Record,
    ResultsView,
    StudyFigure,
    find_limits,
    group_rows,
    has_interval,
    ordered,
    plot_matrix,
    weigh_pairs,
)
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import Scores

_HOW = (
    "Probit axes, clipped at 1 / (2 N); markers: equal error rates, interpolated; segments between operating points "
    "are straight in rates."
)
_CLOSENESS = "Pairs of samples on a board, closeness as the score; near 50 % is a guess."
# The privacy-critical ones first, as tables of pages call them.
PAIRS = {
    "original-anonymised": "unprotected and anonymised",
    "anonymised-anonymised": "both anonymised",
    "original-original": "both unprotected",
}


def eer_figures(view: ResultsView, scores: Scores, task: str) -> Iterator[StudyFigure]:
    """Yield the figure of the equal error rate of each system of a task."""
    records = {name: row for name, row in view.by_system(scores, "detection", task).items() if row["eer"] is not None}
    if not records:
        return
    rows = [records[name] for name in ordered(records, "eer")]
    columns = [("EER, %", [percent(row["eer"]) for row in rows])]
    if any(row["group"] for row in rows):
        columns.append(("group", [short_group(row["group"]) for row in rows]))
    shown = [(view.short[str(row["system"])], row) for row in rows]
    words = "system, interval" if has_interval(rows, "eer") else "system"
    yield view.figure(
        scores,
        f"eer-{task}",
        f"{sentence(task)}: equal error rate of each system",
        _explain_rates(compares_voices=view.compares_voices(scores, task)),
        "Systems that share a letter do not differ significantly." if len(columns) > 1 else "",
        _detection_size(rows),
        intervals=has_interval(rows, "eer"),
        alt=f"{sentence(task)}, equal error rates, {view.level_words} intervals in brackets: "
        f"{listed([_rate_text(view, row) for row in rows])}.",
        plot=plot_values(shown, "eer", f"{sentence(task)}: EER of listeners, %", columns, words, chance=50.0),
        task=task,
    )


def eer_difference_figures(view: ResultsView, scores: Scores, task: str) -> Iterator[StudyFigure]:
    """Yield which systems differ in the equal error rate of a task that compares voices."""
    rows = [row for row in view.rows(scores, "eer_differences", task) if row["is_told_apart"] is not None]
    if not rows or not view.compares_voices(scores, task):
        return
    strengths = weigh_pairs(
        ((row["first"], row["second"], row["difference"], 1 - row["is_told_apart"]) for row in rows), [0.5]
    )
    rates = view.by_system(scores, "detection", task)
    systems = ordered({name: rates[name] for name, _ in strengths}, "eer")
    apart = sum(row["is_told_apart"] for row in rows)
    yield view.figure(
        scores,
        f"eer-difference-{task}",
        f"{sentence(task)}: which systems differ in equal error rate",
        "Each row against the systems of the columns, both sorted by equal error rate, highest first.",
        f"Two differ where the interval of their difference, corrected over all {len(rows):,} pairs, leaves out 0.",
        _detection_size([rates[name] for name in systems]),
        alt=f"{sentence(task)}: {apart:,} of {len(rows):,} pairs differ in equal error rate.",
        plot=plot_matrix(strengths, systems, "", view),
        task=task,
    )


def det_figures(view: ResultsView, scores: Scores, task: str) -> Iterator[StudyFigure]:
    """Yield the DET curves of all systems, and one figure of each system before the others in grey."""
    points = {system: rows for (system,), rows in group_rows(view.rows(scores, "det", task), "system").items()}
    rates = {name: row for name, row in view.by_system(scores, "detection", task).items() if name in points}
    if not rates:
        return
    names = ordered(rates, "eer")
    curves = [
        replace(
            _make_curve(view.short[name], points[name], rates[name], is_anchor=name == ORIGINAL),
            place=view.places.get(name),
            told=f"{view.labels[name]}: EER {percent(rates[name]['eer'])} %",
            link=name,
        )
        for name in names
    ]
    anchors = [place for place, name in enumerate(names) if name == ORIGINAL]
    systems = [place for place, name in enumerate(names) if name != ORIGINAL]
    axis_words = (
        ("False alarms: different speakers taken for one, %", "Misses: same speaker not recognised, %")
        if view.compares_voices(scores, task)
        else ("False alarms: system taken for original, %", "Misses: original taken for processed, %")
    )

    def figure(system: str | None, panels: list[list[int]], grey: Sequence[int], heads: list[str]) -> StudyFigure:
        shown = [name for name in names if system is None or name in (ORIGINAL, system)]
        rows = [rates[name] for name in shown]
        has_words = system is not None and has_interval(rows, "eer")
        rates_text = listed([_rate_text(view, row) for row in rows if row["eer"] is not None])
        return view.figure(
            scores,
            f"det-{task}" if system is None else f"det-{task}-of-{view.slugs[system]}",
            f"{sentence(task)}: DET curve{'s' if system is None else f' of {view.labels[system]}'}",
            _explain_rates(compares_voices=view.compares_voices(scores, task)),
            _HOW,
            "Panels in the order of equal error rates, all other systems in grey." if heads else "",
            _detection_size(rows),
            view.interval_words().replace("intervals", "interval of the EER", 1) if has_words else "",
            alt=f"{sentence(task)}, equal error rates, {view.level_words} intervals in brackets: {rates_text}.",
            plot=plot_curves(curves, axis_words, panels, grey, heads),
            task=task,
            system=system or "",
            formats=("svg",) if system else ALL_FORMATS,
        )

    panels, grey, heads = spread_systems(curves)
    yield figure(None, panels, grey, heads)
    for place in systems:
        own = sorted([*anchors, place])
        yield figure(names[place], [own], [other for other in range(len(names)) if other not in own], [])


def pair_det_figures(view: ResultsView, scores: Scores) -> Iterator[StudyFigure]:
    """Yield the curve of each kind of pairs over all systems; of single systems where a board has but those."""
    points = group_rows(view.rows(scores, "pair_det"), "pairs", "system")
    if any(system == EVERY_SYSTEM for _, system in points):
        points = {key: rows for key, rows in points.items() if key[1] == EVERY_SYSTEM}
    rates = {(str(row["pairs"]), str(row["system"])): row for row in view.rows(scores, "pair_detection")}
    keys = sorted((key for key in points if key in rates), key=lambda key: (_place_pairs(key[0]), key))
    if not keys:
        return
    words = {key: _name_pairs(key[0]) + ("" if key[1] == EVERY_SYSTEM else f", {view.short[key[1]]}") for key in keys}
    curves = [
        replace(
            _make_curve(words[key], points[key], rates[key]),
            told=f"{words[key]}: EER {percent(rates[key]['eer'])} %",
            link="" if key[1] == EVERY_SYSTEM else key[1],
        )
        for key in keys
    ]
    panels = spread_curves(len(curves))
    axis_words = "False alarms: other speakers close, %", "Misses: same speaker far, %"
    grey = list(range(len(curves))) if len(panels) > 1 else ()
    rows = [rates[key] for key in keys]
    yield view.figure(
        scores,
        "pairs-det",
        "Linkability: DET curves by kind of pairs",
        _name_distances(scores),
        _CLOSENESS,
        _HOW,
        view.size_words(rows, "n_target", "n_nontarget", of="pairs"),
        alt="Equal error rates: "
        + listed([f"{_name_pairs(row['pairs'])}, {_rate_text(view, row)}" for row in rows])
        + ".",
        plot=plot_curves(curves, axis_words, panels, grey, grey_words="others"),
    )


def pair_eer_figures(view: ResultsView, scores: Scores) -> Iterator[StudyFigure]:
    """Yield the figure of equal error rates of telling same speakers by closeness, by kind of pairs and system."""
    rows = [row for row in view.rows(scores, "pair_detection") if row["eer"] is not None]
    if not rows:
        return
    rows.sort(key=lambda row: (row["system"] != EVERY_SYSTEM, -float(row["eer"])))
    by_kind = group_rows(sorted(rows, key=lambda row: (_place_pairs(str(row["pairs"])), str(row["pairs"]))), "pairs")
    # A kind of one row is that row; others have a heading.
    shown: list[tuple[str, Record | None]] = []
    for (kind,), held in by_kind.items():
        if len(held) == 1:
            shown.append((_name_pairs(kind), held[0]))
        else:
            shown += [(_name_pairs(kind), None), *((view.short[str(row["system"])], row) for row in held)]
    records = [row for held in by_kind.values() for row in held]
    overall = [row for row in records if row["system"] == EVERY_SYSTEM] or records
    columns = [("EER, %", [percent(row["eer"]) if row else "" for _, row in shown])]
    words = "with interval" if has_interval(rows, "eer") else "EER"
    yield view.figure(
        scores,
        "pairs-eer",
        "Linkability: equal error rate by kind of pairs",
        _name_distances(scores),
        _CLOSENESS,
        view.size_words(overall, "n_target", "n_nontarget", of="pairs"),
        intervals=has_interval(rows, "eer"),
        alt="Equal error rates of pairs by closeness: "
        + listed([f"{_name_pairs(row['pairs'])}, {_rate_text(view, row)}" for row in overall])
        + ".",
        plot=plot_values(shown, "eer", "Same speaker by closeness: EER, %", columns, words, chance=50.0),
    )


def transcription_figures(view: ResultsView) -> Iterator[StudyFigure]:
    """Yield the figure of the word error rate of listeners by system, the recogniser's beside it."""
    found = (row for row in view.rows("common", "transcription") if row["wer"] is not None)
    records = {str(row["system"]): row for row in found}
    if not records:
        return
    order = ordered(records, "wer", highest_first=False)
    order.sort(key=lambda name: (name != view.results.original, name != EVERY_SYSTEM))
    rows = [records[name] for name in order]
    columns = [("WER, %", [percent(row["wer"]) for row in rows])]
    if any(row["recogniser_wer"] is not None for row in rows):
        columns.append(("recogniser", [percent(row["recogniser_wer"]) for row in rows]))
    shown = [(view.short[str(row["system"])], row) for row in rows]
    words = "listeners, interval" if has_interval(rows, "wer") else "listeners"

    def tell(row: Record) -> str:
        beside = "" if row["recogniser_wer"] is None else f", recogniser {percent(row['recogniser_wer'])} %"
        return _rate_text(view, row, "wer") + beside

    yield view.figure(
        "common",
        "transcription",
        "Words that listeners understood: word error rate of each system",
        "Word error rate of what listeners typed, weighted by words; the recogniser on the same utterances.",
        view.size_words([row for row in rows if row["system"] != EVERY_SYSTEM], "n", of="transcripts"),
        intervals=has_interval(rows, "wer"),
        alt=f"Word error rates, {view.level_words} intervals in brackets: {listed([tell(row) for row in rows])}.",
        plot=plot_values(shown, "wer", "Word error rate, %", columns, words, beside="recogniser_wer"),
    )


def plot_values(
    shown: Sequence[tuple[str, Record | None]],
    name: str,
    axis: str,
    columns: Sequence[tuple[str, Sequence[str]]],
    words: str,
    *,
    unit: float = 100,
    chance: float | None = None,
    chance_words: str = "chance",
    band_words: str = "",
    beside: str = "",
) -> RowPlot:
    """Plot values with their intervals, one row each; those of the originals as squares, set apart from the rows below.

    Args:
        shown: the name of each row with its record; None of a heading.
        name: column of the values; ``_low`` and ``_high`` are added for intervals.
        words: of the points, for the key.
        unit: what values are drawn times, 100 for shares.
        chance: what guessing gives, as a line through all rows, with `chance_words` in the key.
        band_words: where each record has a column ``chance``, words for that; the band ends at ``chance_high``.
        beside: column of the recogniser's values, drawn as diamonds; the axis then begins at 0.
    """
    held = [(place, row) for place, (_, row) in enumerate(shown) if row is not None]
    headings = [place for place, (_, row) in enumerate(shown) if row is None]
    anchors = [place for place, row in held if row.get("system") == ORIGINAL and "pairs" not in row]

    def mark(rows: Sequence[tuple[int, Record]], words: str, **look: Any) -> Marks:
        points = [(place, unit * row[name]) for place, row in rows]
        ends = [(place, row[f"{name}_low"], row[f"{name}_high"]) for place, row in rows]
        spans = [(place, unit * low, unit * high) for place, low, high in ends if low is not None and high is not None]
        return Marks(points, words if rows else "", spans, **look)

    marks = [
        mark([one for one in held if one[0] not in anchors], words),
        mark([one for one in held if one[0] in anchors], "originals", marker="s", fill=HOLLOW),
    ]
    others = [(place, unit * row[beside]) for place, row in held if beside and row[beside] is not None]
    if others:
        marks.append(Marks(others, "recogniser", marker="D", fill=1, size=5.0))
    bands = [
        (place, unit * row["chance"], unit * (row["chance"] if row["chance_high"] is None else row["chance_high"]))
        for place, row in held
        if band_words and row["chance"] is not None
    ]
    values = [value for one in marks for _, value in one.points]
    values += [end for _, *ends in bands for end in ends]
    values += [value for value in (chance, 0.0 if beside else None) if value is not None]
    spans = [(low, high) for one in marks for _, low, high in one.spans]
    breaks = [place for place in headings if place] + [place + 1 for place in anchors if place + 1 < len(shown)]
    return RowPlot(
        Rows(
            [label for label, _ in shown],
            columns,
            bold=[*headings, *anchors],
            breaks=breaks,
            told=[(label if row else "", str(row.get("system", "")) if row else "") for label, row in shown],
        ),
        marks,
        find_limits(hold_spans(values, spans) if values else (), 0.05 * unit),
        axis,
        bands,
        band_words,
        lines=[] if chance is None else [(chance, chance_words)],
    )


def _make_curve(name: str, points: Sequence[Record], rate: Record, *, is_anchor: bool = False) -> Curve:
    """Make a curve from the lowest threshold to the highest."""
    rows = sorted(points, key=lambda row: (float(row["miss_rate"]), -float(row["false_alarm_rate"])))
    least_miss, least_alarm = (0.5 / max(int(rate[column] or 1), 1) for column in ("n_target", "n_nontarget"))
    return Curve(
        name if rate["eer"] is None else f"{name} {percent(rate['eer'])} %",
        np.array([float(row["miss_rate"]) for row in rows]),
        np.array([float(row["false_alarm_rate"]) for row in rows]),
        rate["eer"],
        (least_miss, least_alarm),
        is_anchor,
    )


def _explain_rates(*, compares_voices: bool) -> str:
    """Return what a miss and a false alarm are, and which way is better."""
    if compares_voices:
        return (
            "Listeners tell pairs of the same speaker from pairs of different ones, speech of one system; near 50 % "
            "they guess. Privacy only if originals are low."
        )
    return "Listeners tell originals (targets) from speech of the system; a higher rate is a better system."


def _name_distances(scores: Scores) -> str:
    return "Raw distances." if scores == "raw" else "Distances ranked within each board."


def _detection_size(rows: Sequence[Record]) -> str:
    """Return n of the systems; the pool of originals is theirs together."""
    most = max(rows, key=lambda row: int(row["listeners"] or 0))

    def span(column: str) -> str:
        values = sorted({int(row[column] or 0) for row in rows})
        return f"{values[0]:,}" if values[0] == values[-1] else f"{values[0]:,} to {values[-1]:,}"

    return (
        f"n = {span('n_target')} target and {span('n_nontarget')} nontarget ratings of each system, "
        f"by {most['listeners']} listeners (the clusters)."
    )


def _rate_text(view: ResultsView, row: Record, name: str = "eer") -> str:
    return f"{view.labels[row['system']]} {percent(row[name])} %{interval(row, name, percent)}"


def _place_pairs(kind: str) -> int:
    return list(PAIRS).index(kind) if kind in PAIRS else len(PAIRS)


def _name_pairs(kind: str) -> str:
    return PAIRS.get(kind, kind)
