"""Averaged maps, of a board or of all boards of a system: what listeners placed close to each other lies close.

A marker is a speaker, a colour is a system (originals in ink), and on a map of two dimensions each anonymised sample
has the name of its system below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaluation.figures.det import MARKERS
from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import Palette
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.sheet import MARGIN, SMALL, WIDTH_INCHES, Mark, Sheet, key_inches, size_of
from listening.analysis.figures.view import Record, View, numbers_of
from listening.analysis.figures.words import count, number, short_names, slug
from listening.analysis.inputs import ORIGINAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = ("slot", "system", "speaker", "x", "y", "listeners")
_SIDE, _LINE_INCHES = WIDTH_INCHES - 2 * MARGIN, 1.5


@dataclass(frozen=True)
class _Drawn:
    view: View
    rows: Sequence[Record]

    @property
    def is_line(self) -> bool:
        return all(row["y"] is None for row in self.rows)

    @property
    def is_of_voices(self) -> bool:
        """Of all boards of a system: no point is a single sample."""
        return not any(row["slot"] for row in self.rows)

    @property
    def of_system(self) -> str:
        return self.view.labels.get(self.systems[-1], self.systems[-1])

    @property
    def systems(self) -> list[str]:
        names = {str(row["system"]) for row in self.rows}
        return [name for name in self.view.names if name in names]

    @property
    def speakers(self) -> list[str]:
        return sorted({str(row["speaker"]) for row in self.rows})

    @property
    def inches(self) -> float:
        return 2 * key_inches(_marks(self, None)[0]) + (_LINE_INCHES if self.is_line else _SIDE) + 0.1


def map_figures(view: View) -> list[Figure]:
    """One figure for each board that several listeners filled, and for each system where boards have one listener."""
    by_board: dict[str, list[Record]] = {}
    for row in view.rows("common", "map"):
        if row["x"] is not None:
            by_board.setdefault(str(row["board"]), []).append(row)
    fits = {str(row["board"]): row for row in view.rows("common", "map_fit")}
    names: dict[str, None] = {}
    figures = []
    for number_of_board, (board, rows) in enumerate(by_board.items(), start=1):
        plain = name = f"map-{slug(board)}"
        number_of_name = number_of_board
        while name in names:
            name, number_of_name = f"{plain}-{number_of_name}", number_of_name + 1
        names[name] = None
        figures.append(_figure(view, name, number_of_board, board, rows, fits.get(board, {})))
    return figures


def _figure(view: View, name: str, place: int, board: str, rows: Sequence[Record], fit: Record) -> Figure:
    drawn = _Drawn(view, rows)
    listeners = int(fit.get("listeners") or max(int(row["listeners"] or 0) for row in rows))
    stress = f"Kruskal's stress-1 {number(fit['stress'])}." if fit.get("stress") is not None else ""
    speakers, systems = len(drawn.speakers), [view.labels[name] for name in drawn.systems]
    points = f"{count(len(rows))} {'voices' if drawn.is_of_voices else 'samples'} of {count(speakers)} speakers"
    fitted = f"scaled to {'one dimension' if drawn.is_line else 'two dimensions'}; directions have no meaning."
    return Figure(
        scores="common",
        name=name,
        title=f"Linkability: averaged map of {drawn.of_system if drawn.is_of_voices else f'board {place}'}",
        caption=view.caption(
            f"A point is a speaker, original or anonymised by {drawn.of_system}. Distances ranked within each "
            f"listener's board, averaged over all boards and {fitted}"
            if drawn.is_of_voices
            else f"Board {board}. Distances of each listener ranked within the board, averaged and {fitted}",
            f"n = {points}, {count(listeners)} listeners.",
            str(fit.get("remark") or "") if drawn.is_of_voices else "",
            stress,
        ),
        alt=f"{points} ({', '.join(systems)}) as {count(listeners)} listeners placed them on average. {stress} "
        f"{_nearest(rows, 'voices' if drawn.is_of_voices else 'samples')}".strip(),
        size=size_of(drawn.inches, is_simulated=view.is_simulated),
        paint=lambda sheet: _paint(sheet, drawn),
        count=lambda: NumberTable(*numbers_of(view, rows, _COLUMNS[1:] if drawn.is_of_voices else _COLUMNS)),
        is_about_utterances=not drawn.is_of_voices,
        is_simulated=view.is_simulated,
    )


def _nearest(rows: Sequence[Record], points: str) -> str:
    """How many points have one of their own speaker next to them."""
    if len(rows) < 2:
        return ""
    own = 0
    for place, row in enumerate(rows):
        others = [other for at, other in enumerate(rows) if at != place]
        own += min(others, key=lambda other: _distance(row, other))["speaker"] == row["speaker"]
    return f"{own} of {len(rows)} {points} lie closest to one of the same speaker."


def _distance(first: Record, second: Record) -> float:
    return sum((float(first[axis] or 0) - float(second[axis] or 0)) ** 2 for axis in ("x", "y"))


def _colour(drawn: _Drawn, system: str, palette: Palette | None) -> str:
    if palette is None:
        return "k"
    if system == ORIGINAL:
        return palette.ink
    systems = [name for name in drawn.systems if name != ORIGINAL]
    return palette.series[systems.index(system) % len(palette.series)]


def _marks(drawn: _Drawn, palette: Palette | None) -> tuple[list[Mark], list[Mark]]:
    """Speakers, and systems."""
    ink = palette.ink if palette else "k"
    hollow = {"linestyle": "none", "color": "none", "markeredgecolor": ink, "markersize": 7.0}
    short = short_names({speaker: speaker for speaker in drawn.speakers})
    speakers = [Mark(short[one], hollow | {"marker": _marker(drawn, one)}) for one in drawn.speakers]
    systems = [
        Mark(drawn.view.short[one], {"facecolor": _colour(drawn, one, palette), "edgecolor": "none"}, is_area=True)
        for one in drawn.systems
    ]
    return speakers, systems


def _marker(drawn: _Drawn, speaker: str) -> str:
    return MARKERS[drawn.speakers.index(speaker) % len(MARKERS)]


def _paint(sheet: Sheet, drawn: _Drawn) -> None:
    palette = sheet.palette
    speakers, systems = _marks(drawn, palette)
    sheet.key([Mark("Speakers:"), *speakers], sheet.top)
    sheet.key([Mark("Systems:"), *systems], sheet.top + key_inches([Mark("Speakers:"), *speakers]))
    top = sheet.top + sum(key_inches([Mark("Speakers:"), *marks]) for marks in (speakers, systems)) + 0.06
    axes = sheet.axes(MARGIN, top, _SIDE, sheet.height - top - MARGIN)
    across = [float(row["x"]) for row in drawn.rows]
    up = _stacked(across) if drawn.is_line else [float(row["y"] or 0) for row in drawn.rows]
    for row, x, y in zip(drawn.rows, across, up, strict=True):
        system = str(row["system"])
        look: dict[str, Any] = {"marker": _marker(drawn, str(row["speaker"])), "color": _colour(drawn, system, palette)}
        axes.plot([x], [y], markersize=9, markeredgecolor=palette.ink, markeredgewidth=0.8, clip_on=False, **look)
        if system != ORIGINAL and not drawn.is_line:
            share = (x - min(across)) / ((max(across) - min(across)) or 1.0)
            side, shift = ("left", -5) if share < 0.12 else ("right", 5) if share > 0.88 else ("center", 0)
            axes.annotate(drawn.view.short[system], (x, y), xytext=(shift, -14), textcoords="offset points", ha=side,
                          fontsize=SMALL, color=palette.muted)  # fmt: skip
    _limits(sheet, axes, across, up, is_line=drawn.is_line)
    axes.set_xticks([])
    axes.set_yticks([])
    if drawn.is_line:
        axes.spines["left"].set_visible(False)
    else:
        axes.spines[["top", "right"]].set_visible(True)


def _stacked(places: Sequence[float]) -> list[float]:
    """Heights on a line: a sample whose neighbour is too close stands above it."""
    span = (max(places) - min(places)) or 1.0
    heights = [0.0] * len(places)
    taken: list[tuple[float, float]] = []
    for place in sorted(range(len(places)), key=lambda one: places[one]):
        height = 0.0
        while any(abs(places[place] - x) < 0.045 * span and height == y for x, y in taken):
            height += 1.0
        taken.append((places[place], height))
        heights[place] = height
    return heights


def _limits(sheet: Sheet, axes: Axes, across: Sequence[float], up: Sequence[float], *, is_line: bool) -> None:
    """Everything within, and on a map of two dimensions both axes on one scale."""
    if is_line:
        room = 0.08 * ((max(across) - min(across)) or 1.0)
        axes.set_xlim(min(across) - room, max(across) + room)
        axes.set_ylim(-0.6, max(5.0, max(up) + 0.8))
        return
    place = axes.get_position()
    inches = (place.width * sheet.width, place.height * sheet.height)
    spans = [(max(values) - min(values)) or 1.0 for values in (across, up)]
    scale = 1.2 * max(span / length for span, length in zip(spans, inches, strict=True))  # units an inch, with room
    for values, length, limit in ((across, inches[0], axes.set_xlim), (up, inches[1], axes.set_ylim)):
        middle = (max(values) + min(values)) / 2
        limit(middle - scale * length / 2, middle + scale * length / 2)
