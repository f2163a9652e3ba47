"""What an anonymiser did to one instant of an utterance: spectra and envelopes of both voices, where resonances went,
and what the method did inside: its poles in the z-plane, its map of frequencies, or both waveforms with pitch marks.

Draws whatever has the attributes below, such as `anonymization.explanation.explain.Explanation`. Conventions: the
original is a solid line and a dot, the anonymised voice a dashed line and a triangle; levels in dB, 0 dB a sine of full
scale.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from common.tables import DataTable, Value
from evaluation.figures.style import LIMIT_DASHES, ImageFormat, Palette, Size, Theme, draw_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RANGE_DB = 85.0
_FLOOR_DB = -120.0
_HIGHEST_HZ = 8000.0
_ORIGINAL, _ANONYMISED = "original", "anonymised"
_DASHES = (4.0, 1.6)
_MARKERS = ("o", "^")
# Left, bottom, width and height of the three panels in inches.
_Place = tuple[float, float, float, float]
_WIDE_PLACES: tuple[_Place, ...] = ((0.92, 1.22, 4.55, 2.68), (0.92, 0.5, 4.55, 0.64), (5.95, 0.5, 3.35, 3.4))
_NARROW_PLACES: tuple[_Place, ...] = ((0.88, 4.15, 2.8, 2.25), (0.88, 3.45, 2.8, 0.62), (0.55, 0.5, 3.12, 2.15))


class ExplanationLike(Protocol):
    """One instant of two voices.

    Both sides have `f0_hz` (0 where unvoiced), `level_dbfs`, `spectrum_db` and `envelope_db` at `frequencies_hz`,
    `peaks_hz` and `peaks_db` (resonances and their height) and `wave` (samples at ±1). `moves` are pairs of resonances.
    None where the method has none: `poles` of the upper half-plane (`alpha`, `radii`, `angles_before` and
    `angles_after` in radians), `warp` (`from_hz` and `to_hz`, rising), `marks` (`before_s` and `after_s`, pitch marks
    in seconds from the middle of the frame).
    """

    @property
    def title(self) -> str: ...
    @property
    def at_s(self) -> float: ...
    @property
    def rate_hz(self) -> int: ...
    @property
    def frequencies_hz(self) -> npt.ArrayLike: ...
    @property
    def original(self) -> Any: ...
    @property
    def anonymised(self) -> Any: ...
    @property
    def moves(self) -> Sequence[Sequence[float]]: ...
    @property
    def poles(self) -> Any: ...
    @property
    def warp(self) -> Any: ...
    @property
    def marks(self) -> Any: ...
    @property
    def sentences(self) -> Sequence[str]: ...


def draw_explanation(
    explanation: ExplanationLike, theme: Theme = "light", image_format: ImageFormat = "svg", *, narrow: bool = False
) -> bytes:
    """Draw an instant.

    Args:
        explanation: from `anonymization.explanation.explain.explain`, or read back by `as_namespace`.
        theme: for a light or a dark page; the background is transparent.
        image_format: ``svg``, ``png`` or ``pdf``.
        narrow: the panels beneath each other, for phones.
    """
    plot, title = _ExplanationPlot(explanation, narrow), title_of(explanation)
    return draw_plot(plot, title=title, description=describe(explanation), theme=theme, image_format=image_format)


def size_of(*, narrow: bool = False) -> Size:
    """How large it is drawn."""
    return Size(3.8, 6.7) if narrow else Size(9.4, 4.2)


def title_of(explanation: ExplanationLike) -> str:
    """What the figure shows, in a line."""
    return f"Original and anonymised voice at {explanation.at_s:.2f} s"


def describe(explanation: ExplanationLike) -> str:
    """The figure in words, for those who cannot see it."""
    return " ".join(explanation.sentences)


def explanation_numbers(explanation: ExplanationLike) -> DataTable:
    """F0, level, resonances and poles of both voices; None where there is no value."""
    one, other = explanation.original, explanation.anonymised
    rows: list[tuple[Value, ...]] = [
        ("F0", "Hz", one.f0_hz or None, other.f0_hz or None),
        ("level", "dBFS", one.level_dbfs, other.level_dbfs),
    ]
    rows += [(f"resonance {n}", "Hz", *pair) for n, pair in enumerate(_resonances(explanation), start=1)]
    if explanation.poles is not None:
        to_hz = explanation.rate_hz / (2 * np.pi)
        columns = (explanation.poles.radii, explanation.poles.angles_before, explanation.poles.angles_after)
        for n, (radius, before, after) in enumerate(zip(*map(_listed, columns), strict=True), start=1):
            rows += [
                (f"pole {n}, angle", "Hz", before * to_hz, after * to_hz),
                (f"pole {n}, radius", "", radius, radius),
            ]
    return DataTable(("quantity", "unit", _ORIGINAL, _ANONYMISED), tuple(rows))


def explanation_curves(explanation: ExplanationLike) -> DataTable:
    """The curves of the figure: spectrum and envelope of both voices at each frequency, in dB."""
    one, other = explanation.original, explanation.anonymised
    columns = [explanation.frequencies_hz]
    columns += [curve for side in (one, other) for curve in (side.spectrum_db, side.envelope_db)]
    names = [f"{side}_{curve}_db" for side in (_ORIGINAL, _ANONYMISED) for curve in ("spectrum", "envelope")]
    return DataTable(("frequency_hz", *names), tuple(zip(*map(_listed, columns), strict=True)))


def write_explanation(explanation: ExplanationLike) -> str:
    """All of it as JSON, for another process to draw; equal explanations give equal text."""
    if not is_dataclass(explanation) or isinstance(explanation, type):
        raise TypeError(f"An explanation to be written is a dataclass; found {type(explanation).__name__}.")
    return json.dumps(asdict(explanation), sort_keys=True, default=lambda array: array.tolist())


def as_namespace(given: dict[str, Any]) -> ExplanationLike:
    """What `write_explanation` wrote and `json.loads` read, by its attributes, with lists in place of arrays."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return SimpleNamespace(**{name: turned(each) for name, each in value.items()})
        return value

    return cast("ExplanationLike", turned(given))


