"""A sheet to draw on, measured in inches from its upper left corner: axes, words and a key where they are asked for.

Nothing is moved afterwards to make room, which is quick and gives the same picture everywhere. Sheets are narrow, so
that text of 8.5 points stays readable when a figure shrinks to the width of a phone. Ratings that are simulated are
called so inside of the picture, since pictures travel without their captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evaluation.figures.style import Palette, Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES = 4.4
MARGIN = 0.08
TEXT, SMALL = 9.0, 8.5
SIMULATED = "SIMULATED: no listener gave these answers"
_SIMULATED_INCHES = 0.27
KEY_LINE = 0.21
_MARK_INCHES = 0.27


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry of a key: what stands beside the words. `look`: of a line, as `Axes.plot` takes it."""

    words: str
    look: dict[str, Any] = field(default_factory=dict)
    is_area: bool = False


class Sheet:
    """Where a figure is painted; `top` is the first free inch below what stands on every sheet."""

    def __init__(self, figure: Figure, palette: Palette, size: Size, *, is_simulated: bool = False) -> None:
        self.figure = figure
        self.palette = palette
        self.width, self.height = size.inches
        self.top = 0.04
        if is_simulated:
            self.words(MARGIN, 0.14, SIMULATED, color=palette.warning, fontweight="bold", fontsize=SMALL)
            self.top += _SIMULATED_INCHES

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """A part of the sheet."""
        bottom = self.height - top - height
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(place)

    def words(self, x: float, y: float, words: str, **look: Any) -> None:
        """A line of text whose middle is `y` below the upper edge."""
        usual: dict[str, Any] = {"va": "center_baseline", "fontsize": SMALL}
        self.figure.text(x / self.width, 1 - y / self.height, words, **(usual | look))

    def key(self, marks: Sequence[Mark], top: float, *, left: float = MARGIN, width: float | None = None) -> None:
        """The marks with their words, one after the other in lines of `KEY_LINE`."""
        right = left + (width or self.width - left - MARGIN)
        for mark, x, line in _placed(marks, left, right):
            y = top + KEY_LINE * (line + 0.5)
            self._mark(mark, x, y)
            start = x + (_MARK_INCHES + 0.06 if mark.look else 0)
            self.words(start, y, mark.words, color=self.palette.ink)

    def _mark(self, mark: Mark, x: float, y: float) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Rectangle

        if mark.is_area:
            corner = (x / self.width, 1 - (y + 0.055) / self.height)
            size = (_MARK_INCHES / self.width, 0.11 / self.height)
            self.figure.add_artist(Rectangle(corner, *size, **mark.look))
        elif mark.look:
            is_point = mark.look.get("linestyle") == "none"
            places = [x + _MARK_INCHES / 2] if is_point else [x, x + _MARK_INCHES / 2, x + _MARK_INCHES]
            look = mark.look if is_point else {"markevery": [1]} | mark.look
            across = [place / self.width for place in places]
            self.figure.add_artist(Line2D(across, [1 - y / self.height] * len(places), **look))


def size_of(height_inches: float, *, is_simulated: bool) -> Size:
    """Of a sheet that needs so much height below `top`."""
    return Size(WIDTH_INCHES, round(height_inches + 0.04 + (_SIMULATED_INCHES if is_simulated else 0), 2))


def key_inches(marks: Sequence[Mark], width: float = WIDTH_INCHES - 2 * MARGIN) -> float:
    """Height of a key."""
    return KEY_LINE * (1 + max((line for _, _, line in _placed(marks, 0, width)), default=-1))


def text_inches(words: str, points: float = SMALL) -> float:
    """About how wide a text is, rather too much."""
    return points / 72 * sum(map(_letter_width, words))


def _letter_width(letter: str) -> float:
    """As a share of the size of the typeface of PDF and PNG, which is wider than most of those of a reader."""
    if letter in "iljftrI.,:;|'()[]- ":
        return 0.37
    if letter in "%mwMW@—…":
        return 0.95
    return 0.7 if letter.isupper() else 0.62


def _placed(marks: Sequence[Mark], left: float, right: float) -> list[tuple[Mark, float, int]]:
    """Each mark with its x and the number of its line."""
    placed: list[tuple[Mark, float, int]] = []
    x, line = left, 0
    for mark in marks:
        needed = (_MARK_INCHES + 0.06 if mark.look else 0) + text_inches(mark.words)
        if x > left and x + needed > right:
            x, line = left, line + 1
        placed.append((mark, x, line))
        x += needed + 0.16
    return placed
