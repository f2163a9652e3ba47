"""Heat maps of the voice similarity matrices M_oo, M_op and M_pp on one scale, speakers grouped by gender.

Rows are the first side of each matrix, columns the second. Colours go from that of the page to its opposite, steadily
in lightness, so that they keep their order in grey print and without colour vision; a cell without a value is crossed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.rounding import fixed
from evaluation.figures.style import TEXT, Palette, Plot, Size, Theme
from evaluation.metrics.catalogue import DE_IDENTIFICATION, GAIN_OF_VOICE_DISTINCTIVENESS
from evaluation.metrics.voice_similarity import SimilarityMatrix, VoiceDistinctiveness

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Voice similarity matrices"
MATRIX_INCHES = 2.35
GENDERS = {"f": "female", "m": "male"}
_SIDES = {"oo": "original, original", "op": "original, anonymised", "pp": "anonymised, anonymised"}
_LEVELS = 64
_COLOURS: dict[Theme, tuple[str, ...]] = {
    "light": ("#f4f6f8", "#9cc7e4", "#2f7fb5", "#0b3c63", "#051a2c"),
    "dark": ("#161b22", "#174a72", "#2f86c0", "#8ccdf5", "#f2faff"),
}


def make_similarity_plot(
    voices: VoiceDistinctiveness, genders: Mapping[str, str] | None, theme: Theme = "light"
) -> Plot:
    """Return the matrices side by side; their shades are those of a theme.

    Args:
        voices: of one set of speakers.
        genders: speaker → ``f`` or ``m``; speakers of one gender then stand together, with a line between.

    Raises:
        InputError: a speaker without a gender where genders are given.
    """
    return _MatrixMaps(voices, _order(voices.oo.speakers, genders), genders, theme)


def describe(voices: VoiceDistinctiveness) -> str:
    """Return the matrices in words, for those who cannot see them."""
    sentences = [f"{len(voices.oo.speakers)} speakers, {voices.oo.form} form."]
    sentences += [
        f"Diagonal dominance of M_{name}: {fixed(matrix.diagonal_dominance, 3)}."
        for name, matrix in _matrices(voices).items()
    ]
    if voices.de_identification_score is not None:
        sentences.append(f"{DE_IDENTIFICATION.label}: {fixed(voices.de_identification_score, 3)}.")
    sentences.append(f"{GAIN_OF_VOICE_DISTINCTIVENESS.label}: {fixed(voices.gain_db, 2)} dB.")
    return " ".join(sentences)


def _matrices(voices: VoiceDistinctiveness) -> dict[str, SimilarityMatrix]:
    every = {"oo": voices.oo, "op": voices.op, "pp": voices.pp}
    return {name: matrix for name, matrix in every.items() if matrix is not None}


def _order(speakers: Sequence[str], genders: Mapping[str, str] | None) -> list[int]:
    """Return places of the speakers: as they stand, or female before male."""
    if genders is None:
        return list(range(len(speakers)))
    without = [name for name in speakers if genders.get(name) not in GENDERS]
    if without:
        raise InputError(
            f"Expected the gender f or m of {len(speakers)} speakers, found none for {len(without)}, "
            f"such as {without[0]}."
        )
    return sorted(range(len(speakers)), key=lambda place: (genders[speakers[place]], place))


@dataclass(frozen=True, slots=True)
class _MatrixMaps:
    """The matrices side by side with the scale of their shades."""

    voices: VoiceDistinctiveness
    order: Sequence[int]
    genders: Mapping[str, str] | None
    theme: Theme

    @property
    def size(self) -> Size:
        return Size(0.75 + MATRIX_INCHES * len(_matrices(self.voices)), MATRIX_INCHES + 0.62)

    def paint(self, figure: Figure, palette: Palette) -> None:
        matrices = _matrices(self.voices)
        all_axes = figure.subplots(1, len(matrices), squeeze=False)[0]
        for axes, (name, matrix) in zip(all_axes, matrices.items(), strict=True):
            _draw_cells(axes, matrix.values[np.ix_(self.order, self.order)], self.theme, palette)
            axes.invert_yaxis()
            axes.set(aspect="equal", xticks=[], yticks=[])
            axes.spines[:].set_visible(True)
            axes.set_title(f"M_{name}", fontweight="bold")
            axes.set_title(_SIDES[name], loc="right", fontsize=TEXT, color=palette.muted)
            axes.set_xlabel(f"diagonal dominance {fixed(matrix.diagonal_dominance, 3)}", color=palette.muted)
            self._separate_genders(axes, palette)
        self._name_speakers(all_axes[0], palette)
        self._draw_scale(figure, list(all_axes), palette)

    def _separate_genders(self, axes: Axes, palette: Palette) -> None:
        if self.genders and 0 < (border := self._count("f")) < len(self.order):
            axes.axhline(border, color=palette.warning, linewidth=1.2)
            axes.axvline(border, color=palette.warning, linewidth=1.2)

    def _name_speakers(self, axes: Axes, palette: Palette) -> None:
        if self.genders is None:
            axes.set_ylabel(f"{len(self.order)} speakers")
            return
        counts = {gender: self._count(gender) for gender in GENDERS if self._count(gender)}
        middles = {"f": self._count("f") / 2, "m": self._count("f") + self._count("m") / 2}
        names = [f"{count} {GENDERS[gender]}" for gender, count in counts.items()]
        axes.set_yticks([middles[gender] for gender in counts], names, rotation=90, va="center")
        axes.tick_params(axis="y", labelcolor=palette.ink)

    def _count(self, gender: str) -> int:
        return sum((self.genders or {})[name] == gender for name in self.voices.oo.speakers)

    def _draw_scale(self, figure: Figure, all_axes: list[Axes], palette: Palette) -> None:
        """The shades from 0 to 1 beside the last matrix."""
        from matplotlib.cm import ScalarMappable

        axes = figure.colorbar(ScalarMappable(), ax=all_axes, shrink=0.85, aspect=22, pad=0.02).ax
        axes.clear()
        _draw_cells(axes, (np.arange(_LEVELS)[:, None] + 0.5) / _LEVELS, self.theme, palette)
        axes.set_xticks([])
        axes.set_yticks(np.linspace(0, _LEVELS, 5), ["0", "0.25", "0.5", "0.75", "1"])
        axes.yaxis.tick_right()
        axes.set_ylabel("similarity")
        axes.yaxis.set_label_position("right")


def _draw_cells(axes: Axes, values: NDArray[np.float64], theme: Theme, palette: Palette) -> None:
    """Cells of 0 to 1 as squares, all of one shade in one path: an SVG stays small and holds no picture."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    shades = LinearSegmentedColormap.from_list("similarity", _COLOURS[theme], _LEVELS)
    levels = np.clip(np.nan_to_num(values, nan=-1.0) * _LEVELS, -1, _LEVELS - 1).astype(int)
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    for level in np.unique(levels[np.isfinite(values)]).tolist():
        corners = np.argwhere((levels == level) & np.isfinite(values))[:, ::-1]
        path = Path((corners[:, None] + square).reshape(-1, 2), codes * len(corners))
        colour = shades(level)
        axes.add_patch(PathPatch(path, facecolor=colour, edgecolor=colour, linewidth=0.25))
    axes.set_xlim(0, values.shape[1])
    axes.set_ylim(0, values.shape[0])
    for row, column in np.argwhere(~np.isfinite(values)).tolist():
        axes.plot([column + 0.5], [row + 0.5], "x", color=palette.warning, markersize=3)
