"""Privacy against utility: EER and WER of systems, with a line at the minimum EER of each condition.

As figure 1 of the VoicePrivacy 2022 evaluation plan: a circle for each system, its rank within when it has one, the
original speech filled, baselines in grey. Further right is more private. Another utility than WER, such as UAR or pitch
correlation, may take its place; the axis says in which direction it is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import ImageFormat, Palette, Size, Theme, drawing, render
from evaluation.formats.claims import AttackModel, ClaimIdentity, Speech
from evaluation.formats.results import SystemResults, track_average
from evaluation.metrics.averages import weighted_average
from evaluation.metrics.catalogue import WER, Direction, Metric
from evaluation.metrics.errors import MetricInputError
from evaluation.protocols.recipes import Recipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["original", "baseline", "system"]
WIDTH_INCHES, HEIGHT_INCHES = 5.6, 4.0
NARROW_INCHES, NARROW_HEIGHT_INCHES = 3.6, 4.4
MANY_POINTS, MANY_WIDER = 8, 1.2
MARKERS = "osD^vP"
# Of a point, the first one preferred.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
_KINDS: tuple[Kind, ...] = ("original", "baseline", "system")


@dataclass(frozen=True, slots=True)
class SystemPoint:
    """One system in the plane.

    Attributes:
        name: beside the point.
        eer: average equal error rate, in per cent; higher is more private.
        utility: average of the utility metric in its unit, such as the word error rate in per cent.
        kind: ``original`` (unprotected speech), ``baseline`` or ``system``.
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


def points_of(
    results: SystemResults, recipe: Recipe, *, split: str = "test", track: str | None = None, name: str | None = None,
    kind: Kind = "system",
) -> tuple[SystemPoint, SystemPoint]:  # fmt: skip
    """The original speech and the system, from the averages that follow from the numbers of a result.

    Args:
        results: of 2022 or later, with the EERs and WERs of a split.
        recipe: of their edition.
        track: where the edition has several.
        name: of the system where the result's own is not wanted.

    Raises:
        AverageError: data sets that are missing or given more than once.
        RecipeError: no such average.
    """
    claims = results.claims
    eers = [
        track_average(claims, recipe, "eer", split, track=track, attack_model=model).value
        for model in (AttackModel.UNPROTECTED, AttackModel.SEMI_INFORMED)
    ]
    wer = track_average(claims, recipe, "wer", split, track=track).value
    chosen = recipe.tracks[track] if track else recipe.track
    average = chosen.average("wer")
    weights = average.weights[split]

    def is_original(identity: ClaimIdentity) -> bool:
        named = identity.metric == "wer" and identity.estimator == average.estimator and identity.data_set in weights
        return named and identity.training is identity.speech is Speech.ORIGINAL

    of_original = [(one.identity.data_set, one.value) for one in claims if is_original(one.identity)]
    unprotected = SystemPoint("Original", eers[0], weighted_average(of_original, weights).value, "original")
    return unprotected, SystemPoint(name or results.system, eers[1], wer, kind)


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
    with drawing(theme) as palette:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size_of(len(points), narrow=narrow).inches, layout="constrained")
        axes = figure.subplots()
        _draw_axes(axes, points, metric, minimum_eers, palette, "\n" if narrow else "  ")
        teams = list(dict.fromkeys(point.team or point.name for point in points if point.kind == "system"))
        for point in points:
            _draw_point(axes, point, teams, palette)
        _name_points(axes, points, palette)
        title = "Privacy against utility"
        return render(figure, image_format, title=title, description=describe(points, minimum_eers, metric))


def size_of(points: int, *, narrow: bool = False) -> Size:
    """Of a figure with so many points."""
    if narrow:
        return Size(NARROW_INCHES, NARROW_HEIGHT_INCHES * (MANY_WIDER if points > MANY_POINTS else 1.0))
    wider = MANY_WIDER if points > MANY_POINTS else 1.0
    return Size(WIDTH_INCHES * wider, HEIGHT_INCHES * wider)


def tradeoff_numbers(points: Iterable[SystemPoint], metric: Metric = WER) -> NumberTable:
    """The points of the figure."""
    utility = f"{metric.key}_percent" if metric.unit == "%" else metric.key
    columns = ("system", "team", "kind", "eer_percent", utility, "rank")
    rows = tuple((one.name, one.team, one.kind, one.eer, one.utility, one.rank) for one in points)
    return NumberTable(columns, rows)


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
                f"{one.name}: expected an EER of 0 to 100 %, a {metric.label} {wanted} and the kind original, baseline "
                f"or system, found {one.eer}, {one.utility} and “{one.kind}”."
            )


