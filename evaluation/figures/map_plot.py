"""Points in a plane or on a line: who lies close to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evaluation.figures.style import MARKERS, SMALL, Look, Palette, Size, fit_legend, mark_artist

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES = 4.4


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