def _resonances(explanation: ExplanationLike) -> list[tuple[float | None, float | None]]:
    """Pairs and those that stand alone, rising."""
    pairs: list[tuple[float | None, float | None]] = [(one, other) for one, other in explanation.moves]
    paired = {hertz for pair in explanation.moves for hertz in pair}
    pairs += [(hertz, None) for hertz in _listed(explanation.original.peaks_hz) if hertz not in paired]
    pairs += [(None, hertz) for hertz in _listed(explanation.anonymised.peaks_hz) if hertz not in paired]
    return sorted(pairs, key=lambda pair: pair[0] or pair[1] or 0.0)


def _listed(values: npt.ArrayLike) -> list[float]:
    return cast("list[float]", np.asarray(values, dtype=np.float64).tolist())


@dataclass(frozen=True, slots=True)
class _ExplanationPlot:
    """Spectra above the moves of the resonances, and what is inside beside or beneath them.

    Their places are the same for every instant, so that pictures of two can be compared: nothing is laid out.
    """

    explanation: ExplanationLike
    narrow: bool

    @property
    def size(self) -> Size:
        return size_of(narrow=self.narrow)

    def paint(self, figure: Figure, palette: Palette) -> None:
        figure.set_layout_engine(None)
        explanation = self.explanation
        width, height = self.size.inches
        spectrum, moves, inside = (
            figure.add_axes((left / width, bottom / height, wide / width, high / height))
            for left, bottom, wide, high in (_NARROW_PLACES if self.narrow else _WIDE_PLACES)
        )
        moves.sharex(spectrum)
        _draw_spectra(spectrum, explanation, palette)
        _draw_moves(moves, explanation, palette)
        if explanation.poles is not None:
            _draw_poles(inside, explanation.poles, explanation.rate_hz, palette)
        elif explanation.warp is not None and explanation.marks is None:
            _draw_warp(inside, explanation.warp, explanation.moves, palette)
        else:
            _draw_waves(inside, explanation, palette)
        for axes in (spectrum, moves, inside):
            axes.title.set_fontweight("bold")


