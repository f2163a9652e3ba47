"""Histograms on common axes: a panel for each group, its share of values in each bin.

`make_pitch_plot` shows a `Distribution` from `evaluation.metrics.averages`, whose bins are the rows of the table beside
the figure; `HistogramPlot` is the figure itself, with a second series as a line where there is one to compare. Groups
have a panel each and series are filled or a line, so that they differ without colour, too.

Conventions: bars are shares of the values of their group in per cent. Those of a distribution are on a scale from 0 to
40 that does not follow the data, so that figures of different sets can be compared; where a share is higher the scale
goes to 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.rounding import fixed
from evaluation.figures.row_plots import set_value_axis
from evaluation.figures.style import SMALL, TEXT, Look, Palette, Size, draw_limit
from evaluation.metrics.averages import Distribution, Summary, distribute
from evaluation.metrics.catalogue import PITCH_CORRELATION
from evaluation.metrics.pitch import MINIMUM_OF_2022

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Bin = tuple[float, float, float]  # lower and upper edge, share in per cent

# Narrow, so that the text stays readable when the figure shrinks to the width of a phone.
WIDTH_INCHES = 4.4
SCALES_PERCENT = (40, 100)
_MEAN_MARK = "▼"  # text, so that it reads the same in the heading of a row


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value that a mean should exceed, drawn as a line through all rows."""

    value: float
    label: str


MINIMUM_PITCH_CORRELATION = Threshold(MINIMUM_OF_2022, "2022 minimum")


@dataclass(frozen=True, slots=True)
class HistogramPanel:
    """The bins of a group, ascending.

    Attributes:
        note: beside the name.
        filled: as an area.
        line: as an outline.
        mean: gets a mark.
        colour: place in the palette's series.
    """

    name: str
    note: str
    filled: Sequence[Bin]
    line: Sequence[Bin] = ()
    mean: float | None = None
    colour: int = 0
    is_bold: bool = False


@dataclass(frozen=True, slots=True)
class HistogramPlot:
    """Panels in columns on common axes.

    Attributes:
        limits: of the axis of values; bins may lie beyond.
        top_percent: where panels end; what is higher is cut and named.
        filled_words, line_words: in the key.
    """

    panels: Sequence[HistogramPanel]
    limits: tuple[float, float]
    top_percent: int
    axis: str
    share_axis: str = ""
    filled_words: str = ""
    line_words: str = ""
    threshold: Threshold | None = None
    columns: int = 1
    panel_inches: float = 1.3

    @property
    def size(self) -> Size:
        rows = -(-len(self.panels) // self.columns)
        return Size(WIDTH_INCHES, round(0.75 + (0.2 if self.filled_words else 0) + rows * self.panel_inches, 2))

    @property
    def has_long_heads(self) -> bool:
        """Return whether the names and notes of panels are written in two lines."""
        return max(len(panel.name) + len(panel.note) for panel in self.panels) > 44 // self.columns

    def paint(self, figure: Figure, palette: Palette) -> None:
        rows = -(-len(self.panels) // self.columns)
        all_axes = list(figure.subplots(rows, self.columns, sharex=True, sharey=True, squeeze=False).flat)
        edges = [
            edge for panel in self.panels for bins in (panel.filled, panel.line) for one in bins for edge in one[:2]
        ]
        set_value_axis(all_axes[0], self.limits, "", most=10 if self.columns == 1 else 7 - self.columns)
        all_axes[0].set(xlim=(min(edges), max(edges)), ylim=(0, 1.08 * self.top_percent))
        top = self.top_percent
        all_axes[0].set_yticks([0, top / 2, top], ["0", f"{top / 2:g}", str(top) if self.share_axis else f"{top} %"])
        for axes, panel in zip(all_axes, self.panels, strict=False):
            self._draw_panel(axes, panel, palette)
        for place, axes in enumerate(all_axes[len(self.panels) :], start=len(self.panels)):
            all_axes[place - self.columns].tick_params(labelbottom=True)
            axes.remove()
        if self.threshold:
            draw_limit(all_axes[0], self.threshold.value, palette)
            look: Look = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "xytext": (-4, -1)}
            look |= {"ha": "right", "va": "top", "color": palette.warning}
            all_axes[0].annotate(self.threshold.label, (self.threshold.value, 1), **look)
        if self.filled_words:
            all_axes[0].fill_between([], [], color=palette.series[0], alpha=0.75, label=self.filled_words)
            all_axes[0].plot([], [], color=palette.ink, linewidth=1.3, label=self.line_words)
        figure.supxlabel(self.axis, fontsize=TEXT)
        if self.share_axis:
            figure.supylabel(self.share_axis, fontsize=TEXT)

    def _draw_panel(self, axes: Axes, panel: HistogramPanel, palette: Palette) -> None:
        if panel.filled:
            fill: Look = {"facecolor": palette.series[panel.colour], "alpha": 0.75, "linewidth": 0}
            axes.stairs(*_split(panel.filled), fill=True, **fill)
        if panel.line:
            axes.stairs(*_split(panel.line), color=palette.ink, linewidth=1.3, baseline=0)
        for low, high, share in (*panel.filled, *panel.line):
            if share > 1.08 * self.top_percent:
                is_left = high < sum(axes.get_xlim()) / 2
                place, side = (high, "left") if is_left else (low, "right")
                look: Look = {"ha": side, "va": "center", "fontsize": SMALL, "color": palette.muted}
                axes.text(place, 0.86 * self.top_percent, f" ▲ {share:.0f} % ", **look)
        if panel.mean is not None:
            width = panel.filled[0][1] - panel.filled[0][0]
            near = [share for low, _, share in panel.filled if -1.5 < (low - panel.mean) / width < 0.5]
            axes.text(panel.mean, max(near, default=0), _MEAN_MARK, ha="center", va="bottom", clip_on=False)
        if self.threshold:
            draw_limit(axes, self.threshold.value, palette)
        weight = "bold" if panel.is_bold else "normal"
        axes.set_title(panel.name + "\n" * self.has_long_heads, fontsize=TEXT, fontweight=weight)
        axes.set_title(panel.note, loc="right", fontsize=TEXT, color=palette.muted)
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)


