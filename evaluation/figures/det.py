"""DET figure: miss rate against false alarm rate of verification tests on probit axes, equal error rates marked.

Several systems or attack models lie over each other; each has a line style and a marker of its own beside its colour.
The dotted diagonal holds equal rates, the dashed one is an attacker who guesses.
Source: Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evaluation.figures.numbers import Cell, NumberTable
from evaluation.figures.style import ImageFormat, Palette, Size, Theme, drawing, render
from evaluation.metrics.catalogue import MIN_CLLR, Metric, find_metric
from evaluation.metrics.detection import DetectionMetrics, Estimator
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.sorted_scores import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES = 4.6
MOST_CURVES = 8
MARKERS = "osD^vPX*"
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (7, 2, 1.5, 2), (1.5, 1.5))
# Of a good attacker, and of one who is no better than a guess.
TICKS_PERCENT = (0.01, 0.05, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 40, 60)
WIDE_TICKS_PERCENT = (0.01, 0.1, 1, 5, 20, 50, 80, 95, 99, 99.9, 99.99)
_NEAR_CHANCE = 0.15
_LONGEST_LABEL = 30
_PROBIT_STEP = 1 / 300  # about a tenth of a dot in print
_CSV_COLUMNS = ("label", "point", "threshold", "false_alarm_rate", "miss_rate")


def draw_det(
    tests: Mapping[str, DetectionMetrics],
    *,
    estimator: Estimator = "kaldi",
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
) -> bytes:
    """Draw the DET curves of one to eight tests.

    Args:
        tests: label of each test, such as its system or attack model, and its metrics.
        estimator: whose equal error rate is marked and named.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.

    Raises:
        MetricInputError: no test, more than eight, or an unknown estimator.
    """
    eer = _validate(tests, estimator)
    rates = {label: _rate(test, estimator) for label, test in tests.items()}
    with drawing(theme) as palette:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size_of(len(tests)).inches, layout="constrained")
        axes = figure.subplots()
        for position, (label, test) in enumerate(tests.items()):
            break_ = "\n" if len(label) > _LONGEST_LABEL else " "
            text = f"{label}:{break_}EER {100 * rates[label]:.{eer.decimals}f} %, {MIN_CLLR.label} {test.min_cllr:.3f}"
            _draw_curve(axes, test, rates[label], position, text, palette)
        _draw_axes(axes, tests, list(rates.values()), palette)
        figure.legend(loc="outside lower left", frameon=False, fontsize=9, handlelength=3.6, labelspacing=0.35)
        return render(figure, image_format, title="DET curves", description=describe(tests, estimator=estimator))


def size_of(tests: int) -> Size:
    """Of a figure with so many curves."""
    return Size(WIDTH_INCHES, 4.7 + 0.21 * tests)


def det_numbers(tests: Mapping[str, DetectionMetrics], *, estimator: Estimator = "kaldi") -> NumberTable:
    """The points of the curves, every corner of each, and its equal error rate, as shares.

    Raises:
        MetricInputError: as `draw_det`.
    """
    eer = _validate(tests, estimator)
    rows: list[tuple[Cell, ...]] = []
    for label, test in tests.items():
        rate = _rate(test, estimator)
        threshold = {"kaldi": test.kaldi_threshold, "speechbrain": test.speechbrain_threshold}.get(estimator)
        rows.append((label, eer.key, threshold, rate, rate))
        corners = test.det.corners()
        columns = (corners.thresholds.tolist(), corners.false_alarm_rate.tolist(), corners.miss_rate.tolist())
        rows += [(label, "curve", *point) for point in zip(*columns, strict=True)]
    return NumberTable(_CSV_COLUMNS, tuple(rows))


def describe(tests: Mapping[str, DetectionMetrics], *, estimator: Estimator = "kaldi") -> str:
    """The curves in words, for those who cannot see them."""
    eer = _validate(tests, estimator)
    return " ".join(
        f"{label}: {eer.label} {100 * _rate(test, estimator):.{eer.decimals}f} %, "
        f"{MIN_CLLR.label} {test.min_cllr:.3f} bit, {test.n_target} target and {test.n_nontarget} nontarget trials."
        for label, test in tests.items()
    )


def _validate(tests: Mapping[str, DetectionMetrics], estimator: str) -> Metric:
    if not 1 <= len(tests) <= MOST_CURVES:
        raise MetricInputError(f"Expected 1 to {MOST_CURVES} tests in a DET figure, found {len(tests)}.")
    if estimator not in ("kaldi", "rocch", "speechbrain"):
        raise MetricInputError(f"Expected the estimator kaldi, rocch or speechbrain, found {estimator!r}.")
    return find_metric("eer", estimator)


def _rate(test: DetectionMetrics, estimator: Estimator) -> float:
    """The equal error rate of an estimator, a share."""
    return {"kaldi": test.kaldi_eer, "rocch": test.rocch_eer, "speechbrain": test.speechbrain_eer}[estimator]


def _ticks_percent(tests: Mapping[str, DetectionMetrics], rates: list[float]) -> list[float]:
    """Ticks of both axes, from a tenth of the lowest rate or a single trial up to what the curves need."""
    finest = min(50 / max(test.n_target, test.n_nontarget) for test in tests.values())
    wide = max(rates) > _NEAR_CHANCE
    ticks = WIDE_TICKS_PERCENT if wide else TICKS_PERCENT
    low = max([tick for tick in ticks if tick <= max(finest, 10 * min(rates))], default=ticks[0])
    low = min(low, 5.0 if wide else 1.0)
    return [tick for tick in ticks if tick >= low and (not wide or tick <= 100 - low + 1e-9)]


def _draw_axes(axes: Axes, tests: Mapping[str, DetectionMetrics], rates: list[float], palette: Palette) -> None:
    ticks = _ticks_percent(tests, rates)
    places = _probit(np.array(ticks) / 100)
    limits = np.array([places[0], places[-1]])
    axes.plot(limits, limits, color=palette.line, linewidth=0.9, dashes=(1, 2))
    axes.plot(
        limits, -limits, color=palette.muted, linewidth=1.1, dashes=(5, 3), label="chance: an attacker who guesses"
    )
    axes.set_xlim(*limits)
    axes.set_ylim(*limits)
    axes.set_aspect("equal")
    names = [f"{tick:g}" for tick in ticks]
    axes.set_yticks(places, names)
    if ticks[0] < 0.1 and ticks[-1] > 99:  # the labels beside those of the ends would touch them
        names[1] = names[-2] = ""
    axes.set_xticks(places, names)
    axes.tick_params(axis="both", length=0, pad=5)
    axes.grid(visible=True)
    axes.set_xlabel("False alarms: other speakers accepted, %")
    axes.set_ylabel("Misses: same speaker rejected, %")


def _draw_curve(
    axes: Axes, test: DetectionMetrics, rate: float, position: int, text: str, palette: Palette
) -> None:  # fmt: skip
    corners = test.det.corners()
    colour = palette.series[position % len(palette.series)]
    dashes = DASHES[(position + position // len(palette.series)) % len(DASHES)]
    marker = MARKERS[position]
    x, y = _thinned(_probit(corners.false_alarm_rate), _probit(corners.miss_rate))
    axes.plot(x, y, color=colour, linewidth=1.7, dashes=dashes or (None, None), zorder=3)
    at = _probit(np.array([rate]))
    face = {"markersize": max(5.0, 9 - 1.0 * position), "markeredgecolor": palette.ink, "markeredgewidth": 0.9}
    axes.plot(at, at, marker, color=colour, zorder=4, **face)  # type: ignore[arg-type]
    dashing = dashes or (None, None)
    axes.plot([], [], marker=marker, color=colour, linewidth=1.7, dashes=dashing, label=text, **face)  # type: ignore[arg-type]


def _probit(rates: Floats) -> Floats:
    """Normal quantiles; the ends lie outside of every axis."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(rates, 1e-7, 1 - 1e-7)), dtype=np.float64)


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The points without those that lie on their predecessor as far as an eye can tell."""
    cells = np.round(np.stack([x, y]) / _PROBIT_STEP)
    kept = np.append(True, (np.diff(cells) != 0).any(axis=0))
    return x[kept], y[kept]
