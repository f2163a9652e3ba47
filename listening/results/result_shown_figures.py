"""Figures of an analysis as pages show them: words and numbers at once, the drawn files by their addresses."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from evaluation.figures.numbers import NumberTable
from listening.results.selectors import figures_in
from portal.core.wording import decimals

if TYPE_CHECKING:
    from listening.analysis.figures import Figure

MOST_NUMBERS = 120  # rows beneath a figure; longer tables are files
FORMATS = ("svg", "pdf", "png")
# Where a figure belongs, by the beginning of its name; what is not listed stands among further figures.
PLACES = {
    "violin": "task",
    "eer": "task",
    "det": "task",
    "histogram": "task",
    "significance": "comparison",
    "scatter": "objective",
    "pairs": "linkability",
    "grouping": "linkability",
    "map": "linkability",
    "transcription": "transcription",
    "listeners": "listeners",
    "exclusion": "exclusions",
}
# The table that holds the numbers of a figure, where these are too many to stand beneath it.
TABLES = {
    "violin": "summary",
    "eer": "detection",
    "det": "det",
    "histogram": "histogram",
    "significance": "differences",
    "pairs-det": "pair_det",
    "pairs-eer": "pair_detection",
    "transcription": "transcription",
}


@dataclass(frozen=True)
class ShownFigure:
    """A figure for `components/figure.html`, and where on a page it belongs."""

    name: str
    task: str
    system: str
    place: str
    is_about_listeners: bool
    title: str
    caption: str
    alt: str
    size: Any
    image: str
    dark: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    downloads: tuple[Mapping[str, str], ...]
    number: int = 0

    @property
    def is_comparison(self) -> bool:
        return self.place == "comparison"


def shown_figures(
    results: str, study: str, scores: str, drawn: Container[str], mark: str, csv: Callable[[str, str], str],
    wanted: Callable[[Figure], bool],
) -> list[ShownFigure]:  # fmt: skip
    """The wanted figures of a kind of scores, and of neither, whose files are drawn, in the order of a page.

    Args:
        results: key of the stored results.
        drawn: paths of the files.
        mark: changes with what is drawn, so that a browser may keep a file.
        csv: the address of a table as a file, by scores and name; empty for who may not have it.
    """
    if not drawn:
        return []
    return [
        _shown(figure, study, mark, drawn, csv)
        for figure in figures_in(results)
        if figure.scores in (scores, "common")
        and f"{figure.scores}/{figure.name}-light.svg" in drawn
        and wanted(figure)
    ]


def figure_address(study: str, scores: str, name: str, extension: str, mark: str, theme: str = "") -> str:
    """The address of a drawn file; SVG has a dark form."""
    address = reverse("studies:results-figure", args=[study, scores, name, extension])
    return f"{address}?v={mark}" + (f"&theme={theme}" if theme else "")


def _shown(
    figure: Figure, study: str, mark: str, drawn: Container[str], csv: Callable[[str, str], str]
) -> ShownFigure:  # fmt: skip
    def address(extension: str, theme: str = "") -> str:
        return figure_address(study, figure.scores, figure.name, extension, mark, theme)

    stem = f"{figure.scores}/{figure.name}"
    is_short = len(figure.numbers.rows) <= MOST_NUMBERS
    columns, rows = _numbers(figure.numbers) if is_short else ((), ())
    has = {"svg": True} | {one: f"{stem}.{one}" in drawn for one in FORMATS[1:]}
    downloads = [{"url": address(one), "label": one.upper()} for one in FORMATS if has[one]]
    table = next((table for start, table in TABLES.items() if figure.name.startswith(start)), "")
    if not is_short and table and (numbers := csv(figure.scores, table)):
        downloads.append({"url": numbers, "label": "Numbers, CSV"})
    return ShownFigure(
        name=figure.name,
        task=figure.task,
        system=figure.system,
        place=next((place for start, place in PLACES.items() if figure.name.startswith(start)), "figures"),
        is_about_listeners=figure.is_about_listeners,
        title=figure.title,
        caption=figure.caption,
        alt=figure.alt,
        size=figure.size,
        image=address("svg"),
        dark=address("svg", "dark"),
        columns=columns,
        rows=rows,
        downloads=tuple(downloads),
    )


def _numbers(table: NumberTable) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Columns and rows as text; a system by its label alone."""
    hidden = {place for place, name in enumerate(table.columns) if name != "label" and _label_of(name) in table.columns}
    kept = [place for place in range(len(table.columns)) if place not in hidden]
    columns = tuple(_words(table.columns[place]) for place in kept)
    return columns, tuple(tuple(_cell(row[place]) for place in kept) for row in table.rows)


def _label_of(name: str) -> str:
    return "label" if name == "system" else f"{name}_label"


def _words(column: str) -> str:
    if column == "label":
        return "system"
    return column.removesuffix("_label").replace("_", " ")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return decimals(value, 3)
    return "" if value is None else str(value)