def _sides(explanation: ExplanationLike, palette: Palette) -> list[tuple[str, Any, str, str, dict[str, Any]]]:
    """Name, numbers, colour, marker and line of both voices."""
    both = ((_ORIGINAL, explanation.original), (_ANONYMISED, explanation.anonymised))
    lines: tuple[dict[str, Any], ...] = ({}, {"dashes": _DASHES})
    return [(*both[n], palette.series[n], _MARKERS[n], lines[n]) for n in (0, 1)]


def _draw_spectra(axes: Axes, explanation: ExplanationLike, palette: Palette) -> None:
    kilohertz = np.asarray(explanation.frequencies_hz, float) / 1000
    highest = _FLOOR_DB
    sides = _sides(explanation, palette)
    for _, side, colour, _, _ in sides:
        spectrum = np.asarray(side.spectrum_db, float)
        highest = max(highest, float(spectrum.max()))
        axes.plot(kilohertz, spectrum, color=colour, linewidth=0.7, alpha=0.5)
    for name, side, colour, marker, line in sides:
        f0 = f"F0 {side.f0_hz:.0f} Hz" if side.f0_hz else "no F0"
        peaks_khz = np.asarray(side.peaks_hz, float) / 1000
        axes.plot(kilohertz, np.asarray(side.envelope_db, float), color=colour, linewidth=2.0, **line)
        axes.plot(peaks_khz, np.asarray(side.peaks_db, float), marker, color=colour, markersize=6)
        axes.plot([], [], marker=marker, color=colour, linewidth=2.0, label=f"{name}, {f0}", **line)
    top = 10 * np.ceil((highest + 14) / 10)  # room for the legend
    axes.set_ylim(top - RANGE_DB, top)
    axes.set_xlim(0, min(_HIGHEST_HZ, explanation.rate_hz / 2) / 1000)
    axes.set_ylabel("Level, dB")
    axes.set_title(f"Spectrum and envelope at {explanation.at_s:.2f} s")
    axes.legend(loc="upper right", handlelength=2.6, labelspacing=0.3, borderpad=0)
    axes.grid(axis="y")
    axes.tick_params(axis="x", labelbottom=False)


