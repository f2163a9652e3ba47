"""Bars of a measure: one average of each system.

Baselines are grey and hatched. Values are written next to their bars. Where a minimum asks something of single data
sets, a diamond shows the lowest, which decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.rounding import fixed, round_to_interval
from evaluation.figures.style import (
    ImageFormat,
    Look,
    Palette,
    Size,
    Theme,
    draw_limit,
    draw_plot,
    mark_artist,
    validate_finite,
)
from evaluation.metrics.catalogue import Metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_INCHES, NARROW_INCHES = 5.2, 3.6
_THICKNESS = 0.62  # of a bar, where rows are 1 apart


@dataclass(frozen=True, slots=True)
class SystemBar:
    """A system's average with its interval.

    Attributes:
        least: the lowest data set, where a minimum is asked of each.
        place: of the system among the colours (`style.place_systems`).
        words: what hovering over it tells; empty for nothing.
        link: where it leads in a page; empty for nowhere.
    """

    name: str
    value: float
    lower: float | None = None
    upper: float | None = None
    least: float | None = None
    is_baseline: bool = False
    place: int = 0
    words: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class _BarPlot:
    """Bars from zero below each other; `minimum` is a line through all of them."""

    bars: Sequence[SystemBar]
    axis: str
    minimum: float | None
    narrow: bool

    @property
    def size(self) -> Size:
        return size_of_system_bars(len(self.bars), narrow=self.narrow)

    def paint(self, figure: Figure, palette: Palette) -> None:
        axes = figure.subplots()
        ends = [0.0]
        for place, bar in enumerate(self.bars):
            colour = palette.line if bar.is_baseline else palette.series[bar.place % len(palette.series)]
            look: Look = {"color": colour, "edgecolor": palette.ink, "hatch": "///" if bar.is_baseline else ""}
            [drawn] = axes.barh([place], [bar.value], _THICKNESS, linewidth=0.6, **look)
            mark_artist(drawn, bar.words, bar.link)
            ends.append(furthest := bar.value)
            if bar.lower is not None and bar.upper is not None:
                axes.plot([bar.lower, bar.upper], [place] * 2, color=palette.ink, linewidth=1.4, marker="|")
                furthest = bar.upper if bar.value >= 0 else bar.lower
                ends += [bar.lower, bar.upper]
            if bar.least is not None:
                face: Look = {"markerfacecolor": palette.grid, "markeredgecolor": palette.ink}
                axes.plot([bar.least], [place], "D", markersize=5, zorder=4, markeredgewidth=0.7, **face)
                ends.append(bar.least)
            side, shift = ("left", 4) if bar.value >= 0 else ("right", -4)
            look = {"textcoords": "offset points", "ha": side, "va": "center", "color": palette.muted}
            axes.annotate(_label_of(bar), (furthest, place), xytext=(shift, 0), fontsize=8.5, **look)
        if self.minimum is not None:
            ends.append(self.minimum)
            draw_limit(axes, self.minimum, palette, f"minimum {self.minimum:g}")
        low, high = min(ends), max(ends)
        room = (0.25 if self.narrow else 0.14) * (high - low or 1.0)  # for the number, which does not shrink
        axes.set_xlim(low - room if low < 0 else 0, high + room if high > 0 else 0)
        axes.axvline(0, color=palette.line, linewidth=0.8)
        axes.set_ylim(len(self.bars) - 0.45, -0.55)
        axes.set_yticks(range(len(self.bars)), [bar.name for bar in self.bars])
        for name, bar in zip(axes.get_yticklabels(), self.bars, strict=True):
            mark_artist(name, bar.words, bar.link)
        axes.tick_params(axis="y", labelcolor=palette.ink)
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(self.axis)


def draw_system_bars(
    bars: Sequence[SystemBar],
    metric: Metric,
    *,
    minimum: float | None = None,
    narrow: bool = False,
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
    stamp: str = "",
) -> bytes:
    """Draw one bar for each system, from zero, in the order given.

    Args:
        bars: at least one, all finite.
        minimum: of the metric, drawn through all bars.
        narrow: for the width of a phone, where texts stay as large as they are.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.
        stamp: a warning above all else, such as of synthetic speech.

    Raises:
        InputError: no bar, or a value that is not finite.
    """
    validate_finite(((bar.name, bar.value) for bar in bars), metric.key)
    axis = f"{metric.label}{f', {metric.unit}' if metric.unit else ''}  ({metric.direction} is better)"
    title, description = f"{metric.label} of each system", describe_systems(bars, metric, minimum)
    plot = _BarPlot(bars, axis.replace("  ", "\n") if narrow else axis, minimum, narrow)
    words = {"title": title, "description": description, "stamp": stamp}
    return draw_plot(plot, theme=theme, image_format=image_format, **words)


def size_of_system_bars(bars: int, *, narrow: bool = False) -> Size:
    """Of a figure with so many bars of systems."""
    return Size(NARROW_INCHES if narrow else WIDTH_INCHES, round(1.15 + 0.29 * bars, 2))


def describe_systems(bars: Iterable[SystemBar], metric: Metric, minimum: float | None = None) -> str:
    """Return the figure in words, for those who cannot see it."""
    unit = f" {metric.unit}" if metric.unit else ""
    sentences = [f"{bar.name}: {_label_of(bar)}{unit}." for bar in bars]
    if minimum is not None:
        sentences.append(f"Dashed line: minimum of {minimum:g}.")
    return " ".join(sentences)


def _label_of(bar: SystemBar) -> str:
    """As tables have it: in the digits that its interval leaves meaning to."""
    return round_to_interval(bar.value, bar.lower, bar.upper, 2)[0]


def format_value(value: float) -> str:
    """Return two digits, with a true minus sign."""
    return fixed(value, 2)
