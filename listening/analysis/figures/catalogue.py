"""All figures of an analysis, and their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from evaluation.figures.style import ImageFormat
from listening.analysis.figures.det_figures import det_figures, pair_det_figures
from listening.analysis.figures.exclusion_figures import exclusion_figures
from listening.analysis.figures.figure import ALL_FORMATS, Figure
from listening.analysis.figures.groups import grouping_figures
from listening.analysis.figures.histograms import histogram_figures
from listening.analysis.figures.listener_figures import listener_figures
from listening.analysis.figures.maps import map_figures
from listening.analysis.figures.rates import eer_figures, pair_eer_figures, transcription_figures
from listening.analysis.figures.scatter import scatter_figures
from listening.analysis.figures.significance import significance_figures
from listening.analysis.figures.view import View
from listening.analysis.figures.violins import violin_figures
from listening.analysis.tables import Results, Scores

BY_SCORES: tuple[Scores, ...] = ("raw", "normalised")
_OF_A_TASK: tuple[Callable[[View, Scores, str], list[Figure]], ...] = (
    violin_figures, eer_figures, det_figures, histogram_figures, significance_figures, listener_figures,
    exclusion_figures,
)  # fmt: skip
_OF_SCORES: tuple[Callable[[View, Scores], list[Figure]], ...] = (scatter_figures, pair_det_figures, pair_eer_figures)
_COMMON: tuple[Callable[[View], list[Figure]], ...] = (grouping_figures, map_figures, transcription_figures)


def figures_of(results: Results) -> list[Figure]:
    """Every figure that the tables give, in the order of a page: raw scores, normalised ones, what rests on neither.

    Cheap: nothing is drawn and no plotting library is imported before `Figure.draw`. A table that is missing or empty
    gives no figure.
    """
    view = View(results)
    figures: list[Figure] = []
    for scores in BY_SCORES:
        for task in view.tasks(scores):
            for make in _OF_A_TASK:
                figures += make(view, scores, task)
        for make_all in _OF_SCORES:
            figures += make_all(view, scores)
    for make_common in _COMMON:
        figures += make_common(view)
    return figures


def draw_files(
    figures: Iterable[Figure],
    formats: Iterable[ImageFormat] = ALL_FORMATS,
    progress: Callable[[str, int, int], None] | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file worth making, ``raw/det-naturalness-light.svg``; each figure is painted once a
    theme.

    Args:
        figures: of `figures_of`, or some of them.
        formats: those wanted.
        progress: told what is drawn, how many figures are done, and how many there are.
    """
    chosen, wanted = list(figures), tuple(formats)
    for done, figure in enumerate(chosen):
        if progress:
            progress(f"figure {figure.scores}/{figure.name}", done, len(chosen))
        files = sorted(figure.files(wanted), key=lambda one: one.theme)
        for theme, of_theme in groupby(files, key=lambda one: one.theme):
            paths = {one.image_format: one.path for one in of_theme}
            drawn = figure.draw_formats(theme, paths)
            yield from ((paths[image_format], content) for image_format, content in drawn.items())
    if progress and chosen:
        progress("figures", len(chosen), len(chosen))


def draw_all(
    results: Results,
    folder: Path,
    formats: Iterable[ImageFormat] = ALL_FORMATS,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Path]:
    """Draw every figure of the results into a folder, which is made where there is none.

    Returns:
        The files that were written.
    """
    written = []
    for path, content in draw_files(figures_of(results), formats, progress):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        written.append(file)
    return written
