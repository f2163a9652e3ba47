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

from common.errors import MetricInputError
from evaluation.figures.style import MARKERS, ImageFormat, Look, Palette, Size, Theme, draw_limit, draw_plot
from evaluation.metrics.catalogue import WER, Direction, Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

Kind = Literal["original", "baseline", "system", "published"]
WIDTH_INCHES, HEIGHT_INCHES = 5.6, 4.0
NARROW_INCHES, NARROW_HEIGHT_INCHES = 3.6, 4.4
MANY_POINTS, MANY_WIDER = 8, 1.2
# Of a point, the first one preferred.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
_KINDS: tuple[Kind, ...] = ("original", "baseline", "system", "published")


@dataclass(frozen=True, slots=True)
class SystemPoint:
    """One system in the plane.

    Attributes:
        name: beside the point.
        eer: average equal error rate, in per cent; higher is more private.
        utility: average of the utility metric in its unit, such as the word error rate in per cent.
        kind: ``original`` (unprotected speech), ``baseline``, ``system``, or ``published`` by others and not measured.
        team: systems of one team have one colour and one marker.
        rank: within the condition of interest, written into the point; None for none.
        eer_interval, utility_interval: limits, drawn as thin lines; None for none.
    """

    name: str
    eer: float
    utility: float
    kind: Kind = "system"
    team: str = ""
    rank: int | None = None
    eer_interval: tuple[float, float] | None = None
    utility_interval: tuple[float, float] | None = None


def draw_tradeoff(
    points: Sequence[SystemPoint],
    *,
    metric: Metric = WER,
    minimum_eers: Sequence[float] = (),
    narrow: bool = False,
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
) -> bytes:
    """Draw systems by EER and utility, with a dashed line for each condition.

    Args:
        points: at least one.
        metric: the utility.
        minimum_eers: limits of the conditions, in per cent.
        narrow: for the width of a phone, where the names stay as large as they are.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.

    Raises:
        MetricInputError: no point, a utility that is not finite, an error rate below 0, an EER above 100.
    """
    _validate(points, metric)
    plot = _TradeoffPlot(points, metric, minimum_eers, narrow)
    title, description = "Privacy against utility", describe(points, minimum_eers, metric)
    return draw_plot(plot, title=title, description=description, theme=theme, image_format=image_format)


def size_of(points: int, *, narrow: bool = False) -> Size:
    """Of a figure with so many points."""
    wider = MANY_WIDER if points > MANY_POINTS else 1.0
    if narrow:
        return Size(NARROW_INCHES, NARROW_HEIGHT_INCHES * wider)
    return Size(WIDTH_INCHES * wider, HEIGHT_INCHES * wider)


def describe(points: Iterable[SystemPoint], minimum_eers: Sequence[float] = (), metric: Metric = WER) -> str:
    """The figure in words, for those who cannot see it."""
    unit = f" {metric.unit}" if metric.unit else ""
    sentences = [f"{one.name}: EER {one.eer:.2f} %, {metric.label} {one.utility:.2f}{unit}." for one in points]
    if minimum_eers:
        limits = ", ".join(f"{limit:g}" for limit in minimum_eers)
        sentences.append(f"Dashed lines: minimum EER of each condition, {limits} %.")
    return " ".join(sentences)


