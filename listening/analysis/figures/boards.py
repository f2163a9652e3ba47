"""Boards of linkability: whether groups of samples hold one speaker each, and averaged maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluation.figures.map_plot import MapPlot, MapPoint
from listening.analysis.figures.detection import plot_values
from listening.analysis.figures.labels import count, find_free, listed, number, sentence, short_names, slug
from listening.analysis.figures.view import Record, ResultsView, StudyFigure, group_rows, has_interval
from listening.analysis.reading.inputs import ORIGINAL


def grouping_figures(view: ResultsView) -> Iterator[StudyFigure]:
    """Yield one figure of all measures, by where groups come from and which samples count; beside each, chance."""
    rows = [row for row in view.rows("common", "grouping") if row["value"] is not None]
    if not rows:
        return
    shown: list[tuple[str, Record | None]] = []
    for (source, samples), held in group_rows(rows, "source", "samples").items():
        shown += [(f"{sentence(source)}: {samples}", None), *((str(row["measure"]), row) for row in held)]
    columns = [
        ("value", [number(row["value"]) if row else "" for _, row in shown]),
        ("p", [_p_value(row, view) if row else "" for _, row in shown]),
    ]
    words = "with interval" if has_interval(rows, "value") else "value"
    axis, chance = "Value (1: groups are the speakers)", "chance, up to its 95 %"
    boards, listeners = (max(int(row[column] or 0) for row in rows) for column in ("boards", "listeners"))
    texts = [
        f"{row['measure']} ({row['source']}, {row['samples']}) {number(row['value'])}, chance {number(row['chance'])}"
        for row in rows
    ]
    yield view.figure(
        "common",
        "grouping",
        "Linkability: do groups hold one speaker each?",
        "Groups that listeners drew, or cut from the board at the number of speakers that they declared. "
        "Chance: the speakers of each board permuted.",
        f"n = {count(boards)} boards by {count(listeners)} listeners (the clusters).",
        intervals=has_interval(rows, "value"),
        alt=f"Values beside chance: {listed(texts)}.",
        plot=plot_values(shown, "value", axis, columns, words, unit=1, band_words=chance),
    )


def _p_value(row: Record, view: ResultsView) -> str:
    is_few = int(row["listeners"] or 0) < int(view.results.settings.get("least_clusters") or 0)
    return "–" if is_few else number(row["p"], 3)


def map_figures(view: ResultsView) -> Iterator[StudyFigure]:
    """Yield an averaged map for each board that several listeners filled, and for each system where boards have one
    listener: what listeners placed close to each other lies close."""
    boards = group_rows((row for row in view.rows("common", "map") if row["x"] is not None), "board")
    fits = {str(row["board"]): row for row in view.rows("common", "map_fit")}
    names: list[str] = []
    for place, ((board,), rows) in enumerate(boards.items(), start=1):
        names.append(find_free(f"map-{slug(board)}", names, place))
        yield _make_map(view, names[-1], place, board, rows, fits.get(board, {}))


def _make_map(view: ResultsView, name: str, place: int, board: str, rows: Sequence[Record], fit: Record) -> StudyFigure:
    present = {str(row["system"]) for row in rows}
    systems = [name for name in view.names if name in present]
    speakers = sorted({str(row["speaker"]) for row in rows})
    is_of_voices = not any(row["slot"] for row in rows)  # of all boards of a system: no point is a single sample
    of_system = view.labels.get(systems[-1], systems[-1])
    listeners = int(fit.get("listeners") or max(int(row["listeners"] or 0) for row in rows))
    stress = f"Kruskal's stress-1 {number(fit['stress'])}." if fit.get("stress") is not None else ""
    kind = "voices" if is_of_voices else "samples"
    points = f"{count(len(rows))} {kind} of {count(len(speakers))} speakers"
    plot = MapPlot(
        [
            MapPoint(
                float(row["x"]),
                None if row["y"] is None else float(row["y"]),
                str(row["speaker"]),
                str(row["system"]),
                "" if row["system"] == ORIGINAL else view.short[str(row["system"])],
                f"{view.labels[str(row['system'])]}, speaker {row['speaker']}",
                str(row["system"]),
            )
            for row in rows
        ],
        short_names({speaker: speaker for speaker in speakers}),
        {system: view.short[system] for system in systems},
        ORIGINAL,
        view.places,
    )
    fitted = f"scaled to {'one dimension' if plot.is_line else 'two dimensions'}; directions have no meaning."
    labels = ", ".join(view.labels[name] for name in systems)
    return view.figure(
        "common",
        name,
        f"Linkability: averaged map of {of_system if is_of_voices else f'board {place}'}",
        f"A point is a speaker, original or anonymised by {of_system}. Distances ranked within each "
        f"listener's board, averaged over all boards and {fitted}"
        if is_of_voices
        else f"Board {board}. Distances of each listener ranked within the board, averaged and {fitted}",
        f"n = {points}, {count(listeners)} listeners.",
        str(fit.get("remark") or "") if is_of_voices else "",
        stress,
        alt=f"{points} ({labels}) as {count(listeners)} listeners placed them on average. {stress} "
        f"{_count_neighbours(rows, kind)}".strip(),
        plot=plot,
        is_for_organizers=not is_of_voices,
    )


def _count_neighbours(rows: Sequence[Record], points: str) -> str:
    """Return how many points have one of their own speaker next to them."""
    if len(rows) < 2:
        return ""

    def distance(first: Record, second: Record) -> float:
        return sum((float(first[axis] or 0) - float(second[axis] or 0)) ** 2 for axis in ("x", "y"))

    own = 0
    for place, row in enumerate(rows):
        others = [other for at, other in enumerate(rows) if at != place]
        own += min(others, key=lambda other: distance(row, other))["speaker"] == row["speaker"]
    return f"{own} of {len(rows)} {points} lie closest to one of the same speaker."
