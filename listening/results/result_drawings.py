"""Small drawings that stand in a page itself: coordinates for SVG, so that colours follow the page and nothing is drawn
by a library. Widths and heights are in units of the view box; rates are shares in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from listening.results.result_words import percent

STRIP_WIDTH, STRIP_HEIGHT = 132, 14
MARGIN = 6
PLOT = 320  # side of the field of a DET curve
LEFT, BOTTOM, TOP, RIGHT = 46, 40, 10, 14
LOWEST = 0.01  # of the probit axes
TICKS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98)
BAR_WIDTH, BAR_HEIGHT = 300, 120
MOST_POINTS = 120  # of a curve
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Curve:
    """`points` as SVG takes them. `role`: own, original or other."""

    name: str
    role: str
    points: str


@dataclass(frozen=True, slots=True)
class DetPlot:
    """DET curves on probit axes. `read`: of the own curve, x, y and what to say there, for the read-out."""

    curves: tuple[Curve, ...]
    ticks: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    read: tuple[tuple[float, float, str], ...]
    width: int = LEFT + PLOT + RIGHT
    height: int = TOP + PLOT + BOTTOM
    left: int = LEFT
    right: int = LEFT + PLOT
    top: int = TOP
    bottom: int = TOP + PLOT
    side: int = PLOT
    centre: int = LEFT + PLOT // 2
    middle: int = TOP + PLOT // 2


@dataclass(frozen=True, slots=True)
class Histogram:
    """Shares of ratings as outlines over bins. `series`: name, role, path; `said`: the same in words."""

    title: str
    said: str
    series: tuple[tuple[str, str, str], ...]
    ticks: tuple[Tick, ...]
    most: str
    width: int = BAR_WIDTH + 2 * MARGIN
    height: int = BAR_HEIGHT + 30
    floor: int = BAR_HEIGHT + 8


def strip_html(
    value: float | None, low: float | None, high: float | None, scale: Sequence[float], reference: float | None = None
) -> SafeString:  # fmt: skip
    """A point with its interval on a scale, and a reference as a line: beside numbers that say the same."""
    if value is None:
        return mark_safe("")

    def place(number: float) -> str:
        share = min(1.0, max(0.0, (number - scale[0]) / (scale[1] - scale[0])))
        return f"{MARGIN + share * (STRIP_WIDTH - 2 * MARGIN):.1f}"

    middle = STRIP_HEIGHT / 2
    parts = [
        f'<svg class="strip-plot" viewBox="0 0 {STRIP_WIDTH} {STRIP_HEIGHT}" width="{STRIP_WIDTH}" '
        f'height="{STRIP_HEIGHT}" aria-hidden="true">'
        f'<line class="axis" x1="{MARGIN}" x2="{STRIP_WIDTH - MARGIN}" y1="{middle}" y2="{middle}"/>'
    ]
    if reference is not None:
        at = place(reference)
        parts.append(f'<line class="reference" x1="{at}" x2="{at}" y1="0" y2="{STRIP_HEIGHT}"/>')
    if low is not None and high is not None:
        parts.append(f'<line class="interval" x1="{place(low)}" x2="{place(high)}" y1="{middle}" y2="{middle}"/>')
    parts.append(f'<circle cx="{place(value)}" cy="{middle}" r="4"/></svg>')
    return mark_safe("".join(parts))  # noqa: S308 - numbers only


Points = Sequence[tuple[float, float, float | None]]


def det_plot(own: Points, others: Iterable[tuple[str, str, Points]], digits: int) -> DetPlot:
    """Curves of (miss rate, false alarm rate, threshold); others as (name, role, points) are drawn first."""
    curves = [Curve(escape(name), role, _polyline(points)) for name, role, points in others]
    curves.append(Curve("", "own", _polyline(own)))
    read = tuple((_x(alarm), _y(miss), _said(miss, alarm, threshold, digits)) for miss, alarm, threshold in own)
    columns = tuple(Tick(_x(rate), f"{100 * rate:g}") for rate in TICKS)
    return DetPlot(tuple(curves), columns, tuple(Tick(_y(rate), f"{100 * rate:g}") for rate in TICKS), read)


def histogram(title: str, series: Iterable[tuple[str, str, Sequence[tuple[float, float, float]]]]) -> Histogram | None:
    """Outlines of (name, role, bins of lower edge, upper edge and share); None without any bin."""
    found = [(name, role, bins) for name, role, bins in series if bins]
    if not found:
        return None
    edges = sorted({edge for _, _, bins in found for low, high, _ in bins for edge in (low, high)})
    first, last = edges[0], edges[-1]
    most = max(share for _, _, bins in found for *_, share in bins) or 1.0

    def x(edge: float) -> float:
        return round(MARGIN + (edge - first) / (last - first) * BAR_WIDTH, 1)

    def path(bins: Sequence[tuple[float, float, float]]) -> str:
        floor = BAR_HEIGHT + 8
        steps = [f"M{x(bins[0][0])} {floor}"]
        for low, high, share in bins:
            y = round(floor - share / most * BAR_HEIGHT, 1)
            steps.append(f"L{x(low)} {y}L{x(high)} {y}")
        return "".join([*steps, f"L{x(bins[-1][1])} {floor}"])

    ticks = tuple(Tick(x(edge), f"{edge:g}") for edge in _few(edges))
    highest = [(name, max(bins, key=lambda one: one[2])) for name, _, bins in found]
    said = "; ".join(
        f"{name}, most from {low:g} to {high:g}, {percent(share, 0)}" for name, (low, high, share) in highest
    )
    return Histogram(
        title,
        f"{title}: {said}",
        tuple((name, role, path(bins)) for name, role, bins in found),
        ticks,
        percent(most, 0),
    )


def _few(edges: Sequence[float]) -> Sequence[float]:
    return [edges[0], edges[len(edges) // 2], edges[-1]]


def _polyline(points: Points) -> str:
    step = max(1, -(-len(points) // MOST_POINTS))
    kept = [point for place, point in enumerate(points) if place % step == 0 or place == len(points) - 1]
    return " ".join(f"{_x(alarm):.1f},{_y(miss):.1f}" for miss, alarm, _ in kept)


def _share(rate: float) -> float:
    """Where a rate lies on a probit axis, from 0 to 1."""
    edge = _NORMAL.inv_cdf(1 - LOWEST)
    return (_NORMAL.inv_cdf(min(1 - LOWEST, max(LOWEST, rate))) + edge) / (2 * edge)


def _x(false_alarm_rate: float) -> float:
    return round(LEFT + PLOT * _share(false_alarm_rate), 1)


def _y(miss_rate: float) -> float:
    return round(TOP + PLOT * (1 - _share(miss_rate)), 1)


def _said(miss: float, alarm: float, threshold: float | None, digits: int) -> str:
    where = "No score accepted" if threshold is None else f"Scores from {threshold:.{digits}f} accepted"
    return f"{where}: misses {percent(miss, 0)}, false alarms {percent(alarm, 0)}"