def _validate(points: Sequence[SystemPoint], metric: Metric) -> None:
    if not points:
        raise MetricInputError("Expected at least one system, found none.")
    for one in points:
        is_rate = metric.unit == "%"
        is_number = np.isfinite(one.utility) and (one.utility >= 0 or not is_rate)
        if not (0 <= one.eer <= 100 and is_number) or one.kind not in _KINDS:
            wanted = "of 0 % or more" if is_rate else "that is a number"
            raise MetricInputError(
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
        teams = list(dict.fromkeys(point.team or point.name for point in self.points if point.kind == "system"))
        for point in self.points:
            _draw_point(axes, point, teams, palette)
        if engine := figure.get_layout_engine():
            engine.execute(figure)  # names are placed by what they would cover
        _name_points(axes, self.points, palette)

    def _draw_axes(self, axes: Axes, palette: Palette) -> None:
        metric, gap = self.metric, "\n" if self.narrow else "  "
        eers = [eer for one in self.points for eer in (one.eer, *(one.eer_interval or ()))]
        utilities = [utility for one in self.points for utility in (one.utility, *(one.utility_interval or ()))]
        axes.set_xlim(max(0.0, min(eers) - 3), max([*eers, *self.minimum_eers]) + 3)
        room = max(1.0 if metric.unit == "%" else 0.05, 0.22 * (max(utilities) - min(utilities)))
        lowest = min(utilities) - room
        axes.set_ylim(max(0.0, lowest) if min(utilities) >= 0 else lowest, max(utilities) + 1.4 * room)
        for number, limit in enumerate(self.minimum_eers, start=1):
            draw_limit(axes, limit, palette, f"condition {number}" if number == 1 else str(number), side="right")
        axes.grid(visible=True)
        axes.locator_params(axis="y", nbins=6)
        axes.set_xlabel(f"Privacy: EER of the attacker, %{gap}(right is better)")
        unit = f", {metric.unit}" if metric.unit else ""
        side = "down" if metric.direction == Direction.LOWER else "up"
        axes.set_ylabel(f"Utility: {metric.label}{unit}{gap}({side} is better)")


def _draw_point(axes: Axes, point: SystemPoint, teams: Sequence[str], palette: Palette) -> None:
    place = teams.index(point.team or point.name) if point.kind == "system" else 0
    faces = {"original": palette.ink, "baseline": palette.line, "published": "none"}
    faces["system"] = palette.series[place % len(palette.series)]
    thin: Look = {"color": palette.muted, "linewidth": 0.9, "zorder": 2}
    if point.eer_interval:
        axes.plot(point.eer_interval, [point.utility] * 2, **thin)
    if point.utility_interval:
        axes.plot([point.eer] * 2, point.utility_interval, **thin)
    look: Look = {"marker": MARKERS[place % 6], "markersize": 13 if point.rank is not None else 10}
    look |= {"markerfacecolor": faces[point.kind], "markeredgewidth": 0.9}
    look["markeredgecolor"] = palette.muted if point.kind == "published" else palette.ink
    axes.plot([point.eer], [point.utility], zorder=3, clip_on=False, **look)
    if point.rank is not None:
        text: Look = {"ha": "center", "va": "center_baseline", "fontsize": 8.5, "fontweight": "bold"}
        axes.text(point.eer, point.utility, str(point.rank), color=_readable_on(faces[point.kind]), zorder=5, **text)


def _name_points(axes: Axes, points: Sequence[SystemPoint], palette: Palette) -> None:
    """Each name beside its point, on the side where it covers least."""
    from matplotlib.transforms import Bbox

    dot = axes.figure.dpi / 72
    taken = []
    for point in points:
        along = [(eer, point.utility) for eer in point.eer_interval or ()]
        upwards = [(point.eer, utility) for utility in point.utility_interval or ()]
        for corners, padding in (([(point.eer, point.utility)], 7 * dot), (along, dot), (upwards, dot)):
            if corners:
                boxes = [Bbox([corner, corner]) for corner in axes.transData.transform(corners)]
                taken.append(Bbox.null().union(boxes).padded(padding))
    for point in points:
        probe = axes.text(0, 0, point.name, fontsize=9.5)
        extent = probe.get_window_extent()
        probe.remove()
        x, y = axes.transData.transform((point.eer, point.utility))
        sides = {}
        for across, up in _SIDES:
            middle = x + across * (9 * dot + extent.width / 2), y + up * (9 * dot + extent.height / 2)
            lower = middle[0] - extent.width / 2, middle[1] - extent.height / 2
            sides[across, up] = Bbox.from_bounds(*lower, extent.width, extent.height)
        across, up = best = min(sides, key=lambda side: _measure_cover(sides[side], taken, axes.bbox))
        taken.append(sides[best])
        arrow = {"arrowstyle": "-", "color": palette.muted, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
        look: Look = {"textcoords": "offset points", "xytext": (9 * across, 9 * up), "fontsize": 9.5, "zorder": 4}
        look |= {"ha": ("center", "left", "right")[across], "va": ("center", "bottom", "top")[up]}
        look |= {"arrowprops": arrow if across and up else None, "in_layout": False}
        axes.annotate(point.name, (point.eer, point.utility), **look)


def _measure_cover(box: Bbox, others: Sequence[Bbox], inside: Bbox) -> float:
    """How much of other boxes, and of what lies outside of the axes, a box covers."""
    overlaps = [box.intersection(box, other) for other in [*others, inside]]
    areas = [one.width * one.height if one else 0.0 for one in overlaps]
    return sum(areas[:-1]) + 10 * (box.width * box.height - areas[-1])


def _readable_on(colour: str) -> str:
    """Black or white, whichever stands out (relative luminance, WCAG 2)."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"
