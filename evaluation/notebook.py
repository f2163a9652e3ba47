"""What a notebook needs, in one import: from files to numbers and figures.

A notebook shows what `measure_scores` and `detection_metrics` give as a table, and the figure of `save_det`, too.
Each other name is documented where it comes from.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from common.errors import InputError
from evaluation.figures.det import det_numbers, draw_det, make_det_plot
from evaluation.figures.style import ImageFormat, Theme, make_figure
from evaluation.metrics.catalogue import DETECTION_METRICS, format_heading
from evaluation.metrics.detection import DetectionMetrics, Estimator, detection_metrics
from evaluation.metrics.pitch import compare_pitch
from evaluation.objective_results.recomputation import join_files, measure_scores
from evaluation.objective_results.results.folders import read_results

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = [
    "compare_pitch",
    "detection_metrics",
    "draw_det",
    "join_files",
    "measure_scores",
    "read_results",
    "save_det",
    "table_metrics",
]
FIGURE_ENDINGS = ("svg", "pdf", "png", "csv")


def table_metrics(tests: Mapping[str, DetectionMetrics]) -> DataFrame:
    """Return the metrics of tests side by side: a row for each metric and its unit, a column for each test.

    A test whose equal scores leave the EER open has NaN; that, and what else limits the numbers, is warned of.
    """
    from pandas import DataFrame

    for label, test in tests.items():
        for note in test.notes:
            warnings.warn(f"{label}: {note}", stacklevel=2)
    values = {label: test.values() for label, test in tests.items()}
    columns = {
        label: [math.nan if tests[label].open_eer else found[key] for key in DETECTION_METRICS]
        for label, found in values.items()
    }
    return DataFrame(columns, index=[format_heading(metric) for metric in DETECTION_METRICS.values()])


def save_det(
    path: Path | str,
    tests: Mapping[str, DetectionMetrics],
    *,
    estimator: Estimator = "kaldi",
    theme: Theme = "light",
) -> Figure:
    """Save a DET figure of one to eight tests (`draw_det`), or with the ending ``csv`` the numbers beside it.

    Returns:
        The figure, which a notebook shows as the last value of a cell.

    Raises:
        InputError: another ending than svg, pdf, png or csv; what `draw_det` refuses.
        OSError: the file cannot be written.
    """
    path = Path(path)
    ending = path.suffix[1:].lower()
    if ending not in FIGURE_ENDINGS:
        raise InputError(f"{path}: expected a figure as {', '.join(FIGURE_ENDINGS)}, found “{path.suffix}”.")
    if ending == "csv":
        path.write_text(det_numbers(tests, estimator=estimator).csv(), encoding="utf-8")
    else:
        image_format = cast("ImageFormat", ending)
        path.write_bytes(draw_det(tests, estimator=estimator, theme=theme, image_format=image_format))
    figure = make_figure(make_det_plot(tests, estimator), theme)
    vars(figure)["_repr_svg_"] = lambda: draw_det(tests, estimator=estimator, theme=theme).decode()
    return figure