def make_pitch_plot(
    rho_by_group: Mapping[str, Iterable[float]], threshold: Threshold | None
) -> tuple[HistogramPlot, dict[str, str]]:
    """Histogram of the pitch correlation by gender (or any other grouping), with its title and description.

    Args:
        rho_by_group: pitch correlations of utterances, in [-1, 1], by the label of their group.
        threshold: what an edition asks of the mean; None where it asks nothing.

    Raises:
        InputError: no value at all, or one that is not finite.
    """
    distribution, decimals = distribute(rho_by_group), PITCH_CORRELATION.decimals
    panels = []
    for row, (group, summary) in enumerate(zip(distribution.groups, distribution.summaries, strict=True)):
        bins = [(each.lower, each.upper, 100 * each.counts[row] / summary.n) for each in distribution.bins]
        note = _numbers(summary, decimals, mark=_MEAN_MARK + " ")
        panels.append(HistogramPanel(group, note, bins, mean=summary.mean, colour=row % 4, is_bold=True))
    highest = max(share for panel in panels for *_, share in panel.filled)
    plot = HistogramPlot(
        panels,
        (distribution.bins[0].lower, distribution.bins[-1].upper),
        next(scale for scale in SCALES_PERCENT if highest <= scale),
        PITCH_CORRELATION.label,
        "Share of utterances, %",
        threshold=threshold,
    )
    return plot, {
        "title": f"Histogram of {PITCH_CORRELATION.label}",
        "description": describe(distribution, threshold, decimals),
    }


def size_of(groups: int) -> Size:
    """Of a histogram with so many groups."""
    return Size(WIDTH_INCHES, round(0.75 + 1.3 * groups, 2))


def describe(distribution: Distribution, threshold: Threshold | None = None, decimals: int = 3) -> str:
    """Return the histogram in words, for those who cannot see it."""
    sentences = [
        f"{group}: {_numbers(summary, decimals)}, standard deviation {fixed(summary.std, decimals)}."
        for group, summary in zip(distribution.groups, distribution.summaries, strict=True)
    ]
    if threshold is not None:
        sentences.append(f"Dashed line: {threshold.label}, {threshold.value:g}.")
    return " ".join(sentences)


def _split(bins: Sequence[Bin]) -> tuple[list[float], list[float]]:
    """Return shares and edges, as matplotlib has them."""
    return [share for *_, share in bins], [bins[0][0], *(high for _, high, _ in bins)]


def _numbers(summary: Summary, decimals: int, mark: str = "") -> str:
    return f"n = {summary.n}, {mark}mean {fixed(summary.mean, decimals)}"
