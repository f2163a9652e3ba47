"""A figure of an analysis: what it says in words and numbers at once, and its files when they are asked for.

Everything but `draw` is cheap, so that a page may have the words of every figure without a plotting library. A figure
is named by a slug and the scores that it shows; its files are named after both, ``raw/det-naturalness-light.svg``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import PALETTES, ImageFormat, Size, Theme, drawing, render
from listening.analysis.figures.sheet import Sheet
from listening.analysis.tables import Scores

ALL_FORMATS: tuple[ImageFormat, ...] = ("svg", "pdf", "png")
# Of a file that is downloaded rather than shown: PDF and PNG are for print, on white paper.
PRINTED: Theme = "light"
PNG_DOTS_PER_INCH = 300
_PLACES = re.compile(rb' (?:d|x|y)="[^"]*"')
_DECIMALS = re.compile(rb"(\.\d\d)\d+")


@dataclass(frozen=True, slots=True)
class FigureFile:
    """One file of a figure. `path`: such as ``raw/det-naturalness-light.svg`` or ``raw/det-naturalness.pdf``."""

    path: str
    theme: Theme
    image_format: ImageFormat


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        scores: what it shows: ``raw``, ``normalised``, or ``common`` where it rests on neither.
        name: a slug, unique among the figures of these scores.
        title: what it shows, in a few words.
        caption: how to read it: scores, n, listeners, where intervals come from, whether ratings are simulated.
        alt: the finding in words, with numbers.
        size: of every file.
        paint: draws on a sheet of that size.
        count: makes `numbers`.
        formats: the files that are worth making.
        task: of the ratings; empty where there is none.
        system: whose figure it is; empty where it is of all.
        is_about_listeners: names single listeners, so nobody but the organizers of the study may see it.
        is_about_utterances: shows single samples of several systems; for organizers too.
        is_about_screening: shows what rules would change that catch few listeners, from which the ratings of these can
            be computed; for organizers too.
    """

    scores: Scores
    name: str
    title: str
    caption: str
    alt: str
    size: Size
    paint: Callable[[Sheet], None]
    count: Callable[[], NumberTable]
    formats: tuple[ImageFormat, ...] = ALL_FORMATS
    task: str = ""
    system: str = ""
    is_about_listeners: bool = False
    is_about_utterances: bool = False
    is_about_screening: bool = False
    is_simulated: bool = False

    @property
    def is_for_organizers(self) -> bool:
        """Whether nobody but the organizers of the study may see it."""
        return self.is_about_listeners or self.is_about_utterances or self.is_about_screening

    @cached_property
    def numbers(self) -> NumberTable:
        """The table of what is drawn, names in full."""
        return self.count()

    def draw(self, theme: Theme, image_format: ImageFormat) -> bytes:
        """The figure as a file; equal results give equal bytes."""
        return self.draw_formats(theme, [image_format])[image_format]

    def draw_formats(self, theme: Theme, formats: Iterable[ImageFormat]) -> dict[ImageFormat, bytes]:
        """Several files of one theme, painted once."""
        with drawing(theme) as palette:
            from matplotlib.figure import Figure as Canvas

            sheet = Sheet(Canvas(figsize=self.size.inches), palette, self.size, is_simulated=self.is_simulated)
            self.paint(sheet)
            return {one: self._render(sheet, one) for one in formats}

    def _render(self, sheet: Sheet, image_format: ImageFormat) -> bytes:
        drawn = render(
            sheet.figure, image_format, title=self.title, description=self.alt, dots_per_inch=PNG_DOTS_PER_INCH
        )
        return _PLACES.sub(_shortened, drawn) if image_format == "svg" else drawn

    def files(self, formats: Iterable[ImageFormat] = ALL_FORMATS) -> list[FigureFile]:
        """Those worth making among the formats: SVG for both themes of a page, PDF and PNG for print."""
        return list(self._files(set(formats) & set(self.formats)))

    def _files(self, formats: set[ImageFormat]) -> Iterator[FigureFile]:
        stem = f"{self.scores}/{self.name}"
        if "svg" in formats:
            yield from (FigureFile(f"{stem}-{theme}.svg", theme, "svg") for theme in PALETTES)
        for image_format in ALL_FORMATS[1:]:
            if image_format in formats:
                yield FigureFile(f"{stem}.{image_format}", PRINTED, image_format)


def _shortened(places: re.Match[bytes]) -> bytes:
    """Coordinates of an SVG to a hundredth of a point, which halves the file."""
    return _DECIMALS.sub(rb"\1", places.group())