def _draw_moves(axes: Axes, explanation: ExplanationLike, palette: Palette) -> None:
    """A rail of resonances for each voice, an arrow from each to what it became."""
    for before, after in explanation.moves:
        axes.annotate(
            "",
            (after / 1000, 0.12),
            xytext=(before / 1000, 0.88),
            arrowprops={"arrowstyle": "-|>", "color": palette.muted, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0},
        )
    for row, (_, side, colour, marker, _) in zip((1, 0), _sides(explanation, palette), strict=True):
        peaks_khz = np.asarray(side.peaks_hz, float) / 1000
        axes.plot(peaks_khz, np.full(peaks_khz.size, row), marker, color=colour, markersize=6, clip_on=False)
        axes.axhline(row, color=palette.grid, linewidth=0.8, zorder=0)
    axes.set_ylim(-0.3, 1.3)
    axes.set_yticks([1, 0], [_ORIGINAL, _ANONYMISED])
    axes.set_xlabel("Resonances before and after, kHz")
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_poles(axes: Axes, poles: Any, rate_hz: int, palette: Palette) -> None:
    """The upper half of the z-plane; each pole is turned along its circle."""
    around = np.linspace(0, np.pi, 181)
    axes.plot(np.cos(around), np.sin(around), color=palette.line, linewidth=1)
    axes.plot([-1, 1], [0, 0], color=palette.line, linewidth=1)
    for kilohertz in range(rate_hz // 2000 + 1):
        angle = 2000 * np.pi * kilohertz / rate_hz
        x, y = np.cos(angle), np.sin(angle)
        axes.plot([0, x], [0, y], color=palette.grid, linewidth=0.8, zorder=0)
        text = f"{kilohertz} kHz" if kilohertz == rate_hz // 4000 else str(kilohertz)
        axes.text(1.1 * x, 1.1 * y, text, ha="center", va="center", color=palette.muted)
    axes.plot([0, np.cos(1)], [0, np.sin(1)], color=palette.warning, linewidth=1.1, dashes=LIMIT_DASHES)
    columns = (poles.radii, poles.angles_before, poles.angles_after)
    for radius, before, after in zip(*map(_listed, columns), strict=True):
        ends = [(radius * np.cos(angle), radius * np.sin(angle)) for angle in (before, after)]
        # Bent towards the middle, so that arrows of poles on one circle lie inside of each other.
        bend = {"connectionstyle": f"arc3,rad={-0.25 if after > before else 0.25}", "shrinkA": 3, "shrinkB": 4}
        arrow = {"arrowstyle": "-|>", "color": palette.muted, "linewidth": 1.0, **bend}
        axes.annotate("", ends[1], xytext=ends[0], arrowprops=arrow)
        for (x, y), marker, colour in zip(ends, _MARKERS, palette.series, strict=False):
            axes.plot([x], [y], marker, color=colour, markersize=5.5)
    axes.set_aspect("equal")
    axes.set_xlim(-1.16, 1.16)
    axes.set_ylim(-0.05, 1.2)
    axes.set_axis_off()
    axes.set_title(f"Poles, φ becomes φ^{poles.alpha:.3g}")
    fixed_hz = rate_hz / (2 * np.pi)
    note = f"Angle: frequency. Nearer the circle: sharper.\nDashed: {fixed_hz:.0f} Hz, which stays."
    axes.text(-1.16, -0.12, note, ha="left", va="top", color=palette.muted)


def _draw_warp(axes: Axes, warp: Any, moves: Sequence[Sequence[float]], palette: Palette) -> None:
    """The map of frequencies over the diagonal of what stays, and the resonances that were found."""
    before, after = np.asarray(warp.from_hz, float) / 1000, np.asarray(warp.to_hz, float) / 1000
    top = max(float(before[-1]), float(after[-1]))
    axes.plot([0, top], [0, top], color=palette.line, linewidth=1, dashes=(1.5, 2), label="unchanged")
    axes.plot(before, after, color=palette.ink, linewidth=1.8, label="the method’s map")
    if moves:
        found = np.asarray(moves, float) / 1000
        axes.plot(found[:, 0], found[:, 1], _MARKERS[1], color=palette.series[1], markersize=6, label="found here")
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    axes.set_aspect("equal")
    axes.grid()
    axes.set_xlabel("Original, kHz")
    axes.set_ylabel("Anonymised, kHz")
    axes.set_title("Mapping of frequencies")
    axes.legend(loc="upper left", borderpad=0.2, labelspacing=0.3)


def _draw_waves(axes: Axes, explanation: ExplanationLike, palette: Palette) -> None:
    """Both waveforms of the frame, each at its own scale, with pitch marks where the method has them."""
    marks = explanation.marks
    of_sides: tuple[npt.ArrayLike, ...] = ((), ()) if marks is None else (marks.before_s, marks.after_s)
    for row, (_, side, colour, marker, _), places in zip((1, -1), _sides(explanation, palette), of_sides, strict=True):
        wave = np.asarray(side.wave, float)
        time_ms = (np.arange(wave.size) - wave.size / 2) * 1000 / explanation.rate_hz
        scale = 0.85 / max(float(np.abs(wave).max(initial=0.0)), 1e-9)
        axes.axhline(row, color=palette.grid, linewidth=0.8, zorder=0)
        axes.plot(time_ms, row + scale * wave, color=colour, linewidth=1.1)
        for place_ms in (1000 * second for second in _listed(places)):
            axes.plot([place_ms, place_ms], [row - 0.9, row + 0.9], color=palette.muted, linewidth=0.8, zorder=0)
            axes.plot([place_ms], [row + 0.97], marker, color=colour, markersize=4.5, clip_on=False)
    axes.set_ylim(-2, 2)
    axes.set_xlim(time_ms[0], -time_ms[0])
    axes.set_yticks([1, -1], [_ORIGINAL, _ANONYMISED], rotation=90, va="center")
    axes.set_xlabel(f"ms from {explanation.at_s:.2f} s")
    axes.spines["left"].set_visible(False)
    title = "Waveforms" if marks is None else "Waveforms and pitch marks"
    axes.set_title(title)
