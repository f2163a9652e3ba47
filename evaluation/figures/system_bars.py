"""Bars of one average for many systems, such as ρF0 or G_VD on the board of an edition.

One bar for each system with its interval; baselines are grey and hatched. Where a minimum asks something of single data
sets, a diamond shows the lowest of them, which decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import ImageFormat, Palette, Size, Theme, drawing, render
from evaluation.metrics.catalogue import Metric
from evaluation.metrics.errors import MetricInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES = 5.2
_BAR = 0.62


@dataclass(frozen=True, slots=True)
class SystemBar:
    """A system's average with its interval; `least`: the lowest data set, where a minimum is asked of each."""

    name: str
    value: float
    lower: float | None = None
    upper: float | None = None
    least: float | None = None
    is_baseline: bool = False


def draw_system_bars(
    bars: Sequence[SystemBar],
    metric: Metric,
    *,
    minimum: float | None = None,
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
) -> bytes:
    """Draw one bar for each system, from zero, in the order given.

    Args:
        bars: at least one, all finite.
        minimum: of the metric, drawn through all bars.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.

    Raises:
        MetricInputError: no bar, or a value that is not finite.
    """
    wrong = next((bar for bar in bars if not math.isfinite(bar.value)), None)
    if not bars or wrong:
        found = f"{wrong.value} of {wrong.name}" if wrong else "none"
        raise MetricInputError(f"Expected finite values of {metric.key}, at least one, found {found}.")
    with drawing(theme) as palette:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size_of(len(bars)).inches, layout="constrained")
        axes = figure.subplots()
        for place, bar in enumerate(bars):
            _draw_bar(axes, place, bar, palette)
        _draw_axes(axes, bars, metric, minimum, palette)
        return render(
            figure, image_format, title=f"{metric.label} of each system", description=describe(bars, metric, minimum)
        )


def size_of(bars: int) -> Size:
    """Of a figure with so many bars."""
    return Size(WIDTH_INCHES, 1.15 + 0.29 * bars)


def system_bar_numbers(bars: Iterable[SystemBar], metric: Metric) -> NumberTable:
    """The bars of the figure."""
    unit = f"_{metric.unit}" if metric.unit else ""
    columns = ("system", f"{metric.key}{unit}", "lower", "upper", "lowest_data_set")
    return NumberTable(columns, tuple((bar.name, bar.value, bar.lower, bar.upper, bar.least) for bar in bars))


def describe(bars: Iterable[SystemBar], metric: Metric, minimum: float | None = None) -> str:
    """The figure in words, for those who cannot see it."""
    unit = f" {metric.unit}" if metric.unit else ""
    sentences = [f"{bar.name}: {_text(bar.value)}{unit}." for bar in bars]
    if minimum is not None:
        sentences.append(f"Dashed line: minimum of {minimum:g}.")
    return " ".join(sentences)


def _draw_bar(axes: Axes, place: int, bar: SystemBar, palette: Palette) -> None:
    axes.barh(
        [place], [bar.value], _BAR, color=palette.line if bar.is_baseline else palette.series[0],
        hatch="///" if bar.is_baseline else "", edgecolor=palette.ink, linewidth=0.6,
    )  # fmt: skip
    furthest = bar.value
    if bar.lower is not None and bar.upper is not None:
        axes.plot([bar.lower, bar.upper], [place, place], color=palette.ink, linewidth=1.4, marker="|", markersize=6)
        furthest = bar.upper if bar.value >= 0 else bar.lower
    if bar.least is not None:
        axes.plot(
            [bar.least], [place], "D", markersize=5, markerfacecolor=palette.series[1], markeredgecolor=palette.ink,
            markeredgewidth=0.7, zorder=4,
        )  # fmt: skip
    axes.annotate(
        _text(bar.value), (furthest, place), xytext=(4 if bar.value >= 0 else -4, 0), textcoords="offset points",
        ha="left" if bar.value >= 0 else "right", va="center", fontsize=8.5, color=palette.muted,
    )  # fmt: skip


def _draw_axes(
    axes: Axes, bars: Sequence[SystemBar], metric: Metric, minimum: float | None, palette: Palette
) -> None:  # fmt: skip
    ends = [end for bar in bars for end in (bar.value, bar.lower, bar.upper, bar.least, minimum) if end is not None]
    if minimum is not None:
        axes.axvline(minimum, color=palette.warning, linewidth=1.1, dashes=(4, 3))
        axes.annotate(
            f"minimum {minimum:g}", (minimum, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
            textcoords="offset points", ha="center", va="bottom", fontsize=9.5, color=palette.warning,
        )  # fmt: skip
    low, high = min(0.0, *ends), max(0.0, *ends)
    room = 0.14 * (high - low or 1.0)
    axes.set_xlim(low - room if low < 0 else 0, high + room if high > 0 else 0)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.axvline(0, color=palette.line, linewidth=0.8)
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars])
    axes.grid(axis="x")
    axes.tick_params(axis="both", length=0, pad=5)
    axes.tick_params(axis="y", labelcolor=palette.ink)
    axes.spines["left"].set_visible(False)
    unit = f", {metric.unit}" if metric.unit else ""
    axes.set_xlabel(f"{metric.label}{unit}  ({metric.direction} is better)")


def _text(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
