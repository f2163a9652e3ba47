"""Shows figures of an analysis on pages: their words, and the drawn files in the page and by their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from evaluation.figures.style import for_page, leads_anywhere
from listening.analysis.figures import StudyFigure
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import ABOUT_LISTENERS
from listening.app.results.labels import EVERY, METHOD
from listening.app.results.selectors import figures_in
from portal.core.storage import read_stored

FORMATS = ("svg", "pdf", "png")
IN_SIGHT = frozenset({"answers", "task", "linkability", "transcription"})  # places whose first figure stands unfolded
OF_FIGURE = ("name", "task", "system", "title", "alt", "size")
ShownFigure = Mapping[str, Any]  # for `components/figure.html`, with `place`: where on a page it belongs


@dataclass(frozen=True)
class Reader:
    """What a page depends on besides its analysis. `tables`: those that this reader may have as files."""

    study: str
    scores: str
    tables: frozenset[str]

    def address(self, name: str, *parts: str) -> str:
        return reverse(f"studies:{name}", args=[self.study, *parts])

    def csv(self, scores: str, table: str) -> str:
        """Return the address of a table as a file; empty where this reader may not have it."""
        return self.address("results-csv", scores, table) if table in self.tables else ""

    def system(self, name: str) -> str:
        """Return the address of a system's page, of the scores that are shown; empty where it has none.

        Imported systems are called anything: browsers resolve . and .. between slashes, so such a name has no address.
        """
        if name in (ORIGINAL, EVERY) or {".", ".."}.intersection(name.split("/")):
            return ""
        return f"{self.address('results-system', name)}?scores={self.scores}"

    @property
    def sees_listeners(self) -> bool:
        """Return whether what is for organizers alone is for this reader; once somebody withdrew, it is for nobody."""
        return self.tables >= ABOUT_LISTENERS


def shown_figures(
    results: str, reader: Reader, drawn: Mapping[str, str], mark: str, name: str = ""
) -> list[ShownFigure]:
    """Return the figures of the reader's scores, and of neither, that are drawn and that they may see, in their order.

    Args:
        results: key of the stored results.
        drawn: paths of the files, and their keys in the storage.
        mark: changes with what is drawn, so that a browser may keep a file.
        name: of the only figure that is wanted.
    """
    if not drawn:
        return []
    return [
        _shown(figure, reader, mark, drawn)
        for figure in figures_in(results)
        if name in ("", figure.name)
        and figure.scores in (reader.scores, "common")
        and f"{figure.scores}/{figure.name}-light.svg" in drawn
        and (reader.sees_listeners or not figure.is_for_organizers)
    ]


def _shown(figure: StudyFigure, reader: Reader, mark: str, drawn: Mapping[str, str]) -> ShownFigure:
    def address(extension: str, theme: str = "") -> str:  # SVG has a dark form
        url = reader.address("results-figure", figure.scores, figure.name, extension)
        return f"{url}?v={mark}" + (f"&theme={theme}" if theme else "")

    stem = f"{figure.scores}/{figure.name}"
    made = [one for one in FORMATS if one == "svg" or f"{stem}.{one}" in drawn]
    downloads = [{"url": address(one), "label": one.upper()} for one in made]
    found = (one for start, one in METHOD["places"].items() if figure.name.startswith(start))
    place, table = next(found, ("figures", ""))
    if table and (file := reader.csv(figure.scores, table)):
        downloads.append({"url": file, "label": "Numbers, CSV"})
    shown: dict[str, Any] = {"place": place, "downloads": downloads, "scrolls": place in IN_SIGHT}
    shown |= {"image": address("svg"), "dark": address("svg", "dark")}
    shown |= {"caption": figure.reading, "method": figure.caption}
    shown["drawn"] = _drawn_in_page(drawn[f"{stem}-light.svg"], f"{figure.scores}-{figure.name}", figure.alt, reader)
    return {name: getattr(figure, name) for name in OF_FIGURE} | shown


def _drawn_in_page(key: str, name: str, words: str, reader: Reader) -> dict[str, SafeString]:
    """Return a figure as a part of the page, whose systems lead to their pages; nothing for one that leads nowhere."""
    svg = read_stored(key)
    if svg is None or not leads_anywhere(svg):
        return {}
    return {"wide": mark_safe(for_page(svg, name, words, reader.system))}  # noqa: S308 - drawn by us
