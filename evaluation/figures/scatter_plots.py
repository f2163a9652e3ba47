"""Points in a plane: `CountPlot` counts them in the cells of a grid, `MapPlot` shows who lies close to whom.

Ratings are few levels and utterances many, so points of a scatter plot would lie on each other: the area of a circle is
the number of points in its cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluation.figures.row_plots import set_value_axis
from evaluation.figures.style import MARKERS, SMALL, Look, Palette, Size, fit_legend, mark_artist

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES = 4.4
_GRID_INCHES = 3.6
_LARGEST_CIRCLE = 0.86  # of the side of a cell


@dataclass(frozen=True, slots=True)
class CellAxis:
    """An axis of cells. `edges`: of the cells, ascending, may reach beyond the limits; equal ones hold one value."""

    words: str
    edges: NDArray[np.float64]
    limits: tuple[float, float]


@dataclass(frozen=True, slots=True)
class CountPlot:
    """How many points lie in each cell, by its column and line. `heading`: above; `counted`: what points are."""

    x: CellAxis
    y: CellAxis
    cells: Mapping[tuple[int, int], int]
    heading: str
    counted: str

    @property
    def size(self) -> Size:
        return Size(WIDTH_INCHES, _GRID_INCHES + 1.2)

    def paint(self, figure: Figure, palette: Palette) -> None:
        axes = figure.subplots()
        edges = self.x.edges, self.y.edges
        inches = [_GRID_INCHES / (each.size - 1) for each in edges]
        widest = 72 * _LARGEST_CIRCLE * min((inches[0] * inches[1]) ** 0.5, 1.4 * min(inches))
        places = np.array(list(self.cells))
        counts = np.array(list(self.cells.values()))
        most, few = int(counts.max()), max(1, int(counts.max()) // 10)
        look: Look = {"color": palette.series[0], "edgecolors": palette.ink, "linewidths": 0.4, "zorder": 3}
        look["clip_on"] = False  # a cell without width lies on the edge
        x, y = ((each[places[:, axis]] + each[places[:, axis] + 1]) / 2 for axis, each in enumerate(edges))
        axes.scatter(x, y, s=np.maximum(widest**2 * counts / most, 1.2), **look)
        what = self.counted if most != 1 else self.counted.removesuffix("s")
        legend = [(most, f"{most:,} {what}"), *([(few, f"{few:,}")] if few < most else [])]
        for count, words in legend:
            axes.scatter([], [], s=max(min(widest, 12) ** 2 * count / most, 1.2), label=words, **look)
        room = max(self.x.limits[0] - self.x.edges[0], self.x.edges[-1] - self.x.limits[1], 0.0)
        set_value_axis(axes, self.x.limits, self.x.words, room=room + 0.01 * (self.x.limits[1] - self.x.limits[0]))
        axes.set_ylim(self.y.edges[0] - 0.01, self.y.edges[-1] + 0.01)
        axes.locator_params(axis="y", nbins=10, steps=[1, 2, 5, 10])
        axes.set_ylabel(self.y.words)
        axes.set_title(self.heading, fontsize=SMALL)
        axes.grid(visible=True)


@dataclass(frozen=True, slots=True)
class MapPoint:
    """`y` is None on a line; `name` stands below the point in a plane; `told` and `link`: as in `mark_artist`."""

    x: float
    y: float | None
    speaker: str
    system: str
    name: str = ""
    told: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class MapPlot:
    """A marker is a speaker and a colour a system; the anchor's colour is ink.

    Attributes:
        speakers, systems: words of each for the key, in their order.
        places: of systems among the colours (`style.place_systems`); by their order where one is not named.
    """

    points: Sequence[MapPoint]
    speakers: Mapping[str, str]
    systems: Mapping[str, str]
    anchor: str
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_line(self) -> bool:
        return all(point.y is None for point in self.points)

    @property
    def size(self) -> Size:
        key = 0.2 * (2 + (len(self.speakers) + len(self.systems)) // 3)
        return Size(WIDTH_INCHES, round(key + (1.5 if self.is_line else WIDTH_INCHES - 0.16), 2))

    def paint(self, figure: Figure, palette: Palette) -> None:
        axes = figure.subplots()
        fill = palette.series
        colours = {
            system: fill[self.places.get(system, place) % len(fill)] for place, system in enumerate(self.systems)
        }
        colours[self.anchor] = palette.ink
        markers = {speaker: MARKERS[place % len(MARKERS)] for place, speaker in enumerate(self.speakers)}
        across = [point.x for point in self.points]
        up = _stack(across) if self.is_line else [point.y or 0.0 for point in self.points]
        edge: Look = {"markeredgecolor": palette.ink, "markeredgewidth": 0.8, "linestyle": "none"}
        for point, y in zip(self.points, up, strict=True):
            look: Look = {"marker": markers[point.speaker], "color": colours[point.system], "clip_on": False}
            [drawn] = axes.plot([point.x], [y], markersize=9, **look, **edge)
            mark_artist(drawn, point.told, point.link)
            if point.name and not self.is_line:
                share = (point.x - min(across)) / ((max(across) - min(across)) or 1.0)
                side = "left" if share < 0.12 else "right" if share > 0.88 else "center"
                text: Look = {"textcoords": "offset points", "ha": side, "fontsize": SMALL, "color": palette.muted}
                axes.annotate(point.name, (point.x, y), xytext=(0, -14), **text)
        axes.plot([], [], linestyle="none", label="Systems:")
        for system, words in self.systems.items():
            axes.fill_between([], [], color=colours[system], label=words)
        handles = [axes.plot([], [], marker=one, color="none", markersize=7, **edge)[0] for one in markers.values()]
        look = {"handles": handles, "labels": [*self.speakers.values()], "title": "Speakers:", "alignment": "left"}
        fit_legend(figure, loc="outside lower left", **look)
        self._set_limits(axes, up)

    def _set_limits(self, axes: Axes, up: Sequence[float]) -> None:
        """Everything within, and in a plane both axes on one scale."""
        axes.set(xticks=[], yticks=[])
        if self.is_line:
            axes.spines["left"].set_visible(False)
            axes.margins(x=0.08)
            axes.set_ylim(-0.6, max(5.0, max(up) + 0.8))
            return
        axes.spines[["top", "right"]].set_visible(True)
        axes.margins(0.1)
        axes.set_aspect("equal", adjustable="datalim")


def _stack(places: Sequence[float]) -> list[float]:
    """Heights on a line: a point whose neighbour is too close stands above it."""
    span = (max(places) - min(places)) or 1.0
    heights = [0.0] * len(places)
    taken: list[tuple[float, float]] = []
    for place in sorted(range(len(places)), key=lambda one: places[one]):
        while any(abs(places[place] - x) < 0.045 * span and heights[place] == y for x, y in taken):
            heights[place] += 1.0
        taken.append((places[place], heights[place]))
    return heights
