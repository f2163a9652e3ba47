"""DET figures: miss rate against false alarm rate on probit axes, equal error rates marked on the diagonal.

`draw_det` draws tests of an attacker; `DetPlot` is the figure itself, of listeners too. Up to `MOST_IN_ONE` curves
share one panel; more are spread over panels, before all others in grey, so that each can be found. Curves are told
apart by colour, dashes and marker together. The dotted diagonal holds equal rates, the dashed one is an attacker who
guesses; the region of at most 1 % false alarms is shaded.

Conventions: the polygon of the operating points is straight in rates, so it bends on probit axes; dots are operating
points where they are few. Rates are clipped where the trials end.
Source: Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from common.arrays import Floats
from common.errors import InputError
from common.rounding import fixed
from common.tables import DataTable, Value
from evaluation.figures import style
from evaluation.metrics.catalogue import MIN_CLLR, Metric, find_metric
from evaluation.metrics.detection import DetectionMetrics, Estimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


TITLE = "DET curves"
ATTACKER_AXES = ("False alarms: other speakers accepted, %", "Misses: same speaker rejected, %")
MOST_CURVES = 8
LOW_PERCENT = 1.0  # false alarms that are shaded
MOST_IN_ONE = 6
WIDTH_INCHES = 4.4
# Of a good attacker, and of one who is no better than a guess.
TICKS_PERCENT = (0.01, 0.05, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 40, 60)
WIDE_TICKS_PERCENT = (0.01, 0.1, 1, 5, 20, 50, 80, 95, 99, 99.9, 99.99)
_IN_A_PANEL = 5
_MOST_LINES = 16  # of grey curves; more are drawn as the area that they fill
_FEW_POINTS = 16
_BETWEEN = 12  # points along a segment of a coarse curve
_STEPS = {1: 1 / 150, 2: 1 / 40}  # in probits, by columns of panels: less than a point of print
_NEAR_CHANCE = 0.15
_LOWEST_SHOWN = 0.1  # per cent
_LONGEST_LABEL = 30
# Ends of the axes of systems' curves by what the trials can show, in per cent; fewer ticks where panels are small.
_SYSTEM_TICKS = (0.1, 0.5, 2, 5, 10, 20, 50, 80, 90, 95, 98, 99.5, 99.9)
_SMALL_TICKS = {0.1: (0.1, 2.0, 20.0, 50.0, 80.0, 98.0, 99.9), 0.5: (0.5, 5.0, 20.0, 50.0, 80.0, 95.0, 99.5)}
_CSV_COLUMNS = ("label", "point", "threshold", "false_alarm_rate", "miss_rate")


@dataclass(frozen=True, slots=True)
class Curve:
    """A DET curve.

    Attributes:
        words: in the key.
        miss_rate, false_alarm_rate: of each operating point, shares, from the lowest threshold to the highest.
        eer: a share, None where there is none.
        least: smallest rates that are drawn, of misses and of false alarms, such as 1 / (2 N).
        is_anchor: what others are compared with, such as original speech.
        place: of its system among colours, markers and dashes (`style.place_systems`); None for its place in the panel.
        told: what hovering over it tells; empty for its words.
        link: where it leads in a page (`style.mark_artist`).
    """

    words: str
    miss_rate: Floats
    false_alarm_rate: Floats
    eer: float | None
    least: tuple[float, float] = (1e-7, 1e-7)
    is_anchor: bool = False
    place: int | None = None
    told: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class DetPlot:
    """Curves of each panel by their places in `curves`, others in grey behind them.

    Attributes:
        ticks_percent: of both axes; they end at the outermost.
        axis_words: along and up.
        heads: of the panels.
        grey_words, chance_words: in the key.
        low_percent: false alarms up to here are shaded, the region where a few people are found with certainty.
    """

    curves: Sequence[Curve]
    panels: Sequence[Sequence[int]]
    ticks_percent: Sequence[float]
    axis_words: tuple[str, str]
    grey: Sequence[int] = ()
    heads: Sequence[str] = ()
    grey_words: str = "others"
    chance_words: str = "chance"
    low_percent: float = 0.0

    @property
    def columns(self) -> int:
        return 1 if len(self.panels) == 1 else 2

    @property
    def size(self) -> style.Size:
        entries = max(map(len, self.panels))
        if self.columns == 1:
            lines = sum(1 + one.words.count("\n") for one in map(self.curves.__getitem__, self.panels[0]))
            return style.Size(WIDTH_INCHES, round(4.55 + 0.21 * lines, 2))
        return style.Size(WIDTH_INCHES, round(0.75 + (2.0 + 0.2 * entries) * -(-len(self.panels) // 2), 2))

    def paint(self, figure: Figure, palette: style.Palette) -> None:
        rows = -(-len(self.panels) // self.columns)
        all_axes = figure.subplots(rows, self.columns, squeeze=False, sharex=True, sharey=True).flat
        behind = {place: _thin_out(self.curves[place], _STEPS[2]) for place in self.grey}
        for number, (axes, panel) in enumerate(zip(all_axes, self.panels, strict=False)):
            self._draw_frame(axes, palette)
            _draw_grey(axes, [line for place, line in behind.items() if place not in panel], palette)
            if self.heads:
                axes.set_title(self.heads[number], fontsize=style.SMALL, color=palette.muted)
            self._draw_panel(axes, panel, palette)
        frame = figure.axes[0]
        frame.plot([], [], color=palette.muted, linewidth=1.1, dashes=(5, 3), label=self.chance_words)
        frame.plot([], [], color=palette.line, dashes=(1, 2), label="equal rates")
        if self.low_percent > self.ticks_percent[0]:
            label = f"at most {self.low_percent:g} % false alarms"
            frame.fill_between([], [], color=palette.line, alpha=0.3, linewidth=0, label=label)
        if self.grey:
            frame.fill_between([], [], color=palette.line, alpha=0.4, label=self.grey_words)
        along, up = self.axis_words
        if self.columns == 1:
            frame.set(xlabel=along, ylabel=up)
        else:
            figure.supxlabel(along, fontsize=style.TEXT)
            figure.supylabel(up, fontsize=style.TEXT)

    def _draw_frame(self, axes: Axes, palette: style.Palette) -> None:
        """Square probit axes with the diagonal of equal rates and that of chance."""
        places = to_probit(np.array(self.ticks_percent) / 100)
        limits = np.array([places[0] - 0.1, places[-1] + 0.1])
        axes.plot(limits, limits, color=palette.line, linewidth=1.0, dashes=(1, 2), zorder=1)
        axes.plot(limits, -limits, color=palette.muted, linewidth=1.1, dashes=(5, 3), zorder=1)
        if self.low_percent > self.ticks_percent[0]:
            low = to_probit(np.array([self.low_percent / 100]))[0]
            axes.axvspan(limits[0], low, color=palette.line, alpha=0.3, linewidth=0, zorder=0)
        names = [f"{tick:g}" for tick in self.ticks_percent]
        axes.set(xlim=limits, ylim=limits, box_aspect=1)
        axes.set_yticks(places, names)
        if (
            self.ticks_percent[0] < 0.1 and self.ticks_percent[-1] > 99
        ):  # labels beside those of the ends would touch them
            names[1] = names[-2] = ""
        axes.set_xticks(places, names)
        axes.tick_params(axis="x", labelbottom=True)
        axes.grid(visible=True)

    def _draw_panel(self, axes: Axes, panel: Sequence[int], palette: style.Palette) -> None:
        """Its curves with their key beneath."""
        handles: list[Any] = []
        others = 0
        for curve in (self.curves[place] for place in panel):
            handles += _draw_curve(axes, curve, others, _STEPS[self.columns], palette)
            others += not curve.is_anchor
        look: style.Look = {"handles": handles, "labels": [self.curves[place].words for place in panel]}
        if self.columns > 1:
            axes.legend(loc="upper left", bbox_to_anchor=(-0.08, -0.12), **look)
        elif figure := axes.get_figure(root=True):
            style.fit_legend(figure, loc="outside lower left", **look)


def draw_det(
    tests: Mapping[str, DetectionMetrics],
    *,
    estimator: Estimator = "kaldi",
    theme: style.Theme = "light",
    image_format: style.ImageFormat = "svg",
) -> bytes:
    """Draw the DET curves of one to eight tests.

    Args:
        tests: label of each test, such as its system or attack model, and its metrics.
        estimator: whose equal error rate is marked and named.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.

    Raises:
        InputError: no test, more than eight, or an unknown estimator.
    """
    plot = make_det_plot(tests, estimator)
    description = describe(tests, estimator=estimator)
    return style.draw_plot(plot, title=TITLE, description=description, theme=theme, image_format=image_format)


def make_det_plot(tests: Mapping[str, DetectionMetrics], estimator: Estimator = "kaldi") -> DetPlot:
    """The figure of `draw_det` before it is drawn.

    Raises:
        InputError: as `draw_det`.
    """
    _validate(tests, estimator)
    curves = []
    for label, test in tests.items():
        rate, corners = _select_eer(test, estimator), test.det.corners()
        break_ = "\n" if len(label) > _LONGEST_LABEL else " "
        words = f"{label}:{break_}EER {fixed(100 * rate, 1)} %, {MIN_CLLR.label} {fixed(test.min_cllr, 3)}"
        words += ", in the corner" if not rate else ""
        curves.append(Curve(words, corners.miss_rate, corners.false_alarm_rate, rate, link=label))
    return DetPlot(
        curves,
        [range(len(curves))],
        _choose_ticks(tests, [one.eer or 0.0 for one in curves]),
        ATTACKER_AXES,
        chance_words="chance: an attacker who guesses",
        low_percent=LOW_PERCENT,
    )


def size_of(tests: int) -> style.Size:
    """Of a figure with so many curves whose labels are short."""
    return style.Size(WIDTH_INCHES, round(4.55 + 0.21 * tests, 2))


def det_numbers(tests: Mapping[str, DetectionMetrics], *, estimator: Estimator = "kaldi") -> DataTable:
    """Return the points of the curves, every corner of each, and its equal error rate, as shares.

    Raises:
        InputError: as `draw_det`.
    """
    eer = _validate(tests, estimator)
    rows: list[tuple[Value, ...]] = []
    for label, test in tests.items():
        rate = _select_eer(test, estimator)
        threshold = {"kaldi": test.kaldi_threshold, "speechbrain": test.speechbrain_threshold}.get(estimator)
        rows.append((label, eer.key, threshold, rate, rate))
        corners = test.det.corners()
        columns = (corners.thresholds.tolist(), corners.false_alarm_rate.tolist(), corners.miss_rate.tolist())
        rows += [(label, "curve", *point) for point in zip(*columns, strict=True)]
    return DataTable(_CSV_COLUMNS, tuple(rows))


def describe(tests: Mapping[str, DetectionMetrics], *, estimator: Estimator = "kaldi") -> str:
    """Return the curves in words, for those who cannot see them."""
    eer = _validate(tests, estimator)
    return " ".join(
        f"{label}: {eer.label} {fixed(100 * _select_eer(test, estimator), eer.decimals)} %, "
        f"{MIN_CLLR.label} {fixed(test.min_cllr, 3)} bit, "
        f"{test.n_target} target and {test.n_nontarget} nontarget trials."
        for label, test in tests.items()
    )


def spread_curves(count: int) -> list[list[int]]:
    """So many curves in panels as equally full as can be."""
    if count <= MOST_IN_ONE:
        return [list(range(count))]
    panels = 2 * -(-count // (2 * _IN_A_PANEL))  # two in a row
    ends = [round(count * panel / panels) for panel in range(panels + 1)]
    return [list(range(start, end)) for start, end in pairwise(ends)]


def spread_systems(curves: Sequence[Curve]) -> tuple[list[list[int]], list[int], list[str]]:
    """Return the panels of curves of systems, what stands in grey behind them, and their heads.

    Anchors stand in each panel; one panel alone needs neither grey curves nor a head.
    """
    anchors = [place for place, curve in enumerate(curves) if curve.is_anchor]
    systems = [place for place, curve in enumerate(curves) if not curve.is_anchor]
    spread = spread_curves(len(systems)) if systems else [[]]
    panels = [[*anchors, *(systems[place] for place in panel)] for panel in spread]
    if len(panels) == 1:
        return panels, [], []
    ends = [0, *accumulate(map(len, spread))]
    return panels, systems, [f"{start + 1} to {end} of {len(systems)}" for start, end in pairwise(ends)]


def plot_curves(
    curves: Sequence[Curve],
    axis_words: tuple[str, str],
    panels: Sequence[Sequence[int]],
    grey: Sequence[int] = (),
    heads: Sequence[str] = (),
    grey_words: str = "the other systems",
) -> DetPlot:
    """Return a plot of curves whose axes end where the smaller class of most curves ends."""
    finest = 100 * float(np.median([max(curve.least) for curve in curves]))
    low = 0.1 if finest < 0.4 else 0.5
    ticks = [tick for tick in (_SYSTEM_TICKS if len(panels) == 1 else _SMALL_TICKS[low]) if low <= tick <= 100 - low]
    return DetPlot(curves, panels, ticks, axis_words, grey, heads, grey_words)


def to_probit(rates: Floats) -> Floats:
    """Normal quantiles of shares; rates of 0 and 1 lie outside of every axis."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(rates, 1e-7, 1 - 1e-7)), dtype=np.float64)