def _draw_axes(
    axes: Axes, points: Sequence[SystemPoint], metric: Metric, minimum_eers: Sequence[float], palette: Palette,
    gap: str,
) -> None:  # fmt: skip
    """`gap`: between what an axis shows and which way is better."""
    eers = [eer for one in points for eer in (one.eer, *(one.eer_interval or ()))]
    utilities = [utility for one in points for utility in (one.utility, *(one.utility_interval or ()))]
    last = max([*eers, *minimum_eers])
    axes.set_xlim(max(0.0, min(eers) - 3), last + 3)
    room = max(1.0 if metric.unit == "%" else 0.05, 0.22 * (max(utilities) - min(utilities)))
    lowest = min(utilities) - room
    axes.set_ylim(max(0.0, lowest) if min(utilities) >= 0 else lowest, max(utilities) + 1.4 * room)
    for number, limit in enumerate(minimum_eers, start=1):
        axes.axvline(limit, color=palette.warning, linewidth=1.1, dashes=(4, 3), zorder=1)
        axes.annotate(
            f"condition {number}" if number == 1 else str(number), (limit, 1), xycoords=("data", "axes fraction"),
            xytext=(3, 2), textcoords="offset points", ha="right", va="bottom", fontsize=9.5, color=palette.warning,
        )  # fmt: skip
    axes.grid(visible=True)
    axes.locator_params(axis="y", nbins=6)
    axes.tick_params(axis="both", length=0, pad=5)
    axes.set_xlabel(f"Privacy: EER of the attacker, %{gap}(right is better)")
    unit = f", {metric.unit}" if metric.unit else ""
    side = "down" if metric.direction == Direction.LOWER else "up"
    axes.set_ylabel(f"Utility: {metric.label}{unit}{gap}({side} is better)")


def _draw_point(axes: Axes, point: SystemPoint, teams: Sequence[str], palette: Palette) -> None:
    place = teams.index(point.team or point.name) if point.kind == "system" else 0
    faces = {"original": palette.ink, "baseline": palette.line, "system": palette.series[place % len(palette.series)]}
    marker = MARKERS[place % len(MARKERS)] if point.kind == "system" else "o"
    thin: dict[str, Any] = {"color": palette.muted, "linewidth": 0.9, "zorder": 2}
    if point.eer_interval:
        axes.plot(point.eer_interval, [point.utility] * 2, **thin)
    if point.utility_interval:
        axes.plot([point.eer] * 2, point.utility_interval, **thin)
    axes.plot(
        [point.eer], [point.utility], marker, markersize=13 if point.rank is not None else 10,
        markerfacecolor=faces[point.kind], markeredgecolor=palette.ink, markeredgewidth=0.9, zorder=3,
        clip_on=False,
    )  # fmt: skip
    if point.rank is not None:
        axes.annotate(
            str(point.rank), (point.eer, point.utility), ha="center", va="center_baseline", fontsize=8.5,
            fontweight="bold", color=_readable_on(faces[point.kind]), zorder=5,
        )  # fmt: skip


def _name_points(axes: Axes, points: Sequence[SystemPoint], palette: Palette) -> None:
    """Each name beside its point, on the side where it covers least."""
    boxes = [_box(axes, point, "", (0, 0)) for point in points]
    boxes += [box for point in points for box in _interval_boxes(axes, point)]
    for point in points:
        sides = {side: _box(axes, point, point.name, side) for side in _SIDES}
        best = min(sides, key=lambda side: _covered(sides[side], boxes))
        boxes.append(sides[best])
        horizontal, vertical = best
        line = {"arrowstyle": "-", "color": palette.muted, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
        axes.annotate(
            point.name, (point.eer, point.utility), xytext=(9 * horizontal, 9 * vertical), textcoords="offset points",
            ha={1: "left", -1: "right", 0: "center"}[horizontal], va={1: "bottom", -1: "top", 0: "center"}[vertical],
            fontsize=9.5, color=palette.ink, zorder=4, arrowprops=line if horizontal and vertical else None,
        )  # fmt: skip


def _box(axes: Axes, point: SystemPoint, name: str, side: tuple[int, int]) -> tuple[float, float, float, float]:
    """About where a name, or else the mark itself, lies: left, bottom, right, top in shares of the axes."""
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    x, y = (point.eer - low) / (high - low), (point.utility - bottom) / (top - bottom)
    across = WIDTH_INCHES * axes.figure.dpi / axes.figure.bbox.width
    along = HEIGHT_INCHES * axes.figure.dpi / axes.figure.bbox.height
    width, height = (0.017 * len(name) if name else 0.04) * across, 0.05 * along
    x += side[0] * (0.025 * across + width / 2)
    y += side[1] * (0.04 * along + height / 2)
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _interval_boxes(axes: Axes, point: SystemPoint) -> Iterator[tuple[float, float, float, float]]:
    """Where the lines of a point's intervals run, each a little thicker than it is."""
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    x, y, thin = (point.eer - low) / (high - low), (point.utility - bottom) / (top - bottom), 0.004
    if point.eer_interval:
        left, right = ((limit - low) / (high - low) for limit in point.eer_interval)
        yield left, y - thin, right, y + thin
    if point.utility_interval:
        start, end = ((limit - bottom) / (top - bottom) for limit in point.utility_interval)
        yield x - thin, start, x + thin, end


def _covered(box: tuple[float, float, float, float], others: Sequence[tuple[float, float, float, float]]) -> float:
    """How much of other boxes, and of what lies outside of the axes, a box covers."""
    left, bottom, right, top = box
    outside = max(0.0, right - 1) + max(0.0, -left) + max(0.0, top - 1) + max(0.0, -bottom)
    overlaps = (
        max(0.0, min(right, other[2]) - max(left, other[0])) * max(0.0, min(top, other[3]) - max(bottom, other[1]))
        for other in others
    )
    return outside * (top - bottom) + sum(overlaps)


def _readable_on(colour: str) -> str:
    """Black or white, whichever stands out (relative luminance, WCAG 2)."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"
