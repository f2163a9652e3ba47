"""Figures of a training: errors by epoch, and errors by the epochs before the target classifier acts.

As figures 3 and 4 of Franzreb et al.: a line for each measure, the band is the sample standard deviation over seeds,
a dotted line the error of guessing. Conventions: errors are given as shares and drawn in per cent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.attackers.training.report import CurvePoint, Spread, SweepPoint
from evaluation.figures.det import DASHES, MARKERS
from evaluation.figures.numbers import Cell, NumberTable
from evaluation.figures.style import ImageFormat, Palette, Size, Theme, drawing, render
from evaluation.metrics.errors import MetricInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CURVES = 4
LEARNING_SIZE = Size(5.6, 3.9)
SWEEP_SIZE = Size(5.6, 3.9)
_SHADE = 0.22
_ROOM_ABOVE = 1.08
_MOST_TICKS = 12
_MARKERS_UP_TO = 20  # epochs; more of them would touch


@dataclass(frozen=True)
class Curve:
    """One line by epoch.

    Attributes:
        label: in the legend.
        points: as `report.curves` gives them, at least one.
        chance: error of guessing, a share; None for no dotted line.
    """

    label: str
    points: tuple[CurvePoint, ...]
    chance: float | None = None


def draw_learning_curves(
    curves: Sequence[Curve], *, theme: Theme = "light", image_format: ImageFormat = "svg"
) -> bytes:  # fmt: skip
    """Draw errors by epoch.

    Args:
        curves: one to four.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.

    Raises:
        MetricInputError: no curve, more than four, one without points, or two of one label.
    """
    _validate({one.label: one.points for one in curves}, len(curves))
    lines = {one.label: [(point.epoch, point.spread) for point in one.points] for one in curves}
    with drawing(theme) as palette:
        from matplotlib.figure import Figure

        figure = Figure(figsize=LEARNING_SIZE.inches, layout="constrained")
        axes = figure.subplots()
        for position, (label, points) in enumerate(lines.items()):
            _draw_line(axes, label, points, position, palette)
            _draw_chance(axes, curves[position].chance, position, palette)
        if any(one.chance is not None for one in curves):
            axes.plot([], [], color=palette.muted, linewidth=1.2, dashes=(1, 2), label="chance: guessing")
        _finish(axes, [epoch for points in lines.values() for epoch, _ in points], "Epoch", "Error, %")
        figure.legend(loc="outside lower left", frameon=False, fontsize=9, handlelength=3.6, ncols=2)
        return render(
            figure, image_format, title="Errors by epoch of training", description=describe_learning_curves(curves)
        )


def learning_curve_numbers(curves: Sequence[Curve]) -> NumberTable:
    """The points of the figure, as shares."""
    rows: list[tuple[Cell, ...]] = [
        (one.label, point.epoch, point.spread.mean, point.spread.deviation, len(point.spread.values), one.chance)
        for one in curves
        for point in one.points
    ]
    return NumberTable(("label", "epoch", "error", "deviation", "seeds", "chance"), tuple(rows))


def describe_learning_curves(curves: Sequence[Curve]) -> str:
    """The curves in words, for those who cannot see them."""
    sentences = []
    for one in curves:
        first, last = one.points[0], one.points[-1]
        chance = "" if one.chance is None else f"; guessing gives {100 * one.chance:.1f} %"
        sentences.append(
            f"{one.label}: {first.spread} % after epoch {first.epoch}, "
            f"{last.spread} % after epoch {last.epoch}{chance}."
        )
    return " ".join(sentences)


def draw_sweep(
    series: Mapping[str, Sequence[SweepPoint]],
    *,
    measure: str = "VER_S",
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
) -> bytes:
    """Draw an error by the epochs before the target classifier acts.

    Args:
        series: label of each line, such as its selection of targets, and its points; one to four.
        measure: what the error is called.

    Raises:
        MetricInputError: as `draw_learning_curves`.
    """
    _validate(series, len(series))
    with drawing(theme) as palette:
        from matplotlib.figure import Figure

        figure = Figure(figsize=SWEEP_SIZE.inches, layout="constrained")
        axes = figure.subplots()
        for position, (label, points) in enumerate(series.items()):
            _draw_line(axes, label, [(one.zero_epochs, one.spread) for one in points], position, palette)
        places = [one.zero_epochs for points in series.values() for one in points]
        _finish(axes, places, "Epochs before the target classifier acts, E", f"{measure}, %", from_zero=False)
        figure.legend(loc="outside lower left", frameon=False, fontsize=9, handlelength=3.6, ncols=2)
        title = f"{measure} by the epochs before the target classifier acts"
        return render(figure, image_format, title=title, description=describe_sweep(series, measure=measure))


def sweep_numbers(series: Mapping[str, Sequence[SweepPoint]]) -> NumberTable:
    """The points of the figure, as shares."""
    rows: list[tuple[Cell, ...]] = [
        (label, one.zero_epochs, one.spread.mean, one.spread.deviation, len(one.spread.values))
        for label, points in series.items()
        for one in points
    ]
    return NumberTable(("label", "zero_epochs", "error", "deviation", "seeds"), tuple(rows))


def describe_sweep(series: Mapping[str, Sequence[SweepPoint]], *, measure: str = "VER_S") -> str:
    """The lines in words, for those who cannot see them."""
    sentences = []
    for label, points in series.items():
        lowest = min(points, key=lambda one: one.spread.mean)
        listed = ", ".join(f"{one.spread} % at E = {one.zero_epochs}" for one in points)
        sentences.append(f"{label}: {measure} {listed}; lowest at E = {lowest.zero_epochs}.")
    return " ".join(sentences)


def _validate(lines: Mapping[str, Sequence[object]], count: int) -> None:
    if not 1 <= count <= MOST_CURVES:
        raise MetricInputError(f"Expected 1 to {MOST_CURVES} lines in a figure of a training, found {count}.")
    if len(lines) != count:
        raise MetricInputError(f"Expected a label of its own for each of {count} lines, found {len(lines)}.")
    empty = [label for label, points in lines.items() if not points]
    if empty:
        raise MetricInputError(f"Expected at least one point of each line, found none of {', '.join(empty)}.")


def _draw_line(
    axes: Axes, label: str, points: Sequence[tuple[int, Spread]], position: int, palette: Palette
) -> None:  # fmt: skip
    places = [place for place, _ in points]
    means = [100 * one.mean for _, one in points]
    widths = [100 * (one.deviation or 0.0) for _, one in points]
    colour = palette.series[position % len(palette.series)]
    marker = MARKERS[position] if len(places) <= _MARKERS_UP_TO else ""
    dashes = DASHES[position % len(DASHES)] or (None, None)
    if any(widths):
        low = [mean - width for mean, width in zip(means, widths, strict=True)]
        high = [mean + width for mean, width in zip(means, widths, strict=True)]
        axes.fill_between(places, low, high, color=colour, alpha=_SHADE, linewidth=0)
    axes.plot(
        places, means, color=colour, dashes=dashes, marker=marker, markersize=5, markeredgecolor=palette.ink,
        markeredgewidth=0.7, linewidth=1.7, label=label, zorder=3,
    )  # fmt: skip


def _draw_chance(axes: Axes, chance: float | None, position: int, palette: Palette) -> None:
    if chance is not None:
        colour = palette.series[position % len(palette.series)]
        axes.axhline(100 * chance, color=colour, linewidth=1.2, dashes=(1, 2))


def _finish(axes: Axes, places: Sequence[int], across: str, up: str, *, from_zero: bool = True) -> None:
    first, last = min(places), max(places)
    step = max(1, -(-(last - first + 1) // _MOST_TICKS))
    axes.set_xticks(range(first, last + 1, step))
    axes.set_xlim(first - 0.3, last + 0.3)
    if from_zero:
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.0) * _ROOM_ABOVE)
    axes.tick_params(axis="both", length=0, pad=5)
    axes.grid(visible=True)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
