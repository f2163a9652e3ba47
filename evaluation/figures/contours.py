"""F0 contours of one utterance: the original, the anonymised one, and that one warped onto the original.

As figure 9 of the results paper of VoicePrivacy 2022. Unvoiced frames are gaps. Contours differ in their dashes, so
that they can be told apart without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.rounding import fixed
from evaluation.figures.style import DASHES, Look, Palette, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = Size(4.4, 3.2)


@dataclass(frozen=True, slots=True)
class Contour:
    """A line of the figure: F0 in Hz, 0 where unvoiced, shape (frames,); the time of its first frame and their step."""

    name: str
    hz: NDArray[np.float64]
    start_s: float
    step_s: float


@dataclass(frozen=True, slots=True)
class ContourPlot:
    """Contours of one utterance over time."""

    contours: Sequence[Contour]

    @property
    def size(self) -> Size:
        return SIZE

    def paint(self, figure: Figure, palette: Palette) -> None:
        axes = figure.subplots()
        for place, one in enumerate(self.contours):
            times = one.start_s + one.step_s * np.arange(one.hz.size)
            look: Look = {"color": palette.series[place], "linewidth": 1.6, "label": one.name}
            if DASHES[place]:
                look["dashes"] = DASHES[place]
            axes.plot(times, np.where(one.hz > 0, one.hz, np.nan), **look)
        axes.set(xlabel="Time, s", ylabel="F0, Hz")
        axes.grid(visible=True)


def describe_contours(plain: float, realigned: float) -> str:
    """Return the contours in words, for those who cannot see them.

    Args:
        plain, realigned: pitch correlation of the utterance before and after the warping.
    """
    numbers = fixed(plain, 2), fixed(realigned, 2)
    return "Pitch correlation of this utterance: {}; after realignment, over voiced frames: {}.".format(*numbers)
