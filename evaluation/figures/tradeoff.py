"""Privacy against utility: EER and WER of systems, with a line at the minimum EER of each condition.

As figure 1 of the VoicePrivacy 2022 evaluation plan: a circle for each system, its rank within when it has one, the
original speech filled, baselines in grey. Further right is more private. Another utility than WER, such as UAR or pitch
correlation, may take its place; the axis says in which direction it is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from common.errors import InputError
from common.rounding import fixed
from evaluation.figures.label_placement import Box, place_names
from evaluation.figures.style import (
    MARKERS,
    TEXT,
    ImageFormat,
    Look,
    Palette,
    Size,
    Theme,
    draw_limit,
    draw_plot,
    hold_spans,
    mark_artist,
    mark_cut,
    place_systems,
    raise_limits,
)
from evaluation.metrics.catalogue import WER, Direction, Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["original", "baseline", "system", "published"]
WIDTH_INCHES, HEIGHT_INCHES = 5.4, 4.4
NARROW_INCHES, NARROW_HEIGHT_INCHES = 3.6, 4.4
MANY_POINTS, MANY_HIGHER = 8, 1.2
MOST_NAMES_ON_A_PHONE = 4  # a narrow figure with more points has letters, which a list beneath it explains
_KINDS: tuple[Kind, ...] = ("system", "original", "baseline", "published")  # what is drawn last, first


@dataclass(frozen=True, slots=True)
class SystemPoint:
    """One system in the plane.

    Attributes:
        name: beside the point.
        eer: average equal error rate, in per cent; higher is more private.
        utility: average of the utility metric in its unit, such as the word error rate in per cent.
        kind: ``original`` (unprotected speech), ``baseline``, ``system``, or ``published`` by others and not measured.
        team: whose it is, for its words.
        rank: within the condition of interest, written into the point; None for none.
        eer_interval, utility_interval: limits, drawn as thin lines; None for none.
        words: what hovering over it tells; empty for nothing.
        link: where it leads in an SVG; empty for nowhere.
        place: of a system among colours and markers; None for its place by the labels of those that are drawn.
    """

    name: str
    eer: float
    utility: float
    kind: Kind = "system"
    team: str = ""
    rank: int | None = None
    eer_interval: tuple[float, float] | None = None
    utility_interval: tuple[float, float] | None = None
    words: str = ""
    link: str = ""
    place: int | None = None


def draw_tradeoff(
    points: Sequence[SystemPoint],
    *,
    metric: Metric = WER,
    minimum_eers: Sequence[float] = (),
    narrow: bool = False,
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
    stamp: str = "",
) -> bytes:
    """Draw systems by EER and utility, with a dashed line for each condition.

    Args:
        points: at least one.
        metric: the utility.
        minimum_eers: limits of the conditions, in per cent.
        narrow: for the width of a phone, where texts stay as large as they are; see `letters_for`.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.
        stamp: a warning above all else, such as of synthetic speech.

    Raises:
        InputError: no point, a utility that is not finite, an error rate below 0, an EER above 100.
    """
    _validate(points, metric)
    plot = _TradeoffPlot(points, metric, minimum_eers, narrow)
    title, description = "Privacy against utility", describe(points, minimum_eers, metric)
    words = {"title": title, "description": description, "stamp": stamp}
    return draw_plot(plot, theme=theme, image_format=image_format, **words)


def size_of(points: int, *, narrow: bool = False) -> Size:
    """Of a figure with so many points."""
    higher = MANY_HIGHER if points > MANY_POINTS else 1.0
    if narrow:
        return Size(NARROW_INCHES, NARROW_HEIGHT_INCHES * higher)
    return Size(WIDTH_INCHES, HEIGHT_INCHES * higher)


def letters_for(points: Sequence[SystemPoint]) -> list[str]:
    """Return what stands beside each point of a narrow figure in place of its name; nothing where the names have
    room."""
    if len(points) <= MOST_NAMES_ON_A_PHONE:
        return []
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    more = [f"{first}{second}" for first in alphabet for second in alphabet]
    return [*alphabet, *more][: len(points)]


def describe(points: Iterable[SystemPoint], minimum_eers: Sequence[float] = (), metric: Metric = WER) -> str:
    """Return the figure in words, for those who cannot see it."""
    unit = f" {metric.unit}" if metric.unit else ""
    sentences = [
        f"{one.name}: EER {fixed(one.eer, 2)} %, {metric.label} {fixed(one.utility, 2)}{unit}." for one in points
    ]
    if minimum_eers:
        limits = ", ".join(f"{limit:g}" for limit in minimum_eers)
        sentences.append(f"Dashed lines: minimum EER of each condition, {limits} %.")
    return " ".join(sentences)


def _validate(points: Sequence[SystemPoint], metric: Metric) -> None:
    if not points:
        raise InputError("Expected at least one system, found none.")
    for one in points:
        is_rate = metric.unit == "%"
        is_number = np.isfinite(one.utility) and (one.utility >= 0 or not is_rate)
        if not (0 <= one.eer <= 100 and is_number) or one.kind not in _KINDS:
            wanted = "of 0 % or more" if is_rate else "that is a number"
            raise InputError(
                f"{one.name}: expected an EER of 0 to 100 %, a {metric.label} {wanted} and the kind original, "
                f"baseline, system or published, found {one.eer}, {one.utility} and “{one.kind}”."
            )


@dataclass(frozen=True, slots=True)
class _TradeoffPlot:
    points: Sequence[SystemPoint]
    metric: Metric
    minimum_eers: Sequence[float]
    narrow: bool

    @property
    def size(self) -> Size:
        return size_of(len(self.points), narrow=self.narrow)

    def paint(self, figure: Figure, palette: Palette) -> None:
        axes = figure.subplots()
        self._draw_axes(axes, palette)
        looks = place_systems(point.name for point in self.points if point.kind == "system")
        for point in sorted(self.points, key=lambda one: _KINDS.index(one.kind), reverse=True):
            place = looks.get(point.name, 0) if point.place is None else point.place
            _draw_point(axes, point, place, palette)
        if engine := figure.get_layout_engine():
            engine.execute(figure)  # names are placed by what they would cover
            raise_limits(axes)
            engine.execute(figure)
        names = (self.narrow and letters_for(self.points)) or [point.name for point in self.points]
        _name_points(axes, self.points, names, self.minimum_eers, palette)

    def _draw_axes(self, axes: Axes, palette: Palette) -> None:
        metric, gap = self.metric, "\n" if self.narrow else "  "
        eers = [eer for one in self.points for eer in (one.eer, *(one.eer_interval or ()))] + [*self.minimum_eers]
        spans = [(one.eer, one.utility_interval) for one in self.points if one.utility_interval]
        low, high = hold_spans((one.utility for one in self.points), [span for _, span in spans])
        axes.set_xlim(max(0.0, min(eers) - 3), max(eers) + 3)
        room = max(1.0 if metric.unit == "%" else 0.05, 0.22 * (high - low))
        bottom, top = (max(0.0, low - room) if low >= 0 else low - room), high + 1.4 * room
        axes.set_ylim(bottom, top)
        cut = [(eer, bottom, "v") for eer, (start, _) in spans if start < bottom]
        mark_cut(axes, [*cut, *((eer, top, "^") for eer, (_, end) in spans if end > top)], palette)
        for number, limit in enumerate(sorted(self.minimum_eers)):
            words = f"{limit:g}" if self.narrow else f"{limit:g} %"
            draw_limit(axes, limit, palette, words if number else f"minimum {words}", side="right")
        axes.grid(visible=True)
        axes.locator_params(axis="y", nbins=6)
        axes.set_xlabel(f"Privacy: EER of the attacker, %{gap}(right is better)")
        unit = f", {metric.unit}" if metric.unit else ""
        side = "down" if metric.direction == Direction.LOWER else "up"
        axes.set_ylabel(f"Utility: {metric.label}{unit}{gap}({side} is better)")


def _draw_point(axes: Axes, point: SystemPoint, place: int, palette: Palette) -> None:
    faces = {"original": palette.ink, "baseline": palette.line, "published": "none"}
    faces["system"] = palette.series[place % len(palette.series)]
    thin: Look = {"color": palette.muted, "linewidth": 0.9, "zorder": 2}
    if point.eer_interval:
        axes.plot(point.eer_interval, [point.utility] * 2, **thin)
    if point.utility_interval:
        axes.plot([point.eer] * 2, point.utility_interval, **thin)
    look: Look = {
        "linestyle": "none",
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 13 if point.rank is not None else 10,
    }
    look |= {"markerfacecolor": faces[point.kind], "markeredgewidth": 0.9}
    look["markeredgecolor"] = palette.muted if point.kind == "published" else palette.ink
    [drawn] = axes.plot([point.eer], [point.utility], zorder=3, clip_on=False, **look)
    mark_artist(drawn, point.words, point.link)
    if point.rank is not None:
        text: Look = {"ha": "center", "va": "center_baseline", "fontsize": 8.5, "fontweight": "bold"}
        axes.text(point.eer, point.utility, str(point.rank), color=_readable_on(faces[point.kind]), zorder=5, **text)


def _name_points(
    axes: Axes, points: Sequence[SystemPoint], names: Sequence[str], minimum_eers: Sequence[float], palette: Palette
) -> None:
    """Each name near its point, none on another or on a dashed line; a line leads to one that had to go further."""
    dot = axes.figure.dpi / 72
    places = [(float(x), float(y)) for x, y in axes.transData.transform([(one.eer, one.utility) for one in points])]
    taken: list[Box] = [(x - 6 * dot, y - 6 * dot, x + 6 * dot, y + 6 * dot) for x, y in places]
    for point in points:
        for ends in (
            [(eer, point.utility) for eer in point.eer_interval or ()],
            [(point.eer, utility) for utility in point.utility_interval or ()],
        ):
            if ends:
                (left, bottom), (right, top) = axes.transData.transform(ends)
                taken.append((left - dot, bottom - dot, right + dot, top + dot))
    sizes = []
    for name in names:
        probe = axes.text(0, 0, name, fontsize=TEXT)
        extent = probe.get_window_extent()
        probe.remove()
        sizes.append((extent.width + 2 * dot, extent.height))
    frame = axes.bbox
    limits = [float(axes.transData.transform((limit, 0))[0]) for limit in minimum_eers]
    taken += [(x - dot / 2, frame.y0, x + dot / 2, frame.y1) for x in limits]  # thin: better on one than far away
    boxes = place_names(places, sizes, 9 * dot, taken, (frame.x0, frame.y0, frame.x1, frame.y1))
    for point, name, (x, y), box in zip(points, names, places, boxes, strict=True):
        middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        look: Look = {"textcoords": "offset points", "fontsize": TEXT, "zorder": 4, "in_layout": False}
        look |= {"ha": "center", "va": "center", "xytext": ((middle[0] - x) / dot, (middle[1] - y) / dot)}
        look["color"] = palette.muted if point.kind == "published" else palette.ink
        away = max(box[0] - x, x - box[2], box[1] - y, y - box[3])
        if away > 12 * dot:
            look["arrowprops"] = {"arrowstyle": "-", "color": palette.muted, "linewidth": 0.6, "shrinkB": 5}
        drawn = axes.annotate(name, (point.eer, point.utility), **look)
        mark_artist(drawn, point.words, point.link)


def _readable_on(colour: str) -> str:
    """Black or white, whichever stands out (relative luminance, WCAG 2)."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"
