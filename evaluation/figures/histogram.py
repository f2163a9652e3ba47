"""Histogram of a per-utterance measure by group: one row for each group, on common axes.

Draws a `Distribution` from `evaluation.metrics.summary`, whose bins are the rows of the table
beside the figure. Groups have a row each, so they are told apart without colour.

Conventions: bars are shares of the utterances of their group in percent, on a scale from 0 to 40 that does not follow
the data, so that figures of different sets can be compared; where a share is higher the scale goes to 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.figures.style import ImageFormat, Palette, Size, Theme, drawing, render
from evaluation.metrics.catalogue import PITCH_CORRELATION
from evaluation.metrics.pitch import MINIMUM_OF_2022
from evaluation.metrics.summary import Distribution, Summary, distribute

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Narrow, so that the text stays readable when the figure shrinks to the width of a phone.
WIDTH_INCHES = 4.2
ROW_INCHES = 1.3
SCALES_PERCENT = (40, 100)
_MEAN_MARK = "▼"  # text, so that it reads the same in the heading of a row


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value that a mean should exceed, drawn as a line through all rows."""

    value: float
    label: str


MINIMUM_PITCH_CORRELATION = Threshold(MINIMUM_OF_2022, "2022 minimum")


def pitch_histogram(
    rho_by_group: Mapping[str, Iterable[float]],
    *,
    threshold: Threshold | None = MINIMUM_PITCH_CORRELATION,
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
) -> bytes:
    """Histogram of the pitch correlation by gender (or any other grouping).

    Args:
        rho_by_group: pitch correlations of utterances, in [-1, 1], by the label of their group.
        threshold: what an edition asks of the mean; None where it asks nothing.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.

    Raises:
        MetricInputError: no value at all, or one that is not finite.
    """
    return draw_histogram(
        distribute(rho_by_group),
        axis_label=PITCH_CORRELATION.label,
        threshold=threshold,
        decimals=PITCH_CORRELATION.decimals,
        theme=theme,
        image_format=image_format,
    )


def draw_histogram(
    distribution: Distribution,
    *,
    axis_label: str,
    threshold: Threshold | None = None,
    decimals: int = 3,
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
) -> bytes:
    """Draw a distribution: bars by group, a mark over each mean, a dashed line at the threshold.

    Args:
        distribution: what to draw, from `evaluation.metrics.summary.distribute`.
        axis_label: what was measured, with its unit.
        threshold: drawn through all rows; None for no line.
        decimals: of the means, as in the table beside the figure.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.
    """
    with drawing(theme) as palette:
        from matplotlib.figure import Figure

        rows = len(distribution.groups)
        figure = Figure(figsize=size_of(rows).inches, layout="constrained")
        all_axes = figure.subplots(rows, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for row, axes in enumerate(all_axes):
            _draw_group(axes, distribution, row, palette)
            heading = _numbers(distribution.summaries[row], decimals, mark=_MEAN_MARK + " ")
            axes.set_title(heading, loc="right", fontsize=10, color=palette.muted)
            if threshold is not None:
                axes.axvline(threshold.value, color=palette.warning, linewidth=1.1, dashes=(4, 3))
        if threshold is not None:
            _label_threshold(all_axes[0], threshold, palette)
        _scale(all_axes[0], distribution)
        all_axes[-1].set_xlabel(axis_label)
        figure.supylabel("Share of utterances, %", fontsize=10)
        return render(
            figure,
            image_format,
            title=f"Histogram of {axis_label}",
            description=describe(distribution, threshold, decimals),
        )


def size_of(groups: int) -> Size:
    """Of a histogram with so many groups."""
    return Size(WIDTH_INCHES, 0.85 + ROW_INCHES * groups)


def describe(distribution: Distribution, threshold: Threshold | None = None, decimals: int = 3) -> str:
    """The histogram in words, for those who cannot see it."""
    sentences = [
        f"{group}: {_numbers(summary, decimals)}, standard deviation {summary.std:.{decimals}f}."
        for group, summary in zip(distribution.groups, distribution.summaries, strict=True)
    ]
    if threshold is not None:
        sentences.append(f"Dashed line: {threshold.label}, {threshold.value:g}.")
    return " ".join(sentences)


def _draw_group(axes: Axes, distribution: Distribution, row: int, palette: Palette) -> None:
    summary = distribution.summaries[row]
    lower = [each.lower for each in distribution.bins]
    shares = _shares(distribution, row)
    width = distribution.bins[0].upper - distribution.bins[0].lower
    colour = palette.series[row % len(palette.series)]
    axes.bar([edge + 0.04 * width for edge in lower], shares, 0.92 * width, align="edge", color=colour)
    near = [share for edge, share in zip(lower, shares, strict=True) if -1.5 < (edge - summary.mean) / width < 0.5]
    axes.annotate(
        _MEAN_MARK,
        (summary.mean, max(near, default=0)),
        xytext=(0, 1),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=palette.ink,
    )
    axes.set_title(distribution.groups[row], loc="left", fontsize=10.5, fontweight="bold")
    axes.set_xlim(lower[0], distribution.bins[-1].upper)
    axes.grid(axis="y")
    axes.tick_params(axis="both", length=0, pad=5)
    axes.spines["left"].set_visible(False)


def _shares(distribution: Distribution, row: int) -> list[float]:
    """Of each bin, in percent of the utterances of the group."""
    return [100 * each.counts[row] / distribution.summaries[row].n for each in distribution.bins]


def _scale(axes: Axes, distribution: Distribution) -> None:
    """The same scale whatever the figure shows, with room above it for the mark of a mean."""
    highest = max(max(_shares(distribution, row)) for row in range(len(distribution.groups)))
    top = next(scale for scale in SCALES_PERCENT if highest <= scale)
    axes.set_ylim(0, 1.16 * top)
    axes.set_yticks([0, top // 2, top])


def _label_threshold(axes: Axes, threshold: Threshold, palette: Palette) -> None:
    axes.annotate(
        threshold.label,
        (threshold.value, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-4, -1),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=9.5,
        color=palette.warning,
    )


def _numbers(summary: Summary, decimals: int, mark: str = "") -> str:
    return f"n = {summary.n}, {mark}mean {summary.mean:.{decimals}f}"
