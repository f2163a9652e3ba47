"""Figures of an analysis as pages show them: words and numbers at once, the drawn files by their addresses.

Small drawings stand in a page itself: coordinates for SVG, so that colours follow the page and nothing is drawn by a
library. Widths and heights are in units of the view box; rates are shares in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from common.tables import Column, Table, plain_table
from evaluation.figures.style import for_page, leads_anywhere
from listening.analysis.figures import Figure
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import ABOUT_LISTENERS
from listening.app.results.labels import EVERY, METHOD, WORDS, percent
from listening.app.results.selectors import figures_in
from portal.core.labels import decimals
from portal.core.storage import read_stored

MOST_NUMBERS = 120  # rows beneath a figure; longer tables are files
FORMATS = ("svg", "pdf", "png")
ABBREVIATIONS = {"wer": "WER", "eer": "EER", "auc": "AUC", "sd": "SD", "n": "n", "p": "p"}
OF_FIGURE = ("name", "task", "system", "is_about_listeners", "title", "alt", "size")
ShownFigure = Mapping[str, Any]  # for `components/figure.html`, with `place`: where on a page it belongs


@dataclass(frozen=True)
class Reader:
    """What a page depends on besides its analysis. `tables`: those that this reader may have as files."""

    study: str
    scores: str
    is_organizer: bool
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


def shown_figures(results: str, reader: Reader, drawn: Mapping[str, str], mark: str) -> list[ShownFigure]:
    """Return the figures of the reader's scores, and of neither, that are drawn and that they may see, in their order.

    Args:
        results: key of the stored results.
        drawn: paths of the files, and their keys in the storage.
        mark: changes with what is drawn, so that a browser may keep a file.
    """
    if not drawn:
        return []
    return [
        _shown(figure, reader, mark, drawn)
        for figure in figures_in(results)
        if figure.scores in (reader.scores, "common")
        and f"{figure.scores}/{figure.name}-light.svg" in drawn
        and (reader.sees_listeners or not figure.is_for_organizers)
    ]


def _shown(figure: Figure, reader: Reader, mark: str, drawn: Mapping[str, str]) -> ShownFigure:
    def address(extension: str, theme: str = "") -> str:  # SVG has a dark form
        url = reader.address("results-figure", figure.scores, figure.name, extension)
        return f"{url}?v={mark}" + (f"&theme={theme}" if theme else "")

    stem = f"{figure.scores}/{figure.name}"
    is_short = len(tuple(figure.numbers.rows)) <= MOST_NUMBERS
    numbers = list_numbers(figure) if is_short else None
    made = [one for one in FORMATS if one == "svg" or f"{stem}.{one}" in drawn]
    downloads = [{"url": address(one), "label": one.upper()} for one in made]
    found = (one for start, one in METHOD["places"].items() if figure.name.startswith(start))
    place, table = next(found, ("figures", ""))
    if not is_short and table and (file := reader.csv(figure.scores, table)):
        downloads.append({"url": file, "label": "Numbers, CSV"})
    shown: dict[str, Any] = {"place": place, "numbers": numbers, "downloads": downloads, "scrolls": place == "answers"}
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


def list_numbers(figure: Figure) -> Table:
    """Return what a figure shows as a table; a system by its label alone."""
    table = figure.numbers
    named = {one.removesuffix("_label") for one in table.columns if one.endswith("_label")}
    named |= {"system"} if "label" in table.columns else set()
    kept = [place for place, name in enumerate(table.columns) if name not in named]
    held = list(table.rows)
    columns = [
        Column(
            table.columns[place],
            _words(table.columns[place]),
            kind="" if any(isinstance(row[place], str) for row in held) else "num",
        )
        for place in kept
    ]
    rows = ([_cell(table.columns[place], row[place]) for place in kept] for row in held)
    return plain_table(f"Numbers of: {figure.title}", columns, rows, styles="")


def _words(column: str) -> str:
    words = "system" if column == "label" else column.removesuffix("_label")
    words = words.replace("one_minus_wer", "1 − WER").replace("_", " ")
    found = " ".join(ABBREVIATIONS.get(word, word) for word in words.split())
    return found if found.split()[0] in ABBREVIATIONS.values() else found[:1].upper() + found[1:]


def _cell(column: str, value: Any) -> str:
    if isinstance(value, float):
        return decimals(value, 3)
    return "" if value is None else str(WORDS.get(column, {}).get(value, value))


STRIP_WIDTH, STRIP_HEIGHT = 132, 14
MARGIN = 6
PLOT = 320  # side of the field of a DET curve
LEFT, BOTTOM, TOP, RIGHT = 46, 40, 10, 14
LOWEST = 0.01  # of the probit axes
TICKS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98)
BAR_WIDTH, BAR_HEIGHT = 300, 120
MOST_POINTS = 120  # of a curve
_NORMAL = NormalDist()


FRAME = {
    "width": LEFT + PLOT + RIGHT,
    "height": TOP + PLOT + BOTTOM,
    "left": LEFT,
    "right": LEFT + PLOT,
    "top": TOP,
    "bottom": TOP + PLOT,
    "side": PLOT,
    "centre": LEFT + PLOT // 2,
    "middle": TOP + PLOT // 2,
}
Bins = Sequence[tuple[float, float, float]]  # lower edge, upper edge, share


def strip_html(
    value: float | None, low: float | None, high: float | None, scale: Sequence[float], reference: float | None = None
) -> SafeString:
    """Return a point with its interval on a scale, and a reference as a line: beside numbers that say the same."""
    if value is None:
        return mark_safe("")

    def place(number: float) -> str:
        share = min(1.0, max(0.0, (number - scale[0]) / (scale[1] - scale[0])))
        return f"{MARGIN + share * (STRIP_WIDTH - 2 * MARGIN):.1f}"

    middle = STRIP_HEIGHT / 2
    parts = [
        f'<svg class="strip-plot" viewBox="0 0 {STRIP_WIDTH} {STRIP_HEIGHT}" width="{STRIP_WIDTH}" '
        f'height="{STRIP_HEIGHT}" aria-hidden="true">'
        f'<line class="axis" x1="{MARGIN}" x2="{STRIP_WIDTH - MARGIN}" y1="{middle}" y2="{middle}"/>'
    ]
    if reference is not None:
        at = place(reference)
        parts.append(f'<line class="reference" x1="{at}" x2="{at}" y1="0" y2="{STRIP_HEIGHT}"/>')
    if low is not None and high is not None:
        parts.append(f'<line class="interval" x1="{place(low)}" x2="{place(high)}" y1="{middle}" y2="{middle}"/>')
    parts.append(f'<circle cx="{place(value)}" cy="{middle}" r="4"/></svg>')
    return mark_safe("".join(parts))  # noqa: S308 - numbers only


Points = Sequence[tuple[float, float, float | None]]


def det_plot(own: Points, others: Iterable[tuple[str, Points]], digits: int) -> dict[str, Any]:
    """Return DET curves on probit axes, for `_det.html`.

    Args:
        own: miss rate, false alarm rate, threshold; the read-out says what stands at each.
        others: as (role, points), drawn first; a role is other or original.
        digits: of thresholds.
    """
    return FRAME | {
        "curves": [(role, _polyline(points)) for role, points in (*others, ("own", own))],
        "ticks": [(_x(rate), f"{100 * rate:g}") for rate in TICKS],
        "rows": [(_y(rate), f"{100 * rate:g}") for rate in TICKS],
        "read": [(_x(alarm), _y(miss), _said(miss, alarm, threshold, digits)) for miss, alarm, threshold in own],
    }


def histogram(title: str, series: Iterable[tuple[str, str, Bins]]) -> dict[str, Any] | None:
    """Return shares of ratings as outlines (name, role, bins) for `_histogram.html` and in words; None without bins."""
    found = [(name, role, bins) for name, role, bins in series if bins]
    if not found:
        return None
    edges = sorted({edge for _, _, bins in found for low, high, _ in bins for edge in (low, high)})
    first, last = edges[0], edges[-1]
    most = max(share for _, _, bins in found for *_, share in bins) or 1.0
    floor = BAR_HEIGHT + 8

    def x(edge: float) -> float:
        return round(MARGIN + (edge - first) / (last - first) * BAR_WIDTH, 1)

    def path(bins: Bins) -> str:
        steps = [f"M{x(bins[0][0])} {floor}"]
        for low, high, share in bins:
            y = round(floor - share / most * BAR_HEIGHT, 1)
            steps.append(f"L{x(low)} {y}L{x(high)} {y}")
        return "".join([*steps, f"L{x(bins[-1][1])} {floor}"])

    highest = [(name, max(bins, key=lambda one: one[2])) for name, _, bins in found]
    said = "; ".join(
        f"{name}, most from {low:g} to {high:g}, {percent(share, 0)}" for name, (low, high, share) in highest
    )
    return {
        "title": title,
        "said": f"{title}: {said}",
        "series": [(name, role, path(bins)) for name, role, bins in found],
        "ticks": [(x(edge), f"{edge:g}") for edge in (first, edges[len(edges) // 2], last)],
        "most": percent(most, 0),
        "width": BAR_WIDTH + 2 * MARGIN,
        "height": BAR_HEIGHT + 30,
        "floor": floor,
    }


def _polyline(points: Points) -> str:
    step = max(1, -(-len(points) // MOST_POINTS))
    kept = [point for place, point in enumerate(points) if place % step == 0 or place == len(points) - 1]
    return " ".join(f"{_x(alarm):.1f},{_y(miss):.1f}" for miss, alarm, _ in kept)


def _share(rate: float) -> float:
    """Return where a rate lies on a probit axis, from 0 to 1."""
    edge = _NORMAL.inv_cdf(1 - LOWEST)
    return (_NORMAL.inv_cdf(min(1 - LOWEST, max(LOWEST, rate))) + edge) / (2 * edge)


def _x(false_alarm_rate: float) -> float:
    return round(LEFT + PLOT * _share(false_alarm_rate), 1)


def _y(miss_rate: float) -> float:
    return round(TOP + PLOT * (1 - _share(miss_rate)), 1)


def _said(miss: float, alarm: float, threshold: float | None, digits: int) -> str:
    where = "No score accepted" if threshold is None else f"Scores from {threshold:.{digits}f} accepted"
    return f"{where}: misses {percent(miss, 0)}, false alarms {percent(alarm, 0)}"