def _validate(tests: Mapping[str, DetectionMetrics], estimator: str) -> Metric:
    if not 1 <= len(tests) <= MOST_CURVES:
        raise InputError(f"Expected 1 to {MOST_CURVES} tests in a DET figure, found {len(tests)}.")
    if estimator not in ("kaldi", "rocch", "speechbrain"):
        raise InputError(f"Expected the estimator kaldi, rocch or speechbrain, found {estimator!r}.")
    return find_metric("eer", estimator)


def _select_eer(test: DetectionMetrics, estimator: Estimator) -> float:
    """Return the equal error rate of an estimator, a share."""
    return {"kaldi": test.kaldi_eer, "rocch": test.rocch_eer, "speechbrain": test.speechbrain_eer}[estimator]


def _choose_ticks(tests: Mapping[str, DetectionMetrics], rates: list[float]) -> list[float]:
    """Ticks of both axes, from a tenth of the lowest rate or a single trial up to what the curves need."""
    finest = min(50 / max(test.n_target, test.n_nontarget) for test in tests.values())
    wide = max(rates) > _NEAR_CHANCE
    ticks = WIDE_TICKS_PERCENT if wide else TICKS_PERCENT
    low = max([tick for tick in ticks if tick <= max(finest, 10 * min(rates))], default=ticks[0])
    low = min(low, 5.0 if wide else 1.0)
    if finest <= _LOWEST_SHOWN:  # so many trials show the shaded region
        low = min(low, 0.1 if wide else 0.2)
    return [tick for tick in ticks if tick >= low and (not wide or tick <= 100 - low + 1e-9)]


