"""Bars of a measure by data set and gender, such as ρF0 or G_VD of one system.

Genders differ by colour, by hatching and by their place in each pair; values stand beside their bars.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evaluation.figures.histogram import MINIMUM_PITCH_CORRELATION, Threshold
from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import ImageFormat, Palette, Theme, drawing, render
from evaluation.formats.claims import Claim, Gender
from evaluation.metrics.catalogue import PITCH_CORRELATION, Metric, find_metric
from evaluation.metrics.errors import MetricInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES = 5.2
GENDERS = {Gender.FEMALE: "female", Gender.MALE: "male", Gender.MIXED: "mixed", Gender.ALL: "all"}
_HATCHES = {Gender.FEMALE: "", Gender.MALE: "///", Gender.MIXED: "...", Gender.ALL: "xxx"}
_BAR = 0.38


@dataclass(frozen=True, slots=True)
class GroupValue:
    """A measure of one data set and gender, with its interval where it has one."""

    data_set: str
    gender: Gender
    value: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """A metric by data set and gender, in the order of the data sets."""

    metric: Metric
    values: tuple[GroupValue, ...]


def bars_of(claims: Iterable[Claim], metric: str, estimator: str) -> Bars:
    """The values of a metric of the anonymised data sets of a result, female and male of a set together.

    Raises:
        MetricInputError: the claims hold no such number.
    """
    chosen = [
        one
        for one in claims
        if (one.identity.metric, one.identity.estimator) == (metric, estimator)
        and not one.identity.data_set.startswith("average_")
    ]
    if not chosen:
        raise MetricInputError(f"Expected numbers of {metric} by {estimator or 'any estimator'}, found none.")
    values = tuple(
        GroupValue(data_set_name(one.identity.data_set, one.identity.gender), one.identity.gender, one.value)
        for one in chosen
    )
    order = list(dict.fromkeys(one.data_set for one in values))
    return Bars(
        find_metric(metric, estimator), tuple(sorted(values, key=lambda one: (order.index(one.data_set), one.gender)))
    )


def data_set_name(name: str, gender: Gender) -> str:
    """A data set without its gender, as an axis shows it: ``vctk dev common``."""
    return name.replace(f"_trials_{gender}", "").replace("_", " ")


def draw_bars(
    bars: Bars,
    *,
    threshold: Threshold | None = None,
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
) -> bytes:
    """Draw one bar for each data set and gender, from zero; intervals as lines at their ends.

    Args:
        bars: at least one finite value, each data set and gender once.
        threshold: drawn through all bars; None for that of 2022 on ρF0 and none on other metrics.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.

    Raises:
        MetricInputError: no value, one that is not finite, or a data set and gender twice.
    """
    _validate(bars)
    if threshold is None and bars.metric == PITCH_CORRELATION:
        threshold = MINIMUM_PITCH_CORRELATION
    sets = list(dict.fromkeys(one.data_set for one in bars.values))
    genders = [gender for gender in GENDERS if any(one.gender is gender for one in bars.values)]
    with drawing(theme) as palette:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH_INCHES, 1.15 + 0.27 * len(genders) * len(sets)), layout="constrained")
        axes = figure.subplots()
        for gender in genders:
            _draw_gender(axes, bars, gender, sets, genders, palette)
        _draw_axes(axes, bars, sets, threshold, palette)
        if len(genders) > 1:
            figure.legend(loc="outside lower left", ncols=len(genders), frameon=False, fontsize=9.5)
        title = f"{_label(bars.metric)} by data set and gender"
        return render(figure, image_format, title=title, description=describe(bars, threshold))


def bar_numbers(bars: Bars) -> NumberTable:
    """The bars with their intervals."""
    unit = f"_{bars.metric.unit}" if bars.metric.unit else ""
    columns = ("data_set", "gender", f"{bars.metric.key}{unit}", "lower", "upper")
    return NumberTable(
        columns, tuple((one.data_set, one.gender.value, one.value, one.lower, one.upper) for one in bars.values)
    )


def describe(bars: Bars, threshold: Threshold | None = None) -> str:
    """The bars in words, for those who cannot see them."""
    unit = f" {bars.metric.unit}" if bars.metric.unit else ""
    sentences = [
        f"{one.data_set}, {GENDERS[one.gender]}: {one.value:.{bars.metric.decimals}f}{unit}." for one in bars.values
    ]
    if threshold is not None:
        sentences.append(f"Dashed line: {threshold.label}, {threshold.value:g}.")
    return " ".join(sentences)


def _label(metric: Metric) -> str:
    return f"{metric.label}, {metric.unit}" if metric.unit else metric.label


def _validate(bars: Bars) -> None:
    wrong = [one for one in bars.values if not np.isfinite(one.value)]
    if not bars.values or wrong:
        found = f"{wrong[0].value} of {wrong[0].data_set}" if wrong else "none"
        raise MetricInputError(f"Expected finite values of {bars.metric.key}, at least one, found {found}.")
    places = [(one.data_set, one.gender) for one in bars.values]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice:
        raise MetricInputError(f"Expected each data set and gender once, found {twice[0]}, {GENDERS[twice[1]]}, again.")


def _draw_gender(
    axes: Axes, bars: Bars, gender: Gender, sets: Sequence[str], genders: Sequence[Gender], palette: Palette
) -> None:  # fmt: skip
    chosen = [one for one in bars.values if one.gender is gender]
    shift = (genders.index(gender) - (len(genders) - 1) / 2) * _BAR
    places = [sets.index(one.data_set) + shift for one in chosen]
    colour = palette.series[list(GENDERS).index(gender)]
    axes.barh(
        places, [one.value for one in chosen], 0.9 * _BAR, color=colour, hatch=_HATCHES[gender],
        edgecolor=palette.ink, linewidth=0.6, label=GENDERS[gender],
    )  # fmt: skip
    for place, one in zip(places, chosen, strict=True):
        furthest = one.value
        if one.lower is not None and one.upper is not None:
            axes.plot(
                [one.lower, one.upper], [place, place], color=palette.ink, linewidth=1.4, marker="|", markersize=6
            )
            furthest = one.upper if one.value >= 0 else one.lower
        axes.annotate(
            f"{one.value:.2f}".replace("-", "−"), (furthest, place), xytext=(4 if one.value >= 0 else -4, 0),
            textcoords="offset points", ha="left" if one.value >= 0 else "right", va="center", fontsize=8.5,
            color=palette.muted,
        )  # fmt: skip


def _draw_axes(
    axes: Axes, bars: Bars, sets: Sequence[str], threshold: Threshold | None, palette: Palette
) -> None:  # fmt: skip
    ends = [end for one in bars.values for end in (one.value, one.lower, one.upper) if end is not None]
    if threshold is not None:
        ends.append(threshold.value)
        axes.axvline(threshold.value, color=palette.warning, linewidth=1.1, dashes=(4, 3))
        axes.annotate(
            threshold.label, (threshold.value, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
            textcoords="offset points", ha="center", va="bottom", fontsize=9.5, color=palette.warning,
        )  # fmt: skip
    low, high = min(0.0, *ends), max(0.0, *ends)
    room = 0.14 * (high - low or 1.0)
    axes.set_xlim(low - room if low < 0 else 0, high + room if high > 0 else 0)
    axes.axvline(0, color=palette.line, linewidth=0.8)
    axes.set_yticks(range(len(sets)), sets)
    axes.invert_yaxis()
    axes.grid(axis="x")
    axes.tick_params(axis="both", length=0, pad=5)
    axes.tick_params(axis="y", labelcolor=palette.ink)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(_label(bars.metric))