def _draw_curve(axes: Axes, curve: Curve, position: int, step: float, palette: style.Palette) -> list[Any]:
    """Draw it, and return what stands for it in a key. `position`: among those that are no anchor."""
    place = position if curve.place is None else curve.place
    if curve.is_anchor:
        line: style.Look = {"color": palette.ink, "linewidth": 1.8}
    else:
        dashes = style.DASHES[(place + place // len(palette.series)) % len(style.DASHES)]
        line = {"color": palette.series[place % len(palette.series)], "linewidth": 1.7}
        line |= {"dashes": dashes} if dashes else {}
    # Smaller and smaller, so that those on one point are all seen.
    marker: style.Look = {
        "marker": "h" if curve.is_anchor else style.MARKERS[place % len(style.MARKERS)],
        "markersize": 8 - 0.5 * position,
    }
    marker |= {"markeredgecolor": palette.ink, "markeredgewidth": 0.8}
    points = _thin_out(curve, step)
    told = curve.told or " ".join(curve.words.split())
    axes.plot(*points, zorder=3, **line)
    # As wide as a finger, and seen by nobody.
    [band] = axes.plot(*points, color=palette.ink, linewidth=9, alpha=0, zorder=5)
    style.mark_artist(band, told, curve.link)
    if curve.miss_rate.size <= _FEW_POINTS:
        axes.plot(*_clip_ends(curve), "o", color=line["color"], markersize=2.6, markeredgewidth=0, zorder=3.2)
    if curve.eer is not None:
        at = to_probit(np.array([np.clip(curve.eer, min(curve.least), 1 - min(curve.least))]))
        at = np.maximum(at, axes.get_xlim()[0])  # an attacker without an error stands in the corner
        [point] = axes.plot(at, at, color=line["color"], zorder=6, linestyle="none", clip_on=False, **marker)
        style.mark_artist(point, told, curve.link)
    return axes.plot([], [], **line, **marker)


def _draw_grey(axes: Axes, lines: Sequence[tuple[Floats, Floats]], palette: style.Palette) -> None:
    """Others behind: lines, or the area between the lowest and the highest of many."""
    if len(lines) <= _MOST_LINES:
        for x, y in lines:
            axes.plot(x, y, color=palette.line, alpha=0.4, linewidth=0.9, zorder=2)
        return
    grid = np.linspace(*axes.get_xlim(), 200)
    orders = [np.argsort(x, kind="stable") for x, _ in lines]
    heights = np.stack([np.interp(grid, x[order], y[order]) for (x, y), order in zip(lines, orders, strict=True)])
    look: style.Look = {"color": palette.line, "alpha": 0.25, "linewidth": 0, "zorder": 1.5}
    axes.fill_between(grid, heights.min(axis=0), heights.max(axis=0), **look)


def _clip_ends(curve: Curve) -> tuple[Floats, Floats]:
    """Return the operating points in probits, none beyond what the trials can show: the first one of each end is the
    last."""
    least_miss, least_false_alarm = curve.least
    begin = int(np.searchsorted(curve.miss_rate, least_miss, side="right")) - 1
    end = int(np.searchsorted(-curve.false_alarm_rate, -least_false_alarm)) + 1
    used = slice(max(begin, 0), max(end, begin + 2))
    return (
        to_probit(np.clip(curve.false_alarm_rate[used], least_false_alarm, 1 - least_false_alarm)),
        to_probit(np.clip(curve.miss_rate[used], least_miss, 1 - least_miss)),
    )


def _thin_out(curve: Curve, step: float) -> tuple[Floats, Floats]:
    """Return the polygon in probits: coarse ones with points along their segments, fine ones no finer than an eye can
    tell."""
    false_alarm, miss = curve.false_alarm_rate, curve.miss_rate
    if 1 < miss.size <= 8 * _FEW_POINTS:
        along = np.linspace(0, miss.size - 1, _BETWEEN * (miss.size - 1) + 1)
        places = np.arange(miss.size)
        false_alarm, miss = np.interp(along, places, false_alarm), np.interp(along, places, miss)
    x, y = _clip_ends(Curve(curve.words, miss, false_alarm, curve.eer, curve.least))
    cells = np.round(np.stack([x, y]) / step)
    kept = np.append(True, (np.diff(cells) != 0).any(axis=0))
    return x[kept], y[kept]
